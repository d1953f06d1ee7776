"""Objects after an outage: how long each stays wrong, and what its tries cost meanwhile. The queue in virtual time."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest

from bonny.core.backoff import Backoff
from bonny.core.queue import QUEUE_BACKOFF, Queue, Reason

OBJECTS = 500
OUTAGES = (1.0, 5.0, 15.0, 38.0, 75.0, 150.0, 300.0, 3600.0)
# A reconcile while the API server refuses at once, and while a webhook does not answer within its timeout.
INSTANT, SLOW = 0.0, 9.0


@dataclass(frozen=True)
class Course:
    """The tries of all objects during an outage that begins at 0, and when each was right, counted from its end."""

    tries: list[list[float]]
    late: list[float]

    def between(self, start: float, end: float) -> int:
        return sum(start <= at < end for tries in self.tries for at in tries)


class FullJitter(Backoff):
    """The wait that does not know for how long a key has failed: what this queue did before."""

    def delay(self, failures: int, *, chance: float, failing: float | None = None) -> float:
        return super().delay(failures, chance=chance)


class ClientGo(Backoff):
    """The default rate limiter of client-go's workqueues: 5 ms doubling to 1,000 s, without jitter."""

    def delay(self, failures: int, *, chance: float, failing: float | None = None) -> float:
        return min(1000.0, 0.005 * 2.0 ** min(failures - 1, 63))


def outage(backoff: Backoff, *, seconds: float, handling: float = INSTANT) -> Course:
    """Let each object of a queue fail from its first try, within 0.1 s, to the end of the outage."""
    draws = random.Random(1)
    tries, late = [], []
    for _ in range(OBJECTS):
        queue: Queue[str] = Queue(backoff)
        queue.add("w", Reason.CHANGED, now=0.0)
        now, tried = draws.random() / 10, list[float]()
        while queue.take(now=now) is not None and now < seconds:
            tried.append(now)
            now += handling
            now += queue.retry("w", now=now, chance=draws.random())
        tries.append(tried)
        late.append(now - seconds)
    return Course(tries, late)


@pytest.mark.parametrize("handling", [INSTANT, SLOW])
@pytest.mark.parametrize("seconds", OUTAGES)
def test_an_object_is_right_at_most_as_long_after_an_outage_as_the_outage_lasted(
    seconds: float, handling: float
) -> None:
    after = outage(QUEUE_BACKOFF, seconds=seconds, handling=handling)

    # The last failed try may end after the outage did. The longest wait is the cap.
    assert max(after.late) <= min(max(seconds, 2 * QUEUE_BACKOFF.base), QUEUE_BACKOFF.cap) + handling


def test_full_jitter_left_objects_wrong_for_much_longer_than_the_outage() -> None:
    """The reason for the bound: after 15 s, the last of 500 objects was right more than a minute later."""
    before = outage(FullJitter(base=QUEUE_BACKOFF.base, cap=QUEUE_BACKOFF.cap), seconds=15.0)

    assert max(before.late) > 4 * 15.0


@pytest.mark.parametrize("seconds", OUTAGES)
def test_no_object_is_tried_more_often_than_by_the_doubling_of_client_go_or_the_full_jitter_of_before(
    seconds: float,
) -> None:
    now, before, client_go = (
        max(len(tries) for tries in outage(backoff, seconds=seconds).tries)
        for backoff in (
            QUEUE_BACKOFF,
            FullJitter(base=QUEUE_BACKOFF.base, cap=QUEUE_BACKOFF.cap),
            ClientGo(base=0.005, cap=1000.0),
        )
    )

    assert now <= before
    if seconds < 1000.0:  # the longest wait of client-go
        assert now <= client_go


@pytest.mark.parametrize(("start", "end"), [(0, 1), (1, 5), (5, 15), (15, 75), (75, 300), (300, 3600)])
def test_all_objects_together_are_tried_hardly_more_often_than_with_full_jitter(start: float, end: float) -> None:
    now = outage(QUEUE_BACKOFF, seconds=3600.0)
    before = outage(FullJitter(base=QUEUE_BACKOFF.base, cap=QUEUE_BACKOFF.cap), seconds=3600.0)

    assert now.between(start, end) <= 1.2 * before.between(start, end)


def test_objects_that_failed_together_do_not_come_back_together() -> None:
    """The tries of a second are a share of the objects that falls with time; nothing like a wave is left."""
    course = outage(QUEUE_BACKOFF, seconds=600.0)

    for second in range(5, 600):
        assert course.between(second, second + 1) <= 2 * OBJECTS / second + 8
