"""Throttled: one answer 429 of an external system makes all objects of a controller wait, and nothing else."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from bonny import Axn, Key, Throttled
from bonny.client.errors import refusal
from bonny.core.objects import Failure
from bonny.core.queue import Reason
from bonny.engine.worker import LONGEST_ADVICE, Worker
from bonny.errors import OptionError
from bonny.pipeline import failure_of
from bonny.servers.watcher import Watcher
from bonny.steps import DelegateToController
from tests.support.core import thing
from tests.support.virtual import Clock
from tests.support.working import NO_CLIENT, WIDGET, Quiet, at_work, lists, says, worker_of


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


class Calls(Quiet):
    """Calls an API, which refuses the first call for the object `first`."""

    max_concurrent = 2
    seconds = 30.0

    def __init__(self) -> None:
        self.calls: list[tuple[float, str]] = []

    async def reconcile(self, axn: Axn[Any]) -> None:
        await self.call(axn)

    async def delete(self, axn: Axn[Any]) -> None:
        await self.call(axn)

    async def call(self, axn: Axn[Any]) -> None:
        self.calls.append((round(time.monotonic() - BEGAN, 1), f"{axn.action} {axn.key.name}"))
        await asyncio.sleep(1.0)
        if axn.key.name == "first" and axn.tries == 0:
            raise Throttled("429 from the DNS API", after=self.seconds)


BEGAN = 1000.0
NAMES = ("first", "second", "third")


def calls_of(worker: Worker) -> list[tuple[float, str]]:
    calls: list[tuple[float, str]] = worker._controller.calls  # type: ignore[attr-defined]
    return calls


def test_all_objects_wait_changed_and_deleted_ones_too_and_another_controller_goes_on(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> tuple[Worker, Worker]:
        one, other = worker_of(DelegateToController(), controller=Calls()), worker_of(controller=Quiet())
        stream = one.router.primary[0]
        await lists(stream, *(thing(name, generation=1) for name in NAMES))
        await lists(other.router.primary[0], thing("a"))
        async with at_work(one), at_work(other):
            await asyncio.sleep(5)
            await says(stream, "ADDED", thing("fourth", version=20, generation=1))
            await says(stream, "MODIFIED", thing("second", version=21, generation=2))
            await says(stream, "DELETED", thing("third", version=22, generation=1))
            other.router.queue.add(Key("default", "a"), Reason.RELATED, now=time.monotonic())
            other.router.wake()
            await asyncio.sleep(20)
            assert other.handled == 2, "own-kind isolation"
            assert not one.stuck
            assert one.router.queue.statistics(now=time.monotonic()).ready == 3
            await asyncio.sleep(20)
        return one, other

    one, _ = clock.run(main)
    calls = calls_of(one)
    assert calls[:2] == [(0.0, "add first"), (0.0, "add second")]
    # 30 s after the answer, which came after 1 s; two at a time, each for 1 s.
    assert [at for at, _ in calls[2:]] == [31.0, 31.0, 32.0, 32.0]
    assert sorted(call for _, call in calls[2:]) == ["add first", "add fourth", "delete third", "modify second"]
    (line,) = [vars(each) for each in caplog.records if each.message == "controller paused"]
    assert (line["controller"], line["object"], line["retry_in_seconds"]) == ("Calls", "default/first", 30.0)
    assert line["error"].startswith("429 from the DNS API")


def test_the_other_kinds_of_the_controller_wait_too(clock: Clock) -> None:
    async def main() -> Calls:
        controller = Calls()
        one, two = (worker_of(DelegateToController(), controller=controller) for _ in range(2))
        await lists(one.router.primary[0], thing("first", generation=1))
        async with at_work(one), at_work(two):
            await asyncio.sleep(5)
            await lists(two.router.primary[0], thing("other kind", generation=1))
            await asyncio.sleep(60)
        return controller

    assert [call for call in clock.run(main).calls if call[0] < 31.0] == [(0.0, "add first")]


def test_an_answer_that_asks_for_a_day_is_bounded(clock: Clock) -> None:
    class Day(Calls):
        seconds = 86_400.0

    async def main() -> Worker:
        worker = worker_of(DelegateToController(), controller=Day())
        await lists(worker.router.primary[0], thing("first", generation=1), thing("second", generation=1))
        async with at_work(worker):
            await asyncio.sleep(5)
            await says(worker.router.primary[0], "ADDED", thing("third", version=20, generation=1))
            await asyncio.sleep(LONGEST_ADVICE)
        return worker

    late = [(at, call) for at, call in calls_of(clock.run(main)) if at > 1.0]
    assert sorted(late) == [(LONGEST_ADVICE + 1.0, "add first"), (LONGEST_ADVICE + 1.0, "add third")]


def test_an_answer_of_the_api_server_that_asks_for_a_day_delays_its_object_for_a_bounded_time(clock: Clock) -> None:
    """A proxy in front of the API server may answer 429 or 503 with any Retry-After."""
    calls: list[float] = []

    def refused(axn: Axn[Any]) -> None:
        calls.append(round(time.monotonic() - BEGAN, 1))
        if axn.tries == 0:
            raise refusal(Failure(429, "TooManyRequests", retry_after=86_400.0), verb="get", resource="secrets a/b")

    async def main() -> None:
        worker = worker_of(refused)
        await lists(worker.router.primary[0], thing("first", generation=1))
        async with at_work(worker):
            await asyncio.sleep(2 * LONGEST_ADVICE)

    clock.run(main)
    assert calls == [0.0, LONGEST_ADVICE]


def test_reconciles_in_progress_go_on_and_the_pause_that_ends_last_counts(clock: Clock) -> None:
    """Ten handlers may get a 429 at the same time, with different times."""

    class Both(Calls):
        async def call(self, axn: Axn[Any]) -> None:
            self.calls.append((round(time.monotonic() - BEGAN, 1), axn.key.name))
            long = axn.key.name == "first"
            await asyncio.sleep(1.0 if long else 2.0)
            if axn.tries == 0:
                raise Throttled(after=40.0 if long else 5.0)

    async def main() -> Worker:
        worker = worker_of(DelegateToController(), controller=Both())
        await lists(worker.router.primary[0], thing("first", generation=1), thing("second", generation=1))
        async with at_work(worker):
            await asyncio.sleep(60)
            assert worker.meters.requeued_after == 2
            assert worker.meters.errors == 0, "it is not an error"
        return worker

    assert [at for at, _ in calls_of(clock.run(main))] == [0.0, 0.0, 41.0, 41.0]


def test_the_handlers_of_a_watcher_pause_as_well(clock: Clock) -> None:
    calls: list[tuple[float, str]] = []

    class Mirrors(Watcher):
        operation = WIDGET

        async def add(self, resource: Any) -> None:
            calls.append((round(time.monotonic() - BEGAN, 1), resource["metadata"]["name"]))
            if len(calls) == 1:
                raise Throttled(after=30)

    async def main() -> None:
        watcher = Mirrors(NO_CLIENT)
        await lists(watcher.streams[0], thing("first"))
        async with at_work(watcher.worker):
            await asyncio.sleep(1)
            await says(watcher.streams[0], "ADDED", thing("second", version=20))
            await asyncio.sleep(60)

    clock.run(main)
    assert sorted(calls) == [(0.0, "first"), (30.0, "first"), (30.0, "second")]


def test_the_condition_of_the_object_says_why() -> None:
    failure = failure_of(Throttled("429 from the DNS API", after=30))
    assert (failure.reason, failure.message) == ("Throttled", "429 from the DNS API")
    assert str(Throttled(after=1)) == "an external system throttles requests"
    with pytest.raises(OptionError, match=r"^Throttled\(after=-1\): use 0 or more seconds"):
        Throttled(after=-1)
