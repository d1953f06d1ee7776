"""The page that explains metrics and alerts: it has each of them once, and nothing else."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

from tests.support.telemetry_page import code, table

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "metrics-and-alerts.md"


def rows(heading: str) -> dict[str, tuple[str, str]]:
    """The rows of all tables whose first column has that heading."""
    found: dict[str, tuple[str, str]] = {}
    for each in re.split(r"\n(?=## )", PAGE.read_text("utf-8")):
        lines = [line.strip("|").split("|") for line in each.splitlines() if line.startswith("| ")]
        if lines and lines[0][0].strip() == heading:
            for name, meaning, advice in lines[1:]:
                assert code(name.strip()) not in found, name
                found[code(name.strip())] = meaning.strip(), advice.strip()
    return found


def test_every_metric_has_its_usual_value_and_advice() -> None:
    assert rows("metric").keys() == {code(row[0]) for row in table("metric")}
    assert [name for name, (usual, advice) in rows("metric").items() if not (usual and advice)] == []


def test_every_alert_has_advice() -> None:
    loaded: dict[str, Any] = yaml.safe_load(files("bonny_dev.manifest").joinpath("alerts.yaml").read_text("utf-8"))
    there = {rule["alert"] for group in loaded["groups"] for rule in group["rules"]}
    assert rows("alert").keys() == there
    assert [name for name, (meaning, advice) in rows("alert").items() if not (meaning and advice)] == []


def test_every_alert_is_named_at_a_metric_that_it_reads() -> None:
    """Whoever looks at a metric finds the alert that watches it."""
    loaded: dict[str, Any] = yaml.safe_load(files("bonny_dev.manifest").joinpath("alerts.yaml").read_text("utf-8"))
    metrics = rows("metric")
    for rule in (rule for group in loaded["groups"] for rule in group["rules"]):
        read = set(re.findall(r"[a-z]\w+", rule["expr"])) & metrics.keys()
        named = {name for name, texts in metrics.items() if f"`{rule['alert']}`" in "".join(texts)}
        assert read & named or not read, rule["alert"]
