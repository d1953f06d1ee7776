"""`invoke migrate` as a task: its kinds, options and exit codes. The rest is in `integration/test_migrate.py`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from invoke.context import Context
from invoke.exceptions import Exit

from bonny import Controller, Operator, Resource
from bonny_dev import tasks
from bonny_dev.project import Project
from tests.support.widget import Widget


class Widgets(Controller[Widget]):
    """Does nothing."""

    async def reconcile(self, axn: Any) -> None: ...


@pytest.fixture
def context(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Context:
    operator = Operator(name="widgets", group="example.com", controllers=[Widgets])
    monkeypatch.setattr(Project, "at", lambda root: SimpleNamespace(load_operator=lambda: operator))
    monkeypatch.setattr("bonny_dev.tasks.deploy.cluster_of", str)
    return cast("Context", SimpleNamespace(root=str(tmp_path)))


def test_an_unknown_kind_is_refused_with_the_kinds_that_there_are(context: Context) -> None:
    with pytest.raises(Exit, match=r"^the operator has no kind Gadget: it has Widget$") as raised:
        tasks.migrate_kind.body(context, "Gadget")
    assert raised.value.code == 2


def test_a_warning_of_the_api_server_is_shown_with_its_text(tmp_path: Path) -> None:
    """Regression: tasks printed `the API server warns`, and nothing else."""
    named = {
        "name": "a",
        "cluster": {"server": "http://127.0.0.1:1"},
        "user": {},
        "context": {"cluster": "a", "user": "a"},
    }
    kubeconfig = {"current-context": "a", "clusters": [named], "users": [named], "contexts": [named]}
    (tmp_path / "kubeconfig").write_text(json.dumps(kubeconfig), "utf-8")
    code = (
        "import logging; from bonny_dev.tasks.deploy import cluster_of; cluster_of('');"
        "logging.getLogger('bonny').warning('the API server warns', extra={'warning': 'v1 Widget is deprecated'})"
    )
    environment = {**os.environ, "KUBECONFIG": str(tmp_path / "kubeconfig")}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stderr.rstrip().endswith('the API server warns     warning="v1 Widget is deprecated"')


def test_objects_that_were_refused_are_exit_code_1(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[tuple[Any, ...]] = []

    async def migrate(cluster: Any, declared: Resource, *, removed: Sequence[str], dry_run: bool) -> bool:
        called.append((cluster, declared["metadata"]["name"], list(removed), dry_run))
        return dry_run

    monkeypatch.setattr("bonny_dev.tasks.migrate.migrate", migrate)
    tasks.migrate_kind.body(context, "Widget", dry_run=True)
    with pytest.raises(Exit) as raised:
        tasks.migrate_kind.body(context, "Widget", remove_version=["v1alpha1"], context="kind")
    assert raised.value.code == 1
    assert called == [
        ("", "widgets.example.com", [], True),
        ("kind", "widgets.example.com", ["v1alpha1"], False),
    ]
