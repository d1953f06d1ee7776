"""The bench of sharing and of many objects: each part runs to its end and measures all of its goals."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from bench.harness import command
from bench.scale.__main__ import SUITE

# Growth needs more objects than a quick run has: it is not measured, or its figure is of any sign.
NOT_MEASURED = {"exponent of exec to last call s", "exponent of CPU s"}
# They start most processes.
LONG = ("cpu", "received", "leases", "moves", "throughput")


@pytest.mark.parametrize(
    "part", [pytest.param(name, marks=pytest.mark.slow if name in LONG else ()) for name in SUITE.workloads]
)
def test_a_quick_run_measures_each_goal_of_a_part(part: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(command, "ROOT", tmp_path)
    assert SUITE.main(["--quick", "--workload", part]) == 0
    (file,) = tmp_path.glob(".bench/scale-*.json")
    (outcome,) = json.loads(file.read_text("utf-8"))["workloads"]
    assert outcome["goals"], "each part has a goal"
    not_measured = {goal["metric"] for goal in outcome["goals"] if goal["verdict"] == "not measured"}
    assert not_measured <= NOT_MEASURED
    values = {goal["metric"]: goal["values"] for goal in outcome["goals"]}
    # Regression: 300 objects can take less time than one did, if this machine has other work meanwhile.
    assert all(math.isfinite(value) for metric in NOT_MEASURED & values.keys() for value in values[metric])
    assert all(value > 0.0 for metric in values.keys() - NOT_MEASURED for value in values[metric])
