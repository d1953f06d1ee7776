"""Permissions, decided by the real RBAC: what is missing is found when it is used, and said."""

from __future__ import annotations

import sys
from pathlib import Path

from bonny.sandbox import Sandbox
from tests.conftest import Start

ROOT = Path(__file__).parents[2]
DOOR = {
    "apiVersion": "doors.example.com/v1",
    "kind": "Door",
    "metadata": {"name": "front", "namespace": "default"},
    "spec": {},
}
READS_A_SECRET = '{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}'


def test_run_local_says_in_the_end_which_permissions_are_missing_and_which_were_not_used(
    sandbox: Sandbox, start_operator: Start
) -> None:
    at_work = start_operator([sys.executable, "-m", "tests.support.undeclared"], cwd=ROOT).wait_ready()
    sandbox.apply(DOOR)
    Sandbox.eventually(lambda: "default/front" in at_work.text)

    code, _ = at_work.stop()

    assert code == 0, at_work.text
    said = at_work.text.splitlines()
    missing = said.index("permissions used but not granted; add to `rules` of the controller that needs them:")
    unused = said.index("permissions granted but never used this time:")
    assert said[missing + 1 : unused] == [f"  {READS_A_SECRET}  # in default"]
    assert '  {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create", "patch", "delete"]}' in said[unused:]
    assert "leases" not in "".join(said[missing:])
