"""Dashboards and alert rules: they ask for nothing that is not there, and are written for the operator's job."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import PROCESS_COLLECTOR

from bonny.errors import UsageError
from bonny.run.metrics import families
from bonny.run.process import Process
from bonny.webhooks.serving import WebhookRun
from bonny_dev.tasks.dashboards import FILES, write
from tests.support.metered import First, assembled, full_name, labels_of

# Labels that come from the scrape, and those of histograms.
OF_THE_SCRAPE = {"job", "pod", "le"}
METRIC = re.compile(r"\b(?:controller_runtime|workqueue|rest_client|leader_election|scheduler|bonny|process)_\w+")
SELECTED = re.compile(r"(\w+)\{([^}]*)\}")
GROUPED = re.compile(r"by \(([^)]*)\)")
LABEL = re.compile(r"(\w+)\s*(?:=~|!=|!~|=)")


def alerts() -> list[dict[str, Any]]:
    loaded = yaml.safe_load(files("bonny_dev.manifest").joinpath("alerts.yaml").read_text("utf-8"))
    return [rule for group in loaded["groups"] for rule in group["rules"]]


def dashboard() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(files("bonny_dev.manifest").joinpath("dashboard.json").read_text("utf-8"))
    return loaded


def expressions() -> list[str]:
    shown = [target["expr"] for panel in dashboard()["panels"] for target in panel["targets"]]
    return [*(rule["expr"] for rule in alerts()), *shown]


async def complete() -> Process:
    """A process with all that is optional."""
    process = await assembled(First)
    process.extras.append(WebhookRun(process))
    return process


async def labels_by_series() -> dict[str, set[str]]:
    """The labels of every name that can stand in a query."""
    found = {"up": set(OF_THE_SCRAPE)}
    for family in (*families(await complete()), *PROCESS_COLLECTOR.collect()):
        names = [full_name(family)]
        if family.type == "histogram":
            names = [f"{family.name}_{part}" for part in ("bucket", "sum", "count")]
        found |= {name: OF_THE_SCRAPE | labels_of(family) for name in names}
    return found


@pytest.mark.parametrize("expression", expressions())
async def test_a_query_asks_for_metrics_and_labels_that_exist(expression: str) -> None:
    known = await labels_by_series()
    asked = METRIC.findall(expression)
    assert asked or "up{" in expression
    assert set(asked) <= set(known)
    for name, selectors in SELECTED.findall(expression):
        assert set(LABEL.findall(selectors)) <= known[name]
        assert "job" in LABEL.findall(selectors), "another operator has metrics of this name, too"
    for grouped in GROUPED.findall(expression):
        assert {label.strip() for label in grouped.split(",")} <= set.union(*(known[name] for name in asked))


async def test_every_metric_of_ours_is_on_the_dashboard_or_alarms() -> None:
    """What nobody looks at is not worth its series; two are there for dashboards of others."""
    asked = {name.removesuffix("_bucket") for expression in expressions() for name in METRIC.findall(expression)}
    there = {full_name(family) for family in families(await complete())}
    assert there - asked == {"workqueue_unfinished_work_seconds", "workqueue_work_duration_seconds"}


def test_every_alert_says_what_is_wrong_what_to_do_and_how_bad_it_is() -> None:
    rules = alerts()
    assert len({rule["alert"] for rule in rules}) == len(rules)
    for rule in rules:
        assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
        assert rule["labels"]["severity"] in ("critical", "warning", "info")
        assert {"summary", "description"} == set(rule["annotations"])
        assert re.fullmatch(r"[1-9]\d*m", rule.get("for", "1m"))
        told = set(re.findall(r"\$labels\.(\w+)", str(rule["annotations"])))
        grouped = GROUPED.search(rule["expr"])
        assert told <= set(re.split(r",\s*", grouped[1]) if grouped else ())


def test_no_two_panels_lie_on_each_other() -> None:
    taken: dict[tuple[int, int], str] = {}
    for panel in dashboard()["panels"]:
        at = panel["gridPos"]
        for place in ((x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])):
            assert place[0] < 24
            assert taken.setdefault(place, panel["title"]) == panel["title"]


def test_both_are_written_for_the_job_of_the_operator(tmp_path: Path) -> None:
    written = write(tmp_path / "a" / "b", job="ops/widgets-operator")

    assert [path.name for path in written] == list(FILES)
    for path in written:
        text = path.read_text("utf-8")
        assert "OPERATOR" not in text
        assert "ops/widgets-operator" in text
    assert yaml.safe_load(written[0].read_text("utf-8"))["groups"][0]["name"] == "ops/widgets-operator"
    assert json.loads(written[1].read_text("utf-8"))["title"] == "ops/widgets-operator"


@pytest.mark.parametrize("job", ["", 'a"b', "a b", "a\nb"])
def test_a_job_that_would_break_a_query_is_refused(tmp_path: Path, job: str) -> None:
    with pytest.raises(UsageError, match="use letters, digits"):
        write(tmp_path / "new", job=job)
    assert not (tmp_path / "new").exists()


def test_a_folder_that_cannot_be_written_to_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", "utf-8")
    with pytest.raises(UsageError, match="name another folder by --out"):
        write(tmp_path / "file", job="o")
