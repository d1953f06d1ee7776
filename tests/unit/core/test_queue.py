"""The work queue: who is handed out when, and what is never lost. Virtual time throughout."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from bonny.core.backoff import Backoff
from bonny.core.queue import SLACK, Position, Priority, Queue, Reason, Statistics, Work
from tests.support.effort import examples

LIVE, LOW = Priority.LIVE, Priority.LOW
CHANGED, ADDED, CHILD, REQUEUE = Reason.CHANGED, Reason.ADDED, Reason.CHILD, Reason.REQUEUE
BACKOFF = Backoff(base=1.0, cap=300.0)


def queue_of(*keys: str, now: float = 0.0, priority: Priority = LIVE) -> Queue[str]:
    """A queue with these keys, added in this order."""
    queue: Queue[str] = Queue(BACKOFF)
    for key in keys:
        queue.add(key, CHANGED, now=now, priority=priority)
    return queue


def taken(queue: Queue[str], *, now: float) -> Work[str]:
    work = queue.take(now=now)
    assert work is not None
    return work


def keys(queue: Queue[str], *, now: float) -> list[str]:
    """Everything that is ready, in order; it counts as being worked on."""
    return [work.key for work in iter(lambda: queue.take(now=now), None)]


# --- one place for each key -------------------------------------------------------------------------------------------


def test_a_key_is_queued_once_however_often_it_is_added() -> None:
    assert keys(queue_of("a", "b", "a", "a"), now=0.0) == ["a", "b"]


def test_reasons_are_kept_as_a_set_and_handed_out_together() -> None:
    queue = queue_of("a")
    queue.add("a", CHILD, now=0.0)
    queue.add("a", CHILD, now=0.0, priority=LOW)

    assert taken(queue, now=0.0).reasons == {CHANGED, CHILD}


def test_a_key_that_a_worker_holds_is_not_handed_out_again() -> None:
    queue = queue_of("a")
    taken(queue, now=0.0)

    queue.add("a", CHILD, now=0.0)

    assert queue.take(now=100.0) is None
    queue.done("a", now=100.0)
    assert taken(queue, now=100.0) == Work("a", frozenset({CHILD}), 0, 100.0)


def test_a_key_that_is_done_and_was_not_added_again_is_forgotten() -> None:
    queue = queue_of("a")
    taken(queue, now=0.0)
    queue.done("a", now=0.0)

    assert (queue.take(now=1000.0), queue.next_due()) == (None, None)
    assert queue.statistics(now=0.0) == Statistics(0, 0, 0, 0, 0, 0.0)


@pytest.mark.parametrize("action", ["done", "retry", "park"])
def test_giving_back_what_nobody_took_is_an_error(action: str) -> None:
    queue = queue_of("a")
    give_back = {
        "done": lambda: queue.done("a", now=0.0),
        "retry": lambda: queue.retry("a", now=0.0, chance=0.0),
        "park": lambda: queue.park("a", until=1.0),
    }[action]

    with pytest.raises(ValueError, match="a is not being worked on"):
        give_back()


# --- order ------------------------------------------------------------------------------------------------------------


def test_live_keys_go_before_low_ones() -> None:
    queue = queue_of("low1", "low2", priority=LOW)
    queue.add("live", CHANGED, now=1.0)

    assert keys(queue, now=1.0) == ["live", "low1", "low2"]


def test_a_low_key_that_is_added_as_live_goes_with_the_live_ones() -> None:
    queue = queue_of("low1", "low2", priority=LOW)

    queue.add("low2", CHANGED, now=1.0)

    assert keys(queue, now=1.0) == ["low2", "low1"]


def test_a_live_key_that_is_added_as_low_stays_live() -> None:
    queue = queue_of("a")
    queue.add("b", CHANGED, now=0.0, priority=LOW)
    queue.add("a", ADDED, now=0.0, priority=LOW)

    assert keys(queue, now=0.0) == ["a", "b"]


def test_while_low_keys_wait_for_ten_seconds_every_fourth_key_is_one_of_them() -> None:
    queue = queue_of("low1", "low2", priority=LOW)
    for number in range(7):
        queue.add(f"live{number}", CHANGED, now=9.0)

    assert taken(queue, now=9.9).key == "live0"
    assert keys(queue, now=10.5) == ["live1", "live2", "low1", "live3", "live4", "live5", "low2", "live6"]


def test_a_live_change_does_not_wait_behind_a_long_first_list() -> None:
    """Regression: after ten seconds all keys of the list counted as live, and a change came behind all of them."""
    queue = queue_of(*(f"w{number}" for number in range(1000)), priority=LOW)
    taken(queue, now=11.0)
    queue.add("w999", CHANGED, now=11.0)

    assert taken(queue, now=11.0).key == "w999"


def test_hot_keys_starve_nobody() -> None:
    """Ten keys that change all the time, more than the one worker can handle, and one of a first list."""
    queue = queue_of("cold", priority=LOW)
    hot = [f"hot{n}" for n in range(10)]
    now = 0.0
    while now < 30:
        for key in hot:
            queue.add(key, CHANGED, now=now)
        work = taken(queue, now=now)
        if work.key == "cold":
            break
        now += 0.1
        queue.done(work.key, now=now)

    assert 10 <= now <= 11.5


def test_ageing_keeps_the_order_of_the_low_keys() -> None:
    queue = queue_of("a", "b", "c", priority=LOW)

    assert keys(queue, now=50.0) == ["a", "b", "c"]


# --- failures ---------------------------------------------------------------------------------------------------------


def test_the_wait_grows_with_the_time_for_which_a_key_has_failed() -> None:
    queue = queue_of("a")
    taken(queue, now=0.0)
    assert queue.retry("a", now=0.0, chance=0.0) == 1.0
    assert (queue.next_due(), queue.take(now=0.9)) == (1.0, None)
    taken(queue, now=1.0)
    assert queue.retry("a", now=1.0, chance=0.999) == pytest.approx(2.0, abs=0.01)
    taken(queue, now=3.0)

    assert queue.retry("a", now=3.0, chance=0.999) == pytest.approx(3.0, abs=0.01)


def test_a_key_that_took_long_to_fail_waits_no_longer_than_the_doubling() -> None:
    queue = queue_of("a")
    taken(queue, now=0.0)
    queue.retry("a", now=10.0, chance=0.0)
    taken(queue, now=11.0)

    assert queue.retry("a", now=111.0, chance=0.999) == pytest.approx(4.0, abs=0.01)


def test_waits_that_a_handler_asked_for_do_not_make_the_first_failure_after_them_wait() -> None:
    """Regression: a handler that had polled for a while waited up to 300 s after one failure."""
    queue = queue_of("a")
    taken(queue, now=0.0)
    queue.retry("a", now=0.0, chance=0.0)
    for number in range(1, 60):
        taken(queue, now=10.0 * number)
        queue.retry("a", now=10.0 * number, chance=0.0, after=10.0, failed=False)
    assert taken(queue, now=600.0).tries == 60

    assert queue.retry("a", now=600.0, chance=0.999) <= 2.0


def test_a_key_comes_back_with_its_reasons_and_its_count() -> None:
    queue = queue_of("a")
    taken(queue, now=0.0)
    queue.add("a", CHILD, now=0.0, priority=LOW)

    queue.retry("a", now=0.0, chance=0.0)

    assert taken(queue, now=1.0) == Work("a", frozenset({CHANGED, CHILD}), 1, 1.0)


def test_success_forgets_the_failures() -> None:
    queue = queue_of("a")
    for now in (0.0, 10.0):
        taken(queue, now=now)
        queue.retry("a", now=now, chance=0.0)
    taken(queue, now=100.0)
    queue.add("a", CHILD, now=100.0)
    queue.done("a", now=100.0)

    assert taken(queue, now=100.0).tries == 0
    assert queue.retry("a", now=100.0, chance=0.0) == 1.0


def test_the_failures_of_one_key_do_not_delay_another() -> None:
    queue = queue_of("a", "b")
    taken(queue, now=0.0)
    queue.retry("a", now=0.0, chance=0.9)

    assert keys(queue, now=0.0) == ["b"]


def test_another_try_comes_when_it_was_asked_for() -> None:
    queue = queue_of("a")
    taken(queue, now=0.0)

    assert queue.retry("a", now=0.0, chance=0.5, after=30.0, failed=False) == 30.0
    assert taken(queue, now=30.0).tries == 1


def test_asking_for_another_try_without_a_time_makes_the_wait_grow() -> None:
    """Regression: a handler that always raised Retry() was called three times a second for ever."""
    queue = queue_of("a")
    waits = []
    now = 0.0
    for _ in range(5):
        taken(queue, now=now)
        waits.append(queue.retry("a", now=now, chance=1.0, failed=False))
        now += waits[-1]

    assert waits == [2.0, 2.0, 4.0, 8.0, 16.0]


def test_a_server_that_asks_for_a_wait_gets_at_least_the_backoff() -> None:
    """Regression: `Retry-After: 0` was taken as it came, and the key spun."""
    queue = queue_of("a")
    waits = []
    now = 0.0
    for after in (0.0, 0.0, 100.0, 0.0):
        taken(queue, now=now)
        waits.append(queue.retry("a", now=now, chance=1.0, after=after))
        now += waits[-1]

    assert waits == [2.0, 2.0, 100.0, 16.0]


def test_no_handler_can_ask_to_spin() -> None:
    queue = queue_of("a")
    taken(queue, now=0.0)

    assert queue.retry("a", now=0.0, chance=0.0, after=0.0, failed=False) == 1.0


def test_a_live_change_ends_the_wait_after_a_failure() -> None:
    """The change may be the mend."""
    queue = queue_of("a")
    taken(queue, now=0.0)
    queue.retry("a", now=0.0, chance=0.9)

    queue.add("a", CHILD, now=0.5)

    assert taken(queue, now=0.5) == Work("a", frozenset({CHANGED, CHILD}), 1, 0.5)


def test_a_live_change_while_the_key_was_being_handled_leaves_no_wait_at_all() -> None:
    queue = queue_of("a")
    taken(queue, now=0.0)
    queue.add("a", CHILD, now=0.0)

    assert queue.retry("a", now=1.0, chance=0.9) == 0.0
    assert taken(queue, now=1.0).reasons == {CHANGED, CHILD}


def test_a_low_reason_does_not_end_the_wait_after_a_failure_but_is_kept() -> None:
    queue = queue_of("a")
    taken(queue, now=0.0)
    queue.retry("a", now=0.0, chance=0.0)

    queue.add("a", REQUEUE, now=0.5, priority=LOW)

    assert queue.take(now=0.9) is None
    assert taken(queue, now=1.0).reasons == {CHANGED, REQUEUE}


# --- timers -----------------------------------------------------------------------------------------------------------


def test_a_timer_queues_its_key_as_low_with_its_reason() -> None:
    queue = queue_of()
    queue.set_timer("a", REQUEUE, at=5.0)
    assert (queue.next_due(), queue.take(now=4.9)) == (5.0, None)
    queue.add("live", CHANGED, now=5.0)

    assert keys(queue, now=5.0) == ["live", "a"]
    assert queue.next_due() is None


def test_a_new_timer_replaces_the_old_one() -> None:
    queue = queue_of()
    queue.set_timer("a", REQUEUE, at=5.0)
    queue.set_timer("a", REQUEUE, at=9.0)

    assert (queue.take(now=8.9), queue.next_due()) == (None, 9.0)
    assert keys(queue, now=9.0) == ["a"]
    assert queue.next_due() is None


def test_a_timer_survives_handlings_that_do_not_set_one() -> None:
    """Regression guard: an event that turned out to mean nothing ended `requeue_after`."""
    queue = queue_of("a")
    taken(queue, now=0.0)
    queue.set_timer("a", REQUEUE, at=5.0)
    queue.done("a", now=0.0)
    queue.add("a", CHANGED, now=1.0)
    taken(queue, now=1.0)
    queue.done("a", now=1.0)

    assert queue.statistics(now=1.0).timers == 1
    assert taken(queue, now=5.0) == Work("a", frozenset({REQUEUE}), 0, 5.0)


@pytest.mark.parametrize("state", ["working", "delayed", "parked"])
def test_a_timer_that_fires_meanwhile_leaves_its_reason(state: str) -> None:
    queue = queue_of("a")
    queue.set_timer("a", REQUEUE, at=5.0)
    taken(queue, now=0.0)
    if state == "delayed":
        queue.retry("a", now=0.0, chance=0.0, after=20.0)
    elif state == "parked":
        queue.park("a", until=20.0)
    assert queue.take(now=6.0) is None
    if state == "working":
        queue.done("a", now=20.0)

    assert REQUEUE in taken(queue, now=20.0).reasons


def test_a_cancelled_timer_does_not_fire() -> None:
    queue = queue_of()
    queue.set_timer("a", REQUEUE, at=5.0)
    queue.cancel_timer("a")
    queue.cancel_timer("never set")

    assert (queue.next_due(), queue.take(now=9.0)) == (None, None)


# --- parking ----------------------------------------------------------------------------------------------------------


def test_a_parked_key_waits_whatever_is_added_and_goes_on_when_it_is_unparked() -> None:
    queue = queue_of("a")
    taken(queue, now=0.0)
    queue.park("a", until=5.0)
    queue.add("a", CHILD, now=1.0)
    assert queue.take(now=1.0) is None

    queue.unpark("a")

    assert taken(queue, now=2.0).reasons == {CHANGED, CHILD}


def test_a_parked_key_goes_on_when_its_time_is_over() -> None:
    queue = queue_of("a")
    taken(queue, now=0.0)
    queue.park("a", until=5.0)

    assert (queue.next_due(), queue.take(now=4.9)) == (5.0, None)
    assert taken(queue, now=5.0).key == "a"


def test_what_was_added_while_it_was_held_is_not_lost_by_parking() -> None:
    queue = queue_of("a")
    taken(queue, now=0.0)
    queue.add("a", CHILD, now=0.0)
    queue.park("a", until=5.0)

    assert taken(queue, now=5.0).reasons == {CHANGED, CHILD}


def test_parking_is_no_failure_and_forgets_none() -> None:
    queue = queue_of("a")
    taken(queue, now=0.0)
    queue.retry("a", now=0.0, chance=0.0)
    taken(queue, now=1.0)
    queue.park("a", until=5.0)

    assert taken(queue, now=5.0).tries == 1


@pytest.mark.parametrize("unparked", [True, False])
def test_a_parked_key_remembers_since_when_it_waits(unparked: bool) -> None:
    """Regression: each parking started the clock anew, so a key whose stream was stuck was parked again for ever."""
    queue = queue_of("a", now=3.0)
    taken(queue, now=3.0)
    queue.park("a", until=8.0)
    if unparked:
        queue.unpark("a")

    again = taken(queue, now=8.0)

    assert again.queued == 3.0
    queue.done("a", now=9.0)
    queue.add("a", CHANGED, now=10.0)
    assert taken(queue, now=10.0).queued == 10.0


def test_unparking_what_is_not_parked_is_harmless() -> None:
    queue = queue_of("a", "b")
    taken(queue, now=0.0)
    queue.retry("a", now=0.0, chance=0.0)
    for key in ("a", "b", "unknown"):
        queue.unpark(key)

    assert keys(queue, now=0.0) == ["b"]


# --- forgetting -------------------------------------------------------------------------------------------------------


def test_a_forgotten_key_is_gone_with_its_timer_and_failures() -> None:
    queue = queue_of("ready", "delayed", "parked")
    for _ in range(3):
        taken(queue, now=0.0)
    queue.done("ready", now=0.0)
    queue.add("ready", CHANGED, now=0.0)
    queue.retry("delayed", now=0.0, chance=0.0)
    queue.park("parked", until=5.0)
    for key in ("ready", "delayed", "parked"):
        queue.set_timer(key, REQUEUE, at=3.0)

        queue.discard(key)

    assert (queue.take(now=100.0), queue.next_due()) == (None, None)
    assert queue.statistics(now=100.0) == Statistics(0, 0, 0, 0, 0, 0.0)


def test_a_forgotten_key_that_comes_back_stands_behind_the_others() -> None:
    queue = queue_of("a", "b")
    queue.discard("a")
    queue.add("a", CHILD, now=1.0)

    assert keys(queue, now=1.0) == ["b", "a"]


def test_a_key_that_a_worker_holds_cannot_be_forgotten() -> None:
    queue = queue_of("a")
    taken(queue, now=0.0)
    queue.add("a", CHILD, now=0.0)

    queue.discard("a")

    queue.done("a", now=0.0)
    assert taken(queue, now=0.0).reasons == {CHILD}


# --- bounds -----------------------------------------------------------------------------------------------------------


def test_a_hot_key_with_a_far_timer_does_not_grow_the_queue() -> None:
    """Each handling replaces its timer of ten hours; the old ones are not carried along until then, nor as long as
    another key's earlier one stands before them."""
    queue = queue_of()
    queue.set_timer("early", REQUEUE, at=30_000.0)
    for now in range(10_000):
        queue.add("a", CHANGED, now=float(now))
        taken(queue, now=float(now))
        queue.set_timer("a", Reason.RESYNC, at=now + 36_000.0)
        queue.done("a", now=float(now))

    assert len(queue._schedule._heap) <= SLACK + 5
    assert (queue.next_due(), queue.statistics(now=0.0).timers) == (30_000.0, 2)


def test_a_key_that_fails_and_changes_all_the_time_does_not_grow_the_queue() -> None:
    queue = queue_of("a")
    queue.set_timer("early", REQUEUE, at=30_000.0)
    for now in range(10_000):
        taken(queue, now=float(now))
        queue.retry("a", now=float(now), chance=0.0, after=99_999.0)
        queue.add("a", CHANGED, now=float(now))

    assert len(queue._schedule._heap) <= SLACK + 5
    assert len(queue._live) == 1


@pytest.mark.parametrize("priority", Priority)
def test_keys_that_come_and_go_while_nobody_takes_any_do_not_grow_the_queue(priority: Priority) -> None:
    """Regression: on a standby each object that came and went left a place: 190 MB a day at ten pods a second."""
    queue = queue_of(*"abcdef")
    for number in range(10_000):
        queue.add(f"w{number}", ADDED, now=1.0, priority=priority)
        queue.discard(f"w{number}")

    assert len(queue._live) + len(queue._low) <= SLACK + 2 * 6
    assert keys(queue, now=1.0) == list("abcdef")


def test_a_clean_up_keeps_the_order_of_each_line_and_the_age_of_its_keys() -> None:
    queue = queue_of("low1", "low2", priority=LOW)
    for now, key in ((1.0, "live1"), (2.0, "live2")):
        queue.add(key, CHANGED, now=now)
    queue.add("low2", CHANGED, now=3.0)  # from the low line to the end of the live one
    for number in range(2 * SLACK):
        queue.add(f"w{number}", ADDED, now=4.0)
        queue.discard(f"w{number}")
    assert len(queue._live) <= SLACK

    assert queue.statistics(now=10.0) == Statistics(4, 0, 0, 0, 0, 10.0)
    assert [work.queued for work in iter(lambda: queue.take(now=9.0), None)] == [1.0, 2.0, 0.0, 0.0]


def test_the_oldest_key_is_found_behind_younger_ones() -> None:
    """Regression: only the first of each line was looked at, and a key that was parked keeps its age."""
    queue = queue_of("old", priority=LOW)
    queue.add("live1", CHANGED, now=11.0)
    queue.add("live2", CHANGED, now=12.0)
    taken(queue, now=12.0)

    assert queue.statistics(now=20.0).oldest == 20.0


def test_timers_that_are_all_due_do_not_hold_the_loop_at_once() -> None:
    queue: Queue[str] = Queue(BACKOFF)
    for number in range(1000):
        queue.set_timer(f"w{number}", REQUEUE, at=1.0)

    taken(queue, now=5.0)

    assert queue.statistics(now=5.0).timers == 900
    assert len(keys(queue, now=5.0)) == 999


# --- pauses -----------------------------------------------------------------------------------------------------------


def test_while_the_queue_is_paused_no_key_is_handed_out_and_none_is_lost() -> None:
    queue = queue_of("a", "b")
    assert taken(queue, now=0.0).key == "a"
    queue.pause(until=30.0)
    queue.retry("a", now=0.0, chance=0.0, after=30.0, failed=False)
    queue.add("b", CHILD, now=1.0)
    queue.add("c", CHANGED, now=2.0)
    queue.set_timer("d", REQUEUE, at=3.0)

    assert queue.take(now=29.9) is None
    assert queue.next_due() == 30.0
    assert queue.statistics(now=29.9).oldest == 29.9, "they count as waiting"
    assert keys(queue, now=30.0) == ["b", "c", "a", "d"]
    assert queue.next_due() is None


def test_of_several_pauses_the_one_that_ends_last_counts() -> None:
    queue = queue_of("a")
    for until in (10.0, 30.0, 20.0):
        queue.pause(until=until)

    assert queue.take(now=29.0) is None
    assert taken(queue, now=30.0).key == "a"


# --- against a model --------------------------------------------------------------------------------------------------


@dataclass
class Entry:
    """What must be true of one key, in the plainest words."""

    reasons: set[Reason] = field(default_factory=set)
    tries: int = 0
    failing: float | None = None
    state: str = "ready"
    low: bool = True
    since: float = 0.0
    due: float = 0.0
    queued: float | None = None
    handed: frozenset[Reason] = frozenset()
    again: bool | None = None
    """Added while a worker held it; True: only as low."""


class Model(RuleBasedStateMachine):
    """The queue beside a dictionary that does the same by looking at everything each time."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.queue: Queue[str] = Queue(BACKOFF)
        self.entries: dict[str, Entry] = {}
        self.timers: dict[str, tuple[float, Reason]] = {}
        self.live_in_a_row = 0
        self.paused = 0.0

    def of(self, state: str) -> list[str]:
        return sorted(key for key, entry in self.entries.items() if entry.state == state)

    def ready(self, key: str, *, low: bool) -> None:
        entry = self.entries[key]
        if entry.state != "ready":
            entry.since = self.now if entry.queued is None else entry.queued
        entry.state, entry.low = "ready", low

    def put(self, key: str, reason: Reason, *, low: bool) -> None:
        new = key not in self.entries
        entry = self.entries.setdefault(key, Entry(since=self.now))
        entry.reasons.add(reason)
        if new:
            entry.low = low
        elif entry.state == "working":
            entry.again = low if entry.again is None else entry.again and low
        elif entry.state == "ready" or (entry.state == "delayed" and not low):
            self.ready(key, low=entry.low and low)

    def pass_time(self) -> None:
        """What the queue does when it is asked for a key."""
        for key in list(self.timers):
            at, reason = self.timers[key]
            if at <= self.now:
                del self.timers[key]
                self.put(key, reason, low=True)
        for key in self.of("delayed") + self.of("parked"):
            entry = self.entries[key]
            if entry.due <= self.now:
                self.ready(key, low=entry.low)

    # --- rules --------------------------------------------------------------------------------------------------------

    @rule(
        key=st.sampled_from("abcd"), reason=st.sampled_from([ADDED, CHANGED, CHILD]), priority=st.sampled_from(Priority)
    )
    def add(self, key: str, reason: Reason, priority: Priority) -> None:
        self.queue.add(key, reason, now=self.now, priority=priority)
        self.put(key, reason, low=priority is LOW)

    @rule(seconds=st.sampled_from([0.1, 1.0, 4.0, 10.0, 100.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def take(self) -> None:
        work = self.queue.take(now=self.now)
        self.pass_time()
        if self.now < self.paused:
            assert work is None
            return
        self.paused = 0.0
        ready = self.of("ready")
        if not ready:
            assert work is None
            self.live_in_a_row = 0
            return
        assert work is not None
        assert work.key in ready
        low = [key for key in ready if self.entries[key].low]
        aged = any(self.now - self.entries[key].since >= 10 for key in low)
        low_is_next = len(low) == len(ready) or (aged and self.live_in_a_row >= 3)
        entry = self.entries[work.key]
        assert entry.low == low_is_next
        self.live_in_a_row = 0 if entry.low else self.live_in_a_row + 1
        assert work == Work(work.key, frozenset(entry.reasons), entry.tries, entry.since)
        entry.state, entry.handed, entry.queued, entry.again = "working", work.reasons, work.queued, None
        entry.reasons.clear()

    @rule(seconds=st.sampled_from([0.1, 1.0, 4.0]))
    def pause(self, seconds: float) -> None:
        self.queue.pause(until=self.now + seconds)
        self.paused = max(self.paused, self.now + seconds)

    @precondition(lambda self: self.of("working"))
    @rule(data=st.data())
    def done(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(self.of("working")))
        self.queue.done(key, now=self.now)
        entry = self.entries[key]
        entry.tries, entry.failing = 0, None
        entry.queued = None
        if entry.again is None:
            del self.entries[key]
        else:
            self.ready(key, low=entry.again)

    @precondition(lambda self: self.of("working"))
    @rule(data=st.data(), failed=st.booleans(), after=st.sampled_from([None, None, 0.0, 3.0]))
    def retry(self, data: st.DataObject, failed: bool, after: float | None) -> None:
        key = data.draw(st.sampled_from(self.of("working")))
        wait = self.queue.retry(key, now=self.now, chance=0.0, after=after, failed=failed)
        entry = self.entries[key]
        entry.tries += 1
        entry.queued = None
        entry.reasons |= entry.handed
        asked = after is not None and not failed
        entry.failing = None if asked else self.now if entry.failing is None else entry.failing
        if entry.again is False:
            assert wait == 0.0
            self.ready(key, low=False)
        else:
            failing = 0.0 if entry.failing is None else self.now - entry.failing
            assert wait == max(1.0, after or 0.0, 0.75 * min(2.0**entry.tries, 300.0, failing))
            entry.state, entry.due = "delayed", self.now + wait

    @precondition(lambda self: self.of("working"))
    @rule(data=st.data())
    def park(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(self.of("working")))
        self.queue.park(key, until=self.now + 5)
        entry = self.entries[key]
        entry.reasons |= entry.handed
        entry.state, entry.due, entry.low = "parked", self.now + 5, False

    @rule(key=st.sampled_from("abcd"))
    def unpark(self, key: str) -> None:
        self.queue.unpark(key)
        if key in self.of("parked"):
            self.ready(key, low=False)

    @rule(key=st.sampled_from("abcd"), seconds=st.sampled_from([0.0, 2.0, 50.0]))
    def set_timer(self, key: str, seconds: float) -> None:
        self.queue.set_timer(key, REQUEUE, at=self.now + seconds)
        self.timers[key] = (self.now + seconds, REQUEUE)

    @rule(key=st.sampled_from("abcd"))
    def cancel_timer(self, key: str) -> None:
        self.queue.cancel_timer(key)
        self.timers.pop(key, None)

    @rule(key=st.sampled_from("abcd"))
    def forget(self, key: str) -> None:
        self.queue.discard(key)
        self.timers.pop(key, None)
        if key not in self.of("working"):
            self.entries.pop(key, None)

    # --- what must hold -----------------------------------------------------------------------------------------------

    @invariant()
    def the_figures_are_what_a_count_says(self) -> None:
        oldest = min((self.entries[key].since for key in self.of("ready")), default=self.now)
        counted = [len(self.of(state)) for state in ("ready", "delayed", "parked", "working")]
        told = self.queue.statistics(now=self.now)
        assert told == Statistics(*counted, timers=len(self.timers), oldest=self.now - oldest)

    @invariant()
    def the_position_of_each_key_is_known(self) -> None:
        for key in {*self.entries, *self.timers, "nobody"}:
            entry = self.entries.get(key, Entry(state=""))
            waits = entry.due - self.now if entry.state in ("delayed", "parked") else None
            seconds = self.now - entry.since if entry.state == "ready" else waits
            timer = self.timers[key][0] - self.now if key in self.timers else None
            wanted = Position(entry.state, entry.tries, seconds, timer)
            assert self.queue.position(key, now=self.now) == wanted

    @invariant()
    def the_next_due_time_is_known(self) -> None:
        waiting = [self.entries[key].due for key in self.of("delayed") + self.of("parked")]
        due = [*waiting, *(at for at, _ in self.timers.values())]
        assert self.queue.next_due() == (self.paused or min(due, default=None))

    @invariant()
    def replaced_times_are_bounded(self) -> None:
        alive = len(self.of("delayed")) + len(self.of("parked")) + len(self.timers)
        assert len(self.queue._schedule._heap) <= 2 * alive + SLACK + 1

    def teardown(self) -> None:
        """Nothing is lost: in the end every key was handed out with all its reasons."""
        for key in self.of("working"):
            self.queue.done(key, now=self.now)
            entry = self.entries[key]
            if entry.again is None:
                del self.entries[key]
            else:
                entry.queued = None
                self.ready(key, low=entry.again)
        self.now += 1000.0
        self.pass_time()
        left = {key: frozenset(entry.reasons) for key, entry in self.entries.items()}
        handed = {work.key: work.reasons for work in self._all()}
        assert handed == left

    def _all(self) -> Iterable[Work[str]]:
        return iter(lambda: self.queue.take(now=self.now), None)


Model.TestCase.settings = settings(max_examples=examples(200), stateful_step_count=50, deadline=None)
test_the_queue_does_what_a_plain_dictionary_would = Model.TestCase
