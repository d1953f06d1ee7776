"""Fixtures for all tests: `sandbox` from the runtime's own plugin, and operators as processes of their own."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bonny import leader
from bonny.sandbox import Sandbox
from bonny.sandbox.guard import Guard
from tests.support.processes import OperatorProcess

pytest_plugins = ["bonny.testing.plugin"]

Start = Callable[..., OperatorProcess]
# Everything in these folders needs etcd and kube-apiserver.
SERVER_FOLDERS = ("conformance", "integration", "faults")
LAST_LINES = 60


def pytest_configure() -> None:
    """Let tests send SIGINT to what they start.

    Regression: a shell's background job, as CI can be, ignores SIGINT, and hands that on to every child.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.relative_to(Path(__file__).parent).parts[0] in SERVER_FOLDERS:
            item.add_marker("server")


@pytest.fixture(autouse=True)
def _the_end_of_a_lease_is_that_of_one_test(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Regression: where this process stood still for as long as a short lease, its watchdog ended all the tests."""
    ended: list[str] = []

    def look(watchdog: leader._Watchdog) -> None:
        if leader.clock() >= watchdog._at:
            ended.append(watchdog._line.decode())
            watchdog.disarm()

    monkeypatch.setattr(leader._Watchdog, "_look", look)
    yield
    assert ended == []


@pytest.fixture
def start_operator(sandbox: Sandbox, tmp_path: Path) -> Iterator[Start]:
    """Starts operators; those that still run when the test ends are killed."""
    guards: list[Guard] = []
    started: list[OperatorProcess] = []

    def start(
        command: list[str], *, kubeconfig: Path | None = None, cwd: Path | None = None, **settings: str
    ) -> OperatorProcess:
        guard = Guard(tmp_path / f"operator-{len(guards)}")
        guards.append(guard)
        made = OperatorProcess(guard, command, kubeconfig=kubeconfig or sandbox.kubeconfig, cwd=cwd, settings=settings)
        started.append(made)
        return made

    yield start
    # pytest shows it beside a failure.
    for operator in started:
        print(f"--- {operator.log_file}", *operator.text.splitlines()[-LAST_LINES:], sep="\n")
    for guard in guards:
        guard.close()
