"""Queue: one test for each rule that its module promises, and a random search for what breaks them."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from bonny.core.backoff import Backoff
from bonny.core.queue import SLACK, Priority, Queue, QueueOptions, Reason

BASE = Backoff(base=1.0, cap=8.0)


def queue(*, ageing: float = 10.0) -> Queue[str]:
    return Queue(QueueOptions(backoff=BASE, ageing=ageing))


def taken(made: Queue[str], *, now: float) -> list[str]:
    """The keys that are handed out now, in order; the workers keep them."""
    keys = []
    while (work := made.take(now=now)) is not None:
        keys.append(work.key)
    return keys


def test_a_key_is_queued_once_and_its_reasons_are_handed_out_together() -> None:
    made = queue()
    made.add("a", Reason.CHANGED, now=0.0)
    made.add("a", Reason.CHILD, now=1.0)

    work = made.take(now=2.0)

    assert work is not None
    assert (work.key, work.reasons, work.failures, work.queued) == ("a", {Reason.CHANGED, Reason.CHILD}, 0, 0.0)
    assert made.take(now=2.0) is None


def test_a_key_that_a_worker_holds_comes_again_after_done() -> None:
    made = queue()
    made.add("a", Reason.ADDED, now=0.0)
    assert taken(made, now=0.0) == ["a"]
    made.add("a", Reason.CHANGED, now=1.0)
    assert taken(made, now=1.0) == []

    made.done("a", now=2.0)

    work = made.take(now=2.0)
    assert work is not None
    assert work.reasons == {Reason.CHANGED}


def test_live_keys_go_before_low_ones_and_each_in_its_order() -> None:
    made = queue()
    for key in ("low1", "low2"):
        made.add(key, Reason.ADDED, now=0.0, priority=Priority.LOW)
    for key in ("live1", "live2"):
        made.add(key, Reason.CHANGED, now=1.0)
    assert taken(made, now=1.0) == ["live1", "live2", "low1", "low2"]


def test_a_low_key_that_is_added_as_live_goes_with_the_live_ones() -> None:
    made = queue()
    made.add("a", Reason.ADDED, now=0.0, priority=Priority.LOW)
    made.add("b", Reason.CHANGED, now=0.0)
    made.add("a", Reason.CHANGED, now=0.0)
    made.add("c", Reason.ADDED, now=0.0, priority=Priority.LOW)
    assert taken(made, now=0.0) == ["b", "a", "c"]


def test_a_low_key_that_waited_ten_seconds_counts_as_live() -> None:
    """Hot keys starve nobody."""
    made = queue()
    made.add("old", Reason.ADDED, now=0.0, priority=Priority.LOW)
    made.add("young", Reason.ADDED, now=9.0, priority=Priority.LOW)
    made.add("hot1", Reason.CHANGED, now=10.1)
    work = made.take(now=10.2)
    assert work is not None
    assert work.key == "hot1"
    made.add("hot2", Reason.CHANGED, now=10.3)

    assert taken(made, now=10.4) == ["old", "hot2", "young"]


def test_a_failed_key_waits_longer_each_time_and_a_success_forgets_it() -> None:
    made = queue()
    made.add("a", Reason.CHANGED, now=0.0)
    waits = []
    now = 0.0
    for _ in range(5):
        assert made.take(now=now) is not None
        waits.append(made.retry("a", now=now, chance=0.999_999))
        assert made.take(now=now + waits[-1] - 0.01) is None
        now += waits[-1]
    assert [round(wait) for wait in waits] == [2, 4, 8, 8, 8]

    work = made.take(now=now)
    assert work is not None
    assert (work.failures, work.reasons) == (5, {Reason.CHANGED})
    made.done("a", now=now)
    made.add("a", Reason.CHANGED, now=now)
    work = made.take(now=now)
    assert work is not None
    assert work.failures == 0


def test_asking_for_another_try_is_no_failure() -> None:
    made = queue()
    made.add("a", Reason.CHANGED, now=0.0)
    assert made.take(now=0.0) is not None
    assert made.retry("a", now=0.0, chance=0.5, after=30.0, failed=False) == 30.0
    assert made.take(now=29.9) is None
    work = made.take(now=30.0)
    assert work is not None
    assert work.failures == 0


def test_what_is_new_and_live_cuts_a_wait_short_and_a_timer_does_not() -> None:
    made = queue()
    for key in ("live", "timer"):
        made.add(key, Reason.CHANGED, now=0.0)
    assert taken(made, now=0.0) == ["live", "timer"]
    for key in ("live", "timer"):
        made.retry(key, now=0.0, chance=0.0, after=100.0)
    made.set_timer("timer", Reason.RESYNC, at=5.0)

    made.add("live", Reason.CHILD, now=5.0)

    work = made.take(now=5.0)
    assert work is not None
    assert (work.key, work.reasons) == ("live", {Reason.CHANGED, Reason.CHILD})
    assert taken(made, now=99.0) == []
    work = made.take(now=100.0)
    assert work is not None
    assert work.reasons == {Reason.CHANGED, Reason.RESYNC}


def test_a_timer_survives_a_handling_that_set_no_other() -> None:
    """Regression: an event that needed nothing took the timer away with it, and what was asked for never came."""
    made = queue()
    made.set_timer("a", Reason.REQUEUE, at=30.0)
    made.add("a", Reason.CHANGED, now=10.0)
    work = made.take(now=10.0)
    assert work is not None
    assert work.reasons == {Reason.CHANGED}
    made.done("a", now=10.0)

    assert made.next_due() == 30.0
    work = made.take(now=30.0)
    assert work is not None
    assert work.reasons == {Reason.REQUEUE}


def test_a_new_timer_takes_the_place_of_the_old_one() -> None:
    made = queue()
    made.set_timer("a", Reason.RESYNC, at=5.0)
    made.set_timer("a", Reason.REQUEUE, at=9.0)
    assert taken(made, now=8.9) == []
    work = made.take(now=9.0)
    assert work is not None
    assert work.reasons == {Reason.REQUEUE}
    made.done("a", now=9.0)
    assert made.next_due() is None


def test_a_parked_key_waits_for_unpark_or_its_time_whatever_is_added() -> None:
    made = queue()
    for key in ("unparked", "timed"):
        made.add(key, Reason.CHANGED, now=0.0)
        assert made.take(now=0.0) is not None
        made.park(key, until=5.0)
        made.add(key, Reason.CHILD, now=1.0)
    assert taken(made, now=1.0) == []

    made.unpark("unparked", now=2.0)
    work = made.take(now=2.0)
    assert work is not None
    assert (work.key, work.reasons) == ("unparked", {Reason.CHANGED, Reason.CHILD})
    assert taken(made, now=5.0) == ["timed"]


def test_a_forgotten_key_is_gone_with_its_timer() -> None:
    made = queue()
    made.add("a", Reason.CHANGED, now=0.0)
    made.set_timer("a", Reason.RESYNC, at=5.0)
    made.forget("a")
    assert taken(made, now=10.0) == []
    assert made.next_due() is None


def test_a_hot_key_with_a_far_timer_takes_no_memory() -> None:
    made = queue()
    for number in range(10_000):
        made.add("hot", Reason.CHANGED, now=float(number))
        assert made.take(now=float(number)) is not None
        made.done("hot", now=float(number))
        made.set_timer("hot", Reason.RESYNC, at=number + 36_000.0)
    assert len(made._waiting) <= SLACK + 3
    assert len(made._live) <= 1


class Machine(RuleBasedStateMachine):
    """Any order of calls, against what was promised."""

    KEYS = ("a", "b", "c", "d")

    def __init__(self) -> None:
        super().__init__()
        self.made = queue()
        self.now = 0.0
        self.held: dict[str, frozenset[Reason]] = {}
        self.owed: dict[str, set[Reason]] = {}
        """Reasons that were given and not yet handed out, or handed out and not done."""

    @initialize()
    def begin(self) -> None:
        self.now = 100.0

    @rule(key=st.sampled_from(KEYS), reason=st.sampled_from(Reason), priority=st.sampled_from(Priority))
    def add(self, key: str, reason: Reason, priority: Priority) -> None:
        self.made.add(key, reason, now=self.now, priority=priority)
        self.owed.setdefault(key, set()).add(reason)

    @rule(key=st.sampled_from(KEYS), wait=st.floats(0.1, 50.0))
    def set_timer(self, key: str, wait: float) -> None:
        self.made.set_timer(key, Reason.RESYNC, at=self.now + wait)

    @rule(seconds=st.floats(0.0, 20.0))
    def pass_time(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def take(self) -> None:
        work = self.made.take(now=self.now)
        if work is None:
            return
        assert work.key not in self.held, "never two workers on one key"
        assert self.owed.get(work.key, set()) <= work.reasons | {Reason.RESYNC}, "no reason is lost"
        assert work.queued <= self.now
        self.held[work.key] = work.reasons
        self.owed[work.key] = set()

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def done(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.held)))
        del self.held[key]
        self.made.done(key, now=self.now)

    @precondition(lambda self: self.held)
    @rule(data=st.data(), chance=st.floats(0.0, 0.99))
    def retry(self, data: st.DataObject, chance: float) -> None:
        key = data.draw(st.sampled_from(sorted(self.held)))
        self.owed[key] |= self.held.pop(key)
        wait = self.made.retry(key, now=self.now, chance=chance)
        assert 0.0 <= wait <= BASE.cap

    @precondition(lambda self: self.held)
    @rule(data=st.data(), seconds=st.floats(0.0, 5.0))
    def park(self, data: st.DataObject, seconds: float) -> None:
        key = data.draw(st.sampled_from(sorted(self.held)))
        self.owed[key] |= self.held.pop(key)
        self.made.park(key, until=self.now + seconds)

    @rule(key=st.sampled_from(KEYS))
    def unpark(self, key: str) -> None:
        self.made.unpark(key, now=self.now)

    @invariant()
    def the_counts_are_those_of_a_recount(self) -> None:
        entries = self.made._entries.values()
        counted = self.made.statistics(now=self.now)
        assert counted.ready == sum(entry.ready_since is not None for entry in entries)
        assert counted.parked == sum(entry.parked for entry in entries)
        assert counted.delayed == sum(entry.due is not None and not entry.parked for entry in entries)
        assert counted.working == len(self.held)
        assert counted.oldest >= 0.0

    def teardown(self) -> None:
        """No key is lost: after enough time everything that is owed is handed out, to the last reason."""
        for key in list(self.held):
            self.owed[key] |= self.held.pop(key)
            self.made.retry(key, now=self.now, chance=0.0)
        self.now += 1_000.0
        while (work := self.made.take(now=self.now)) is not None:
            assert self.owed.pop(work.key, set()) <= work.reasons
            self.made.done(work.key, now=self.now)
        assert not {key for key, reasons in self.owed.items() if reasons}


TestMachine = Machine.TestCase
TestMachine.settings = settings(max_examples=150, stateful_step_count=40)
