"""Saved tests: what is written for a finding, and that no file is replaced."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from bonny.errors import UsageError
from bonny_dev import prove
from bonny_dev.prove.causes import Cause
from bonny_dev.prove.findings import Finding, Report
from bonny_dev.prove.plans import Fault, Plan
from bonny_dev.prove.points import API, Chapter, Point
from bonny_dev.prove.saved import save, text_of
from bonny_dev.tasks import survival

POINT = Point(Chapter.CHANGED, API, "delete", "configmaps desk")
FINDING = Finding(Plan("desk", Fault.KILL_AFTER, POINT), "it is gone", ['~ Lamp desk: note is "a\\b"'])
SAVED = '''"""Found by `invoke prove`; the test fails until it is fixed."""

from pathlib import Path

from bonny_dev import prove
from bonny_dev.sandbox import Sandbox

ONLY = "desk/kill-after/changed/*"
SAMPLE = """kind: Lamp
spec: {}
"""


def test_desk_kill_after_changed_delete_configmaps_desk(sandbox: Sandbox) -> None:
    """[intermediate state: incorrect reconciliation]

    killed after the delete of configmaps desk (chapter changed) is stored, and started again: it is
    gone: Lamp desk: note is \\"a\\\\b\\"
    """
    options = prove.Options(only=[ONLY], seed=3, samples={"desk": SAMPLE})
    prove.check(Path(__file__).parents[1], options, sandbox=sandbox)
'''


def found(*findings: Finding) -> Report:
    return Report("lamps", 3, findings=list(findings))


def test_a_finding_with_its_smallest_sample() -> None:
    finding = Finding(FINDING.plan, FINDING.problem, FINDING.diff, smallest="kind: Lamp\nspec: {}\n")

    assert text_of(finding, seed=3) == SAVED


def test_a_finding_of_all_lives_is_repeated_by_all_lives() -> None:
    finding = Finding(Plan("all-samples", Fault.PERMISSIONS), "no life needed it", cause=Cause.ACCESS)

    text = text_of(finding, seed=0)

    assert "prove.Options(seed=0)" in text
    assert "ONLY" not in text
    assert "[no fault needed: access control misconfiguration]" in text
    assert ast.parse(text).body


def test_one_test_for_each_group_and_never_over_a_file(tmp_path: Path) -> None:
    other = Finding(Plan("desk", Fault.LATE), "ended", [])
    (tmp_path / "tests").mkdir()
    mine = tmp_path / "tests" / "test_prove_desk_late_events.py"
    mine.write_text("mine", "utf-8")

    lines = list(save(tmp_path, found(FINDING, FINDING, other)))

    assert lines == [
        "wrote tests/test_prove_desk_kill_after_changed_delete_configmaps_desk.py",
        "tests/test_prove_desk_late_events.py is there, and was left as it is",
    ]
    assert mine.read_text("utf-8") == "mine"
    assert len(list((tmp_path / "tests").iterdir())) == 2


def test_a_time_below_zero_is_refused_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^--shrink -1: use 0, to look for no smaller sample, or more seconds$"):
        survival.run(tmp_path, prove.Options(shrink=-1), report="")
