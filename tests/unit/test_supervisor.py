"""Supervisor: when a part is started again, and how it ends. Time is virtual."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bonny import Controller
from bonny.controller import Restart
from bonny.run.supervisor import RESTART_SECONDS, Supervised, ended
from tests.support.virtual import Clock
from tests.support.working import WIDGET, worker_of


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


class Part:
    """Ends the way that the test says, or runs until it is stopped."""

    def __init__(self, *ends: Exception | None) -> None:
        self.ends = [*ends]
        self.runs = 0
        self.stopped = asyncio.Event()

    def __str__(self) -> str:
        return "the part"

    async def run(self) -> None:
        self.runs += 1
        if not self.ends:
            await self.stopped.wait()
        elif (error := self.ends.pop(0)) is not None:
            raise error

    def stop(self) -> None:
        self.stopped.set()


@pytest.mark.parametrize(
    ("restart", "end", "runs", "failed"),
    [
        (Restart.PERMANENT, RuntimeError(), 2, False),
        (Restart.TRANSIENT, RuntimeError(), 2, False),
        (Restart.TEMPORARY, RuntimeError(), 1, True),
        (Restart.PERMANENT, None, 2, False),
        (Restart.TRANSIENT, None, 1, False),
        (Restart.TEMPORARY, None, 1, False),
    ],
)
def test_a_part_that_ended_is_started_again_as_its_restart_says(
    clock: Clock, restart: Restart, end: Exception | None, runs: int, failed: bool
) -> None:
    async def main() -> None:
        part = Part(end)
        supervised = Supervised(part, restart=restart)
        await asyncio.sleep(2 * RESTART_SECONDS)
        assert (part.runs, supervised.failed, supervised.task.done()) == (runs, failed, runs == 1)
        supervised.task.cancel()

    clock.run(main)


def test_a_part_that_fails_again_and_again_is_started_once_a_second(clock: Clock) -> None:
    async def main() -> None:
        part = Part(*10 * [RuntimeError()])
        supervised = Supervised(part)
        await asyncio.sleep(5 * RESTART_SECONDS + 0.5)
        assert part.runs == 6
        supervised.task.cancel()

    clock.run(main)


@pytest.mark.parametrize("ends", [(), (None,), (RuntimeError(),)])
def test_a_retired_part_that_ends_is_not_started_again_and_is_not_waited_for(
    clock: Clock, ends: tuple[Exception | None, ...]
) -> None:
    async def main() -> None:
        part = Part(*ends)
        supervised = Supervised(part)
        supervised.final = True
        part.stop()
        began = clock.now
        assert await ended([supervised.task], seconds=10.0) == set()
        assert (clock.now, part.runs) == (began, 0)

    clock.run(main)


def test_a_part_that_fails_while_it_stops_is_not_started_again(clock: Clock) -> None:
    class Fails(Part):
        async def run(self) -> None:
            await super().run()
            raise RuntimeError

    async def main() -> None:
        part = Fails()
        supervised = Supervised(part)
        await asyncio.sleep(0.1)
        supervised.final = True
        part.stop()
        assert await ended([supervised.task], seconds=0.1) == set()
        assert part.runs == 1

    clock.run(main)


class Slow(Controller[Any]):
    """Never returns by itself."""

    resource = WIDGET


@pytest.mark.parametrize("shutdown_timeout", [None, 0.0, 2.0])
def test_a_worker_that_is_stopped_gives_handlers_its_own_time_and_then_cancels_them(
    clock: Clock, shutdown_timeout: float | None, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        worker = worker_of(controller=Slow.configured(shutdown_timeout=shutdown_timeout)())
        handling = asyncio.create_task(asyncio.sleep(100.0))
        worker.running[handling] = clock.now
        run = asyncio.create_task(worker.run())
        await asyncio.sleep(0.1)
        worker.stop()
        began = clock.now
        late = await ended([run], seconds=5.0)
        assert clock.now - began == pytest.approx(5.0 if shutdown_timeout is None else shutdown_timeout)
        assert bool(late) is (shutdown_timeout is None)
        assert handling.cancelled()

    clock.run(main)
    assert [record.getMessage() for record in caplog.records] == ["cancelled running handlers: grace period exceeded"]


def test_a_worker_whose_streams_are_not_in_sync_stops_at_once(clock: Clock) -> None:
    async def main() -> None:
        worker = worker_of()
        run = asyncio.create_task(worker.run())
        await asyncio.sleep(1.0)
        worker.stop()
        began = clock.now
        assert await ended([run], seconds=25.0) == set()
        assert clock.now == began

    clock.run(main)


def test_the_run_of_a_worker_goes_on_while_a_handler_ignores_its_cancellation(clock: Clock) -> None:
    async def ignores() -> None:
        for _ in range(2):
            try:
                await asyncio.sleep(100.0)
            except asyncio.CancelledError:
                continue

    async def main() -> None:
        worker = worker_of()
        worker.running[asyncio.create_task(ignores())] = clock.now
        run = asyncio.create_task(worker.run())
        await asyncio.sleep(1.0)
        worker.stop()
        assert await ended([run], seconds=2.0) == {run}
        assert not run.done()
        await asyncio.sleep(100.0)
        assert run.done()

    clock.run(main)
