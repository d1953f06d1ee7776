"""`run-local --reload` without what it needs. With it: tests/integration/test_run_local.py."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bonny.errors import UsageError
from bonny_dev.project import Project
from bonny_dev.tasks.options import LocalRun
from bonny_dev.tasks.reload import run_reloading

HERE = Project(root=Path(), package="p", image="i", version="1")


def test_without_watchfiles_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "watchfiles", None)
    with pytest.raises(UsageError, match="pip install watchfiles"):
        run_reloading(HERE, LocalRun())


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (LocalRun(sandbox=True, context="kind"), "exclude each other"),
        (LocalRun(workloads=True), "--workloads needs --sandbox"),
        (LocalRun(sandbox=True, namespace="Not_A_Name"), "Not_A_Name"),
    ],
)
def test_a_flag_that_no_edit_would_mend_is_refused_at_once(options: LocalRun, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        run_reloading(HERE, options)
