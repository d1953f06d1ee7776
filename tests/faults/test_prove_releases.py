"""`invoke prove` from one release of an operator to the next, and back; what it says of permissions, and saves."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bonny_dev import prove
from bonny_dev.prove.causes import Cause
from bonny_dev.prove.plans import Fault
from bonny_dev.prove.release import NO_TAG
from bonny_dev.prove.saved import save
from bonny_dev.sandbox import Sandbox
from tests.support.breaking import edit, release, repository

RELEASES = prove.Options(only=["desk/upgrade", "desk/downgrade"])


@pytest.mark.slow
def test_a_record_that_a_new_release_forgets_is_found(tmp_path: Path) -> None:
    root = repository(tmp_path, "sound", package="lamps_moved")
    release(root, "v1.0.0")
    edit(root / "src" / "lamps_moved" / "controllers.py", "/lamps/", "/lights/")

    report = prove.prove(root, RELEASES, say=print)

    (finding,) = report.findings
    assert finding.sentence == (
        "the last release runs, and then this version: an object of v1.0.0 does not end as one that this version "
        "creates: record /lamps/(UID of desk) should not be there"
    )
    assert [plan.name for plan in report.passed] == ["desk/downgrade"]
    assert report.notes == [
        "after the way back from this version to v1.0.0: record /lights/(UID of desk) should not be there"
    ]


@pytest.mark.slow
def test_nothing_is_found_in_a_release_that_adds_a_field(tmp_path: Path) -> None:
    root = repository(tmp_path, "sound", package="lamps_grown")
    release(root, "v1.0.0")
    edit(root / "src" / "lamps_grown" / "lamp.py", "    note: str", "    shade: int = 3\n    note: str")

    report = prove.prove(root, RELEASES, say=print)

    assert report.findings == [], "\n".join(report.lines())
    assert [plan.name for plan in report.passed] == ["desk/upgrade", "desk/downgrade"]


@pytest.mark.slow
def test_a_definition_that_refuses_objects_of_the_last_release_is_found(tmp_path: Path) -> None:
    root = repository(tmp_path, "sound", package="lamps_strict")
    release(root, "v1.0.0")
    edit(root / "src" / "lamps_strict" / "lamp.py", "    note: str", "    shade: int\n    note: str")

    report = prove.prove(root, RELEASES, say=print)

    text = "\n".join(report.lines())
    assert {each.plan.fault for each in report.findings} >= {Fault.UPGRADE}, text
    assert "applying Lamp desk" in text
    assert "spec.shade: Required value" in text
    assert Cause.DEFINITION in text
