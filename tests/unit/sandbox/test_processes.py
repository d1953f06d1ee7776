"""One server process: start, failure, and what fault tests do with it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bonny.errors import UsageError
from bonny_dev.sandbox.guard import Guard
from bonny_dev.sandbox.processes import SandboxError, ServerProcess, failure


@pytest.fixture
def guard(tmp_path: Path) -> Iterator[Guard]:
    with Guard(tmp_path / "guarded") as guard:
        yield guard


def server(guard: Guard, script: str, *, ready: bool = True, start_seconds: float = 5.0) -> ServerProcess:
    return ServerProcess("etcd", ["sh", "-c", script], guard=guard, is_ready=lambda: ready, start_seconds=start_seconds)


def test_a_server_that_stops_at_once_shows_its_own_errors(guard: Guard) -> None:
    with pytest.raises(UsageError, match=r"etcd stopped .* s after its start \(code 3\); its last lines:") as failure:
        server(guard, "echo reading flags; echo 'Error: unknown flag: --shiny'; exit 3", ready=False)

    assert str(failure.value).splitlines()[1:] == ["    reading flags", "    Error: unknown flag: --shiny"]


def test_a_server_that_is_never_ready_shows_its_last_lines(guard: Guard) -> None:
    with pytest.raises(SandboxError, match="was not ready 0 s after its start; its last lines:\n    waiting for godot"):
        server(guard, "echo waiting for godot; sleep 600", ready=False, start_seconds=0.3)


def test_a_killed_server_can_be_started_again(guard: Guard) -> None:
    sleeper = server(guard, "sleep 600")
    first = sleeper.pid

    sleeper.kill()
    assert not sleeper.running
    sleeper.start()

    assert sleeper.running
    assert sleeper.pid != first


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_paused_server_stands_still_at_once(guard: Guard) -> None:
    """Regression: on a busy machine it still answered what was asked right after `pause`."""
    busy = server(guard, "while :; do :; done")
    for _ in range(20):
        busy.pause()
        state = Path(f"/proc/{busy.pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0]
        busy.resume()
        assert state == "T"


def test_terminate_ends_a_paused_server(guard: Guard) -> None:
    sleeper = server(guard, "sleep 600")
    sleeper.pause()

    sleeper.terminate()

    assert not sleeper.running


def test_terminate_kills_a_server_that_ignores_it(guard: Guard) -> None:
    stubborn = server(guard, "trap '' TERM; while :; do sleep 0.05; done")

    stubborn.terminate(within_seconds=0.2)

    assert not stubborn.running


def test_starting_twice_is_refused(guard: Guard) -> None:
    sleeper = server(guard, "sleep 600")
    with pytest.raises(SandboxError, match=r"etcd already runs \(pid"):
        sleeper.start()


def test_of_a_failure_the_last_lines_are_shown(tmp_path: Path) -> None:
    log = tmp_path / "etcd.log"
    log.write_text("".join(f"line {number}\n\n" for number in range(20)), "utf-8")

    assert str(failure("etcd stopped", log)).splitlines() == ["etcd stopped", *(f"    line {n}" for n in range(12, 20))]
