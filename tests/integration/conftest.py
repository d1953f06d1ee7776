"""Fixtures of the tests on a real API server: one sandbox a session, and operators as processes of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.processes import OperatorProcess

from bonny.sandbox import Sandbox
from bonny.sandbox.guard import Guard


Start = Callable[..., OperatorProcess]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything in this folder needs the server."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker("server")


@pytest.fixture
def start_operator(sandbox: Sandbox, tmp_path: Path) -> Iterator[Start]:
    """Starts operators; those that still run when the test ends are killed."""
    guards: list[Guard] = []

    def start(command: list[str], *, kubeconfig: Path | None = None, cwd: Path | None = None) -> OperatorProcess:
        guard = Guard(tmp_path / f"operator-{len(guards)}")
        guards.append(guard)
        return OperatorProcess(guard, command, kubeconfig=kubeconfig or sandbox.kubeconfig, cwd=cwd)

    yield start
    for guard in guards:
        guard.close()
