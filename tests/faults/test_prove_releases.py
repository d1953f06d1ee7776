"""`invoke prove` from one release of an operator to the next, and back; what it says of permissions, and saves."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bonny_dev import prove
from bonny_dev.project import Project
from bonny_dev.prove import run
from bonny_dev.prove.causes import Cause
from bonny_dev.prove.plans import Fault
from bonny_dev.prove.prepared import prepared
from bonny_dev.prove.release import NO_TAG
from bonny_dev.prove.saved import save
from bonny_dev.prove.stage import staged
from bonny_dev.prove.variants import samples_of
from bonny_dev.sandbox import Sandbox
from tests.support.breaking import BROKEN, ROOT, edit, release, repository

SAMPLE = """apiVersion: broken.example.com/v1
kind: Lamp
metadata: {name: desk}
spec: {}
"""
NEEDLESS = """from bonny import Axn, Controller

from .lamp import Lamp, LampStatus


class LampController(Controller[Lamp]):
    rules = ({"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]},)

    async def reconcile(self, axn: Axn[Lamp]) -> None:
        axn.update_status(LampStatus(made=True))
"""
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


def test_a_history_begins_before_any_definition_is_there(tmp_path: Path) -> None:
    """Regression: no upgrade was tried, because the API server did not serve the kind before the first release."""
    root = repository(tmp_path, "sound", package="lamps_early")
    project = Project.at(root)
    operator = project.load_operator()
    samples, _ = samples_of(operator, root / "samples", {"desk": SAMPLE})
    with Sandbox() as empty:
        setup, _ = prepared(project, operator, empty, samples, externals=(), seed=0)
        with staged(setup) as stage, stage.history(samples[0]):
            assert empty.request("GET", "/apis/broken.example.com/v1").status == 404


def test_a_request_that_is_not_granted_is_found_with_the_rule_to_add(sandbox: Sandbox, tmp_path: Path) -> None:
    root = repository(tmp_path, "counter", package="lamps_forbidden")
    edit(root / "src" / "lamps_forbidden" / "lamp.py", '"create", ', "")

    report = prove.prove(root, prove.Options(only=["desk/undisturbed"]), say=print, sandbox=sandbox)

    (finding,) = [each for each in report.findings if each.cause is Cause.ACCESS]
    assert finding.sentence == (
        "without any fault: the operator sends a request that is not granted: add to the ClusterRole: "
        '- {apiGroups: [""], resources: ["configmaps"], verbs: [create]}'
    )


@pytest.mark.slow
def test_a_rule_that_no_life_needed_is_found_after_all_lives(sandbox: Sandbox, tmp_path: Path) -> None:
    root = repository(tmp_path, "stale_cache", package="lamps_needless")
    (root / "src" / "lamps_needless" / "controllers.py").write_text(NEEDLESS, "utf-8")

    report = prove.prove(root, prove.Options(samples={"desk": SAMPLE}), say=print, sandbox=sandbox)

    (finding,) = report.findings
    assert finding.sentence == (
        "in all lives: no life needed this rule: get of secrets; remove it, or add a sample that needs it"
    )
    assert report.command(finding) == "invoke prove --seed 0"
    assert report.notes[0] == NO_TAG
    assert all(note.startswith("not needed by any life, and kept: ") for note in report.notes[1:])


@pytest.mark.slow
def test_a_finding_is_shrunk_and_saved_as_a_test_that_fails_until_it_is_fixed(sandbox: Sandbox, tmp_path: Path) -> None:
    root = repository(tmp_path, "recreated_child", package="lamps_saved")
    options = prove.Options(only=["desk/kill-after/changed/delete-*"], shrink=120)

    report = prove.prove(root, options, say=print, sandbox=sandbox)

    (finding,) = report.findings
    assert finding.smallest.endswith("spec: {}\n")
    (line,) = save(root, report)
    path = root / line.removeprefix("wrote ")
    (root / "conftest.py").write_text('pytest_plugins = ["bonny_dev.testing.plugin"]\n', "utf-8")
    assert exit_code_of_pytest(path) == 1
    source = root / "src" / "lamps_saved"
    (source / "controllers.py").write_text((BROKEN / "sound.py").read_text("utf-8"), "utf-8")
    assert exit_code_of_pytest(path) == 0


def exit_code_of_pytest(path: Path) -> int:
    """The exit code of pytest, in a process of its own."""
    root = path.parents[1]
    settings = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (ROOT / "runtime", root / "src")))}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(root), str(path)]
    return subprocess.run(command, cwd=root, env=settings, check=False).returncode


@pytest.mark.slow
def test_ctrl_c_while_a_smaller_sample_is_looked_for_leaves_the_findings(
    sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    root = repository(tmp_path, "recreated_child", package="lamps_interrupted")
    monkeypatch.setattr(run, "smallest", interrupted)
    options = prove.Options(only=["desk/kill-after/changed/delete-*"], shrink=120)

    with pytest.raises(KeyboardInterrupt) as stopped:
        prove.prove(root, options, say=print, sandbox=sandbox)

    (report,) = stopped.value.args
    assert report.interrupted
    assert [each.plan.fault for each in report.findings] == [Fault.KILL_AFTER]
