"""Pictures of a bench: bars in proportion, both themes, and the committed pictures."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from bench import plots
from bench.harness.plot import LONGEST_BAR, THEMES, Panel, drawing, write

PANEL = Panel("events", "CPU us/event", "An update: CPU, µs")
MEDIANS = {"events": {"bonny": {"CPU us/event": 100.0}, "kopf": {"CPU us/event": 400.0}}}
SVG = "{http://www.w3.org/2000/svg}"


def texts(picture: str) -> list[str]:
    return [element.text or "" for element in ET.fromstring(picture).iter(f"{SVG}text")]


def test_bars_are_in_proportion_and_have_their_values() -> None:
    picture = drawing("Example", [PANEL], MEDIANS, THEMES["light"])

    _, ours, theirs = [int(bar.attrib["width"]) for bar in ET.fromstring(picture).iter(f"{SVG}rect")]
    assert (ours, theirs) == (LONGEST_BAR / 4, LONGEST_BAR)
    assert texts(picture) == ["An update: CPU, µs", "bonny", "100", "kopf", "400"]


def test_a_panel_without_measurements_is_left_out() -> None:
    missing = Panel("idle", "CPU ms", "Idle: CPU, ms")

    assert "Idle: CPU, ms" not in texts(drawing("Example", [missing, PANEL], MEDIANS, THEMES["light"]))
    assert drawing("Example", [missing], MEDIANS, THEMES["light"]) == ""


def test_there_is_a_picture_for_each_theme(tmp_path: Path) -> None:
    light, dark = write(tmp_path / "core", "Example", [PANEL], MEDIANS)

    assert (light.name, dark.name) == ("core-light.svg", "core-dark.svg")
    assert texts(light.read_text("utf-8")) == texts(dark.read_text("utf-8"))
    assert light.read_text("utf-8") != dark.read_text("utf-8")


def test_published_results_replace_the_medians_of_their_workloads_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plots, "RESULTS", tmp_path)
    (tmp_path / "core.json").write_text(json.dumps({"events": {}, "sync": {"bonny": {"CPU s": 0.5}}}), "utf-8")
    rounds = [{"bonny": {"CPU us/event": value}} for value in (90.0, 100.0, 120.0)]
    results = tmp_path / "core-20261122-120000.json"
    measured = [
        {"workload": "events", "objects": 10_000, "rounds": rounds},
        {"workload": "memory", "objects": 50_000, "rounds": rounds},
    ]
    results.write_text(json.dumps({"workloads": measured}), "utf-8")

    plots.take_over(results)

    known = json.loads((tmp_path / "core.json").read_text("utf-8"))
    assert known == {"events": {"bonny": {"CPU us/event": 100.0}}, "sync": {"bonny": {"CPU s": 0.5}}}


def test_results_of_another_number_of_objects_are_not_published(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "core-20261122-120000.json"
    results.write_text(json.dumps({"workloads": [{"workload": "events", "objects": 300, "rounds": []}]}), "utf-8")

    assert plots.main([str(results)]) == 2

    assert "has events with 300 objects" in capsys.readouterr().err


@pytest.mark.parametrize("name", plots.SUITES)
def test_the_committed_pictures_show_the_published_results(name: str, tmp_path: Path) -> None:
    for drawn in plots.draw(plots.SUITES[name], tmp_path):
        assert drawn.read_text("utf-8") == (plots.IMAGES / drawn.name).read_text("utf-8"), "run python -m bench.plots"
