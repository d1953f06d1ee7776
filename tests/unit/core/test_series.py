"""Which events are written, which are only counted, and when."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from bonny.core.series import BURST, MOST_TRIES, REFILL_SECONDS, WINDOW_SECONDS, Correlator, Series

START = 1000.0


class Told:
    """A correlator and whoever sends for it; time stands still unless it is moved."""

    def __init__(self, *, limit: int = 100) -> None:
        self.correlator = Correlator(limit=limit)
        self.now = START

    def occurs(self, key: str = "created", *, times: int = 1, subject: str = "w1") -> bool:
        """Returns: whether a write was due after the last occurrence."""
        due = False
        for _ in range(times):
            due = self.correlator.record(key.encode(), subject=subject, now=self.now)
        return due

    def taken(self) -> Series:
        series = self.correlator.take(now=self.now)
        assert series is not None
        return series

    def settles(self, series: Series, *, stored: bool | None) -> None:
        self.correlator.settle(series, stored=stored, now=self.now)

    def writes(self, *, after: float = 0.0) -> list[tuple[str, int]]:
        """Write all that is due by then; returns each event and how often it had occurred, in order."""
        self.now += after
        written = []
        while (series := self.correlator.take(now=self.now)) is not None:
            written.append((series.key.decode(), series.writing))
            self.settles(series, stored=True)
        return written


@pytest.fixture
def told() -> Told:
    return Told()


# --- a series ---------------------------------------------------------------------------------------------------------


def test_the_first_two_occurrences_are_written_at_once_and_the_next_ones_counted(told: Told) -> None:
    assert told.occurs()
    assert told.writes() == [("created", 1)]
    assert told.occurs()
    assert told.writes() == [("created", 2)]
    assert not told.occurs(times=40), "nobody is woken for a repeat that is only counted"
    assert told.writes(after=1.0) == []


def test_what_occurs_before_the_first_is_sent_is_one_request(told: Told) -> None:
    told.occurs(times=40)

    assert told.writes() == [("created", 40)]


def test_what_occurs_while_it_is_being_created_is_written_after_that(told: Told) -> None:
    told.occurs()
    series = told.taken()
    told.occurs(times=3)

    told.settles(series, stored=True)

    assert told.writes() == [("created", 4)]


def test_a_series_that_grows_is_written_once_in_a_window(told: Told) -> None:
    told.occurs(times=2)
    told.writes()
    written = []
    for _ in range(60):
        told.occurs()
        written += told.writes(after=60.0)

    assert 8 <= len(written) <= 10
    assert told.correlator.unsent < WINDOW_SECONDS / 60.0 + 1


def test_the_final_count_is_written_one_window_after_the_last_write(told: Told) -> None:
    told.occurs(times=2)
    told.writes()
    told.occurs(times=7)

    assert told.writes(after=WINDOW_SECONDS - 1.0) == []
    assert told.writes(after=1.0) == [("created", 9)]


def test_a_series_that_ended_is_forgotten_and_the_next_occurrence_is_another_event(told: Told) -> None:
    told.occurs(times=2)
    first = told.taken()
    told.settles(first, stored=True)

    assert told.writes(after=WINDOW_SECONDS) == []
    assert len(told.correlator._series) == 0

    told.occurs()
    second = told.taken()
    assert (second.sent, second.writing, second.number == first.number) == (0, 1, False)


def test_occurrences_within_the_window_of_each_other_are_one_series_however_long_it_is(told: Told) -> None:
    """A key that always fails is tried every 300 s, and that is one series."""
    told.occurs()
    told.writes()
    for _ in range(100):
        told.writes(after=300.0)
        told.occurs()

    series = told.correlator.take(now=math.inf)
    assert series is not None
    assert series.writing == 101


def test_the_event_that_occurred_longest_ago_is_written_first(told: Told) -> None:
    told.occurs("a")
    told.occurs("b")
    told.occurs("a")

    assert told.writes() == [("b", 1), ("a", 2)]


# --- what can happen to a write ---------------------------------------------------------------------------------------


def test_what_fails_is_tried_a_few_times_behind_the_others_and_then_dropped(told: Told) -> None:
    told.occurs("wrong", times=3)
    told.occurs("right")
    told.settles(told.taken(), stored=False)
    series = told.taken()
    assert series.key == b"right"
    told.settles(series, stored=True)
    for _ in range(MOST_TRIES - 1):
        assert (told.taken().writing, told.correlator.dropped) == (3, 0)
        told.settles(told.taken(), stored=False)

    assert told.writes() == []
    assert told.correlator.dropped == 3


def test_failures_before_a_success_do_not_count(told: Told) -> None:
    for number in range(1, 3 * MOST_TRIES):
        told.occurs()
        told.settles(told.taken(), stored=False)
        assert told.writes() == [("created", number)]
        told.now += WINDOW_SECONDS

    assert told.correlator.dropped == 0


def test_what_is_refused_is_forgotten_at_once(told: Told) -> None:
    told.occurs(times=2)

    told.settles(told.taken(), stored=None)

    assert (told.correlator.refused, told.correlator.unsent, told.writes()) == (2, 0, [])


# --- limits -----------------------------------------------------------------------------------------------------------


def test_an_object_begins_a_burst_of_series_and_then_one_at_a_time(told: Told) -> None:
    for number in range(2 * BURST):
        told.occurs(f"note {number}")
    assert (len(told.writes()), told.correlator.limited) == (BURST, BURST)

    told.now += REFILL_SECONDS - 1.0
    told.occurs("too soon")
    assert told.writes() == []
    told.now += 1.0
    told.occurs("in time")
    told.occurs("too much")
    assert told.writes() == [("in time", 1)]


def test_an_object_that_was_quiet_has_its_burst_again(told: Told) -> None:
    for number in range(BURST):
        told.occurs(f"note {number}")
    told.writes()
    told.now += BURST * REFILL_SECONDS
    for number in range(2 * BURST):
        told.occurs(f"later note {number}")

    assert len(told.writes()) == BURST


def test_repeats_cost_nothing_of_the_budget(told: Told) -> None:
    told.occurs(times=10 * BURST)
    told.writes()
    told.occurs("another")

    assert (told.writes(), told.correlator.limited) == ([("another", 1)], 0)


def test_one_object_does_not_take_from_the_budget_of_another(told: Told) -> None:
    for number in range(2 * BURST):
        told.occurs(f"note {number}", subject="loud")
    told.writes()
    told.occurs(subject="quiet")

    assert told.writes() == [("created", 1)]


def test_what_was_recorded_longest_ago_makes_room() -> None:
    told = Told(limit=2)
    told.occurs("old")
    told.occurs("older")
    told.occurs("old")
    told.occurs("new")

    assert (told.writes(), told.correlator.dropped) == ([("old", 2), ("new", 1)], 1)


def test_what_is_written_to_the_end_makes_room_without_a_loss() -> None:
    told = Told(limit=2)
    for number in range(10):
        told.occurs(str(number))
        told.writes()

    assert (len(told.correlator._series), told.correlator.dropped) == (2, 0)


def test_what_is_being_written_does_not_make_room() -> None:
    told = Told(limit=2)
    told.occurs("first")
    first = told.taken()
    told.occurs("second")
    told.occurs("third")

    told.settles(first, stored=True)

    assert (told.writes(), told.correlator.dropped) == ([("third", 1)], 1)


def test_of_the_budgets_the_one_that_was_asked_for_longest_ago_is_forgotten() -> None:
    told = Told(limit=3)
    for subject in ("w1", "w2", "w3", "w1", "w4"):
        told.occurs(f"{told.correlator.recorded}", subject=subject)

    assert list(told.correlator._budgets) == ["w3", "w1", "w4"]


# --- everything at once -----------------------------------------------------------------------------------------------

LIMIT = 5
EVENTS = st.tuples(st.sampled_from(["w1", "w2"]), st.integers(0, 6) | st.integers(0, 200))


class Recording(RuleBasedStateMachine):
    """Rules record events, move time, or let the sender do one thing; the server keeps counts by number."""

    def __init__(self) -> None:
        super().__init__()
        self.correlator = Correlator(limit=LIMIT)
        self.now = START
        self.flying: Series | None = None
        self.server: dict[int, int] = {}
        self.unsure: set[int] = set()
        """Those about which an answer was lost, and none came since."""

        self.shown: dict[int, int] = {}
        """What the correlator was told that the server knows."""

        self.writes: Counter[int] = Counter()
        self.allowed: dict[int, float] = {}
        """How many writes of a series can have been needed, but for its windows."""

        self.begun: dict[str, set[int]] = {"w1": set(), "w2": set()}

    @rule(event=EVENTS, times=st.integers(1, 4))
    def occurs(self, event: tuple[str, int], times: int) -> None:
        for _ in range(times):
            self.correlator.record(f"{event[0]} {event[1]}".encode(), subject=event[0], now=self.now)

    @rule(seconds=st.sampled_from([0.5, 30.0, 100.0, REFILL_SECONDS, WINDOW_SECONDS, 4000.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @precondition(lambda self: self.server)
    @rule(data=st.data())
    def an_event_is_deleted(self, data: st.DataObject) -> None:
        del self.server[data.draw(st.sampled_from(sorted(self.server)))]

    @precondition(lambda self: self.flying is None)
    @rule()
    def the_sender_takes(self) -> None:
        series = self.flying = self.correlator.take(now=self.now)
        if series is not None:
            assert series.writing > series.sent
            self.begun[series.key.decode().split()[0]].add(series.number)
            return
        for waiting in self.correlator._series.values():
            # Whatever is not up to date was written not long ago, so that its count is not older than a window.
            assert waiting.count == waiting.sent or (waiting.sent >= 2 and self.now < waiting.due)
            assert waiting.due <= self.now + WINDOW_SECONDS
            assert self.now - waiting.last < WINDOW_SECONDS or waiting.count > waiting.sent

    @precondition(lambda self: self.flying is not None)
    @rule(how=st.sampled_from(["well", "well", "well", "request lost", "answer lost", "refused"]))
    def the_sender_is_answered(self, how: str) -> None:
        series, self.flying = self.flying, None
        assert series is not None
        self.answered(series, how)

    def answered(self, series: Series, how: str = "well") -> None:
        """What a server does, and what the sender makes of it."""
        number, count = series.number, series.writing
        self.allowed.setdefault(number, 2 + series.first / -WINDOW_SECONDS)
        stored = {"well": True, "refused": None}.get(how, False)
        if how in ("well", "answer lost"):
            self.server[number] = count
            self.writes[number] += 1
        if how == "answer lost":
            self.unsure.add(number)
        if stored:
            self.unsure.discard(number)
            self.shown[number] = count
        else:
            self.allowed[number] += 1
        self.correlator.settle(series, stored=stored, now=self.now)

    @invariant()
    def counts_add_up(self) -> None:
        known = self.correlator
        assert known.recorded == known.limited + known.refused + known.dropped + known.unsent + sum(self.shown.values())

    @invariant()
    def memory_is_bounded(self) -> None:
        assert max(len(self.correlator._series), len(self.correlator._budgets)) <= LIMIT

    @invariant()
    def requests_are_bounded(self) -> None:
        for number, writes in self.writes.items():
            assert writes <= self.allowed[number] + self.now / WINDOW_SECONDS
        for numbers in self.begun.values():
            assert len(numbers) <= BURST + (self.now - START) / REFILL_SECONDS

    def teardown(self) -> None:
        """The end of the process: all that is left is sent."""
        if self.flying is not None:
            self.answered(self.flying)
        while self.correlator.unsent:
            series = self.correlator.take(now=math.inf)
            assert series is not None
            self.answered(series)
        self.counts_add_up()
        for number, count in self.server.items():
            assert number in self.unsure or count == self.shown[number]


TestRecording = Recording.TestCase
