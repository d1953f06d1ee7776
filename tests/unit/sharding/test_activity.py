"""Activity: when nothing works on a bucket any longer; Deadlines: one watchdog for many terms."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest

from bonny.calling import HANDLER_THREAD
from bonny.sharding import terms
from bonny.sharding.terms import Deadlines
from bonny.sharding.worker import Activity


def test_a_bucket_rests_when_each_slot_that_worked_on_it_has_ended() -> None:
    async def main() -> None:
        activity = Activity(16)
        one, two = (asyncio.create_task(asyncio.sleep(60)) for _ in range(2))
        activity.began(one, 3)
        activity.began(two, 3)
        activity.began(two, 4)  # a slot whose key is recreated in another bucket
        assert [activity.rests(bucket) for bucket in (2, 3, 4)] == [True, False, False]
        activity.ended(two)
        assert [activity.rests(bucket) for bucket in (3, 4)] == [False, True]
        activity.ended(one)
        assert activity.rests(3)
        activity.ended(one)  # a slot that reconciled nothing
        for task in (one, two):
            task.cancel()

    asyncio.run(main())


def test_only_the_slots_of_a_bucket_are_cancelled_and_each_once() -> None:
    async def main() -> None:
        activity = Activity(16)
        ours, other = (asyncio.create_task(asyncio.sleep(60)) for _ in range(2))
        activity.began(ours, 3)
        activity.began(other, 4)
        activity.cancel(3)
        activity.cancel(3)
        assert (ours.cancelling(), other.cancelling()) == (1, 0)
        assert (activity.is_cancelled(ours), activity.is_cancelled(other)) == (True, False)
        activity.ended(ours)
        assert not activity.is_cancelled(ours)
        other.cancel()

    asyncio.run(main())


@pytest.fixture
def thread() -> Iterator[tuple[threading.Thread, threading.Event]]:
    """A handler that runs in a thread until the event is set."""
    ends = threading.Event()
    running = threading.Thread(target=ends.wait, name=HANDLER_THREAD, daemon=True)
    running.start()
    yield running, ends
    ends.set()


def test_a_bucket_whose_slot_was_cancelled_rests_only_when_the_threads_of_handlers_have_ended(
    thread: tuple[threading.Thread, threading.Event],
) -> None:
    """A thread cannot be cancelled: its handler may still work on the object."""
    running, ends = thread

    async def main() -> None:
        activity = Activity(16)
        slot = asyncio.create_task(asyncio.sleep(60))
        activity.began(slot, 3)
        activity.cancel(3)
        activity.ended(slot)
        assert not activity.rests(3)
        assert activity.rests(4)
        ends.set()
        running.join()
        assert activity.rests(3)

    asyncio.run(main())


def test_a_bucket_whose_handlers_returned_rests_although_others_run_in_threads(
    thread: tuple[threading.Thread, threading.Event],
) -> None:
    async def main() -> None:
        activity = Activity(16)
        slot = asyncio.create_task(asyncio.sleep(0))
        activity.began(slot, 3)
        activity.ended(slot)
        assert activity.rests(3)
        await slot

    asyncio.run(main())


class Watchdog:
    """Notes when it would end the process."""

    def __init__(self, _: str) -> None:
        self.at: float | None = None

    def arm(self, at: float) -> None:
        self.at = at

    def disarm(self) -> None:
        self.at = None


def test_the_process_ends_at_the_earliest_deadline_of_all_terms(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Watchdog] = []
    monkeypatch.setattr(terms, "_Watchdog", lambda name: made.append(Watchdog(name)) or made[-1])
    deadlines = Deadlines("op")
    (watchdog,) = made
    one, two = deadlines.of("one"), deadlines.of("two")
    one.arm(20.0)
    two.arm(10.0)
    assert watchdog.at == 10.0
    two.arm(30.0)
    assert watchdog.at == 20.0
    one.disarm()
    assert watchdog.at == 30.0
    one.disarm()
    two.disarm()
    assert watchdog.at is None
