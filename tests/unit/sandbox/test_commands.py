"""`sandbox.start` and `sandbox.stop` around the state of a project: stale, busy, absent."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from bonny.errors import UsageError
from bonny_dev.sandbox import commands
from bonny_dev.sandbox.lock import try_lock

STATE = {"pid": 1, "url": "https://127.0.0.1:6443", "kubeconfig": "/tmp/bonny-sandbox-x/kubeconfig"}


def test_stopping_what_does_not_run_says_so(tmp_path: Path) -> None:
    said: list[str] = []

    commands.stop(tmp_path, say=said.append)

    assert said == ["No sandbox is running in this project."]
    assert (tmp_path / ".sandbox" / ".gitignore").read_text(encoding="utf-8") == "*\n"


@pytest.mark.parametrize("stale", [json.dumps(STATE), "{cut in ha", ""])
def test_a_state_left_by_a_killed_sandbox_is_removed(tmp_path: Path, stale: str) -> None:
    home = commands.project_folder(tmp_path)
    (home / "state.json").write_text(stale, encoding="utf-8")
    said: list[str] = []

    commands.stop(tmp_path, say=said.append)

    assert said == ["No sandbox is running in this project."]
    assert not (home / "state.json").exists()


def test_starting_where_one_runs_prints_its_lines_and_starts_nothing(tmp_path: Path) -> None:
    home = commands.project_folder(tmp_path)
    lock = try_lock(home / "lock")
    assert lock is not None
    (home / "state.json").write_text(json.dumps(STATE), encoding="utf-8")
    said: list[str] = []
    try:
        commands.start(tmp_path, say=said.append)
    finally:
        os.close(lock)

    assert said[0] == "A sandbox is already running in this project:"
    assert said[1:] == ["  export KUBECONFIG=/tmp/bonny-sandbox-x/kubeconfig", "  kubectl get namespaces"]


def test_workloads_where_a_sandbox_without_them_runs_are_refused(tmp_path: Path) -> None:
    home = commands.project_folder(tmp_path)
    lock = try_lock(home / "lock")
    assert lock is not None
    (home / "state.json").write_text(json.dumps(STATE), encoding="utf-8")
    try:
        for task in (commands.start, commands.run):
            with pytest.raises(UsageError, match=r"a sandbox without workloads is already running .* sandbox\.stop"):
                task(tmp_path, workloads=True, say=lambda _: None)
    finally:
        os.close(lock)


class Server:
    running = True


class Servers:
    servers = (Server(),)


def test_a_sandbox_ends_when_its_hours_are_over(tmp_path: Path) -> None:
    commands.watch(Servers(), tmp_path, seconds=0.0)  # type: ignore[arg-type]  only its servers are used


def test_a_sandbox_that_cannot_start_in_the_background_shows_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "find_or_build", lambda _: {})
    for name in ("TEST_ASSET_ETCD", "TEST_ASSET_KUBE_APISERVER"):
        monkeypatch.setenv(name, str(tmp_path / "missing"))

    with pytest.raises(UsageError, match=r"(?s)the sandbox did not start; its output:\n.*TEST_ASSET_ETCD"):
        commands.start(tmp_path, say=lambda _: None)

    assert not (tmp_path / ".sandbox" / "state.json").exists()


def test_a_sandbox_that_is_just_starting_is_one_sentence(tmp_path: Path) -> None:
    lock = try_lock(commands.project_folder(tmp_path) / "lock")
    assert lock is not None
    try:
        with pytest.raises(UsageError, match="is just starting or stopping: try again in a moment"):
            commands.stop(tmp_path)
    finally:
        os.close(lock)
