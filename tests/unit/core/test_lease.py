"""The lease: who may write, until when, and what is done next. One candidate that is told by hand what happens."""

from __future__ import annotations

from typing import Any

import pytest

from bonny.core.lease import (
    Candidate,
    Done,
    Failed,
    Found,
    LeaseCommand,
    LeaseInput,
    LeaseRecord,
    LeaseTick,
    LeaseTiming,
    LeaseWait,
    Read,
    Release,
    Stored,
    Write,
    step,
)
from bonny.errors import OptionError

TIMING = LeaseTiming()
GONE = Found(LeaseRecord())


def record(
    holder: str = "b", *, version: str = "1", duration: int = 15, transitions: int = 0, at: str = ""
) -> LeaseRecord:
    return LeaseRecord(version, holder, duration, transitions, at)


class Told:
    """Candidate `a`, and what it was last told to do."""

    def __init__(self, timing: LeaseTiming = TIMING, *, chance: float = 0.0) -> None:
        self.now = 1000.0
        self.chance = chance
        self.candidate = Candidate("a", timing)
        self.command: LeaseCommand = Done()
        self.tell(LeaseTick())

    def tell(self, *events: LeaseInput, after: float = 0.0) -> LeaseCommand:
        """Let `events` happen, `after` seconds from now; returns what to do after the last."""
        self.now += after
        for event in events:
            self.candidate, self.command = step(self.candidate, event, now=self.now, chance=self.chance)
        return self.command

    def waits_out(self) -> LeaseCommand:
        """The wait that was asked for passes."""
        assert isinstance(self.command, LeaseWait), self.command
        return self.tell(LeaseTick(), after=self.command.seconds)

    def stores(self, *, version: str, took: float = 0.0) -> LeaseCommand:
        """The write that was asked for is stored, and answered `took` seconds later."""
        assert isinstance(self.command, Write), self.command
        wanted, sent = self.command.record, self.now
        return self.tell(
            Stored(record(wanted.holder, version=version, transitions=wanted.transitions), sent), after=took
        )

    @property
    def left(self) -> float:
        """Seconds in which it may write."""
        return max(self.candidate.until - self.now, 0.0)

    @property
    def written(self) -> tuple[str, str, int, int, bool]:
        """Version, holder, duration, transitions of the write that is asked for, and whether it acquires."""
        assert isinstance(self.command, Write), self.command
        wanted = self.command.record
        return wanted.version, wanted.holder, wanted.duration, wanted.transitions, self.command.acquires


def leader(**options: Any) -> Told:
    """One that has just begun to lead, with version 1."""
    told = Told(**options)
    told.tell(GONE)
    told.stores(version="1")
    return told


def follower(*, duration: int = 15, **options: Any) -> Told:
    """One that has just seen that `b` leads, with version 1."""
    told = Told(**options)
    told.tell(Found(record(duration=duration, transitions=4)))
    return told


# --- becoming the leader ----------------------------------------------------------------------------------------------


def test_the_first_thing_is_to_read_the_lease() -> None:
    assert Told().command == Read(5.0)


def test_a_lease_that_never_was_is_created() -> None:
    told = Told()
    told.tell(GONE)

    assert told.written == ("", "a", 15, 0, True)
    assert told.left == 0.0


def test_a_term_counts_from_when_its_write_was_sent() -> None:
    told = Told()
    told.tell(GONE)
    told.stores(version="1", took=3.0)

    assert told.left == 7.0
    assert told.candidate.expires - told.now == 12.0


def test_an_answer_that_comes_after_the_term_that_it_brings_begins_none() -> None:
    told = Told()
    told.tell(GONE)
    told.stores(version="1", took=10.0)

    assert told.left == 0.0
    assert told.written == ("1", "a", 15, 0, False), "it is ours, so it is renewed"


def test_a_lease_that_was_released_is_taken_over_at_once() -> None:
    told = Told()
    told.tell(Found(record("", version="7", duration=1, transitions=3)))

    assert told.written == ("7", "a", 15, 4, True)


def test_a_lease_without_a_holder_or_a_duration_was_never_held() -> None:
    told = Told()
    told.tell(Found(record("", version="7", duration=0)))

    assert told.written == ("7", "a", 15, 1, True)


def test_who_lost_the_race_for_it_reads_who_won() -> None:
    told = Told()
    told.tell(GONE, Failed())

    assert told.command == LeaseWait(1.0)
    assert told.waits_out() == Read(5.0)
    assert told.tell(Found(record())) == LeaseWait(1.0)


def test_a_lease_that_is_ours_by_a_write_whose_answer_was_lost_is_renewed_before_it_counts() -> None:
    told = Told()
    told.tell(GONE, Failed(), LeaseTick(), Found(record("a", version="1")))

    assert told.left == 0.0
    assert told.written == ("1", "a", 15, 0, False)


# --- waiting for the leader's end -------------------------------------------------------------------------------------


def test_a_candidate_looks_every_second() -> None:
    told = follower()
    for version in range(2, 40):
        assert told.command == LeaseWait(1.0)
        assert told.waits_out() == Read(5.0)
        told.tell(Found(record(version=str(version))), after=0.1)


def test_a_lease_expires_when_it_did_not_change_for_its_own_duration() -> None:
    told = follower(duration=40)
    began = told.now
    while not isinstance(told.command, Write):
        if told.waits_out() == Read(5.0):
            told.tell(Found(record(duration=40, transitions=4)), after=0.3)

    assert 40.0 <= told.now - began <= 40.3
    assert told.written == ("1", "a", 15, 5, True)


def test_only_what_was_not_seen_before_is_a_sign_of_life() -> None:
    told = follower()
    told.tell(Found(record(transitions=4)), after=14.5)
    assert told.command == LeaseWait(0.5)

    told = follower()
    told.tell(Found(record(version="2")), after=14.5)
    assert told.command == LeaseWait(1.0)


def test_the_same_version_with_other_times_is_a_sign_of_life() -> None:
    """An etcd that was restored from a backup gives versions again."""
    told = follower()
    told.tell(Found(record(transitions=4, at="2026-01-01T00:00:00.000000Z")), after=14.5)

    assert told.command == LeaseWait(1.0)


def test_times_that_others_wrote_are_not_compared_with_ours() -> None:
    told = Told()

    assert told.tell(Found(record(at="1970-01-01T00:00:00.000000Z"))) == LeaseWait(1.0)


def test_a_holder_without_a_duration_has_our_own() -> None:
    told = follower(duration=0)

    assert isinstance(told.tell(Found(record(duration=0, transitions=4)), after=14.9), LeaseWait)
    assert isinstance(told.tell(Found(record(duration=0, transitions=4)), after=0.1), Write)


def test_a_read_that_fails_does_not_prolong_the_wait_for_the_leaders_end() -> None:
    told = follower()
    told.tell(LeaseTick(), Failed(), after=10.0)
    told.tell(LeaseTick(), Found(record(transitions=4)), after=5.0)

    assert told.written == ("1", "a", 15, 5, True)


def test_looks_are_spread_by_chance() -> None:
    assert follower(chance=1.0).command == LeaseWait(0.8)


# --- leading ----------------------------------------------------------------------------------------------------------


def test_a_leader_renews_every_two_seconds_with_the_version_that_it_knows() -> None:
    told = leader()
    for version in range(2, 30):
        told.waits_out()
        assert told.written == (str(version - 1), "a", 15, 0, False)
        told.stores(version=str(version), took=0.5)
        assert told.command == LeaseWait(1.5)
        assert told.left == 9.5


def test_renewals_are_spread_by_chance_and_never_later_than_asked_for() -> None:
    wait = leader(chance=1.0).command
    assert isinstance(wait, LeaseWait)
    assert wait.seconds == pytest.approx(1.6)


def test_a_request_of_a_leader_ends_within_its_term() -> None:
    told = leader()
    told.waits_out()
    assert isinstance(told.command, Write)
    assert told.command.seconds == 5.0
    told.tell(Failed(), after=5.0)
    told.waits_out()

    assert told.command == Read(2.0)
    assert told.tell(Failed(), after=1.5) == LeaseWait(0.5)


def test_a_renewal_whose_answer_is_lost_is_made_good_by_the_next() -> None:
    told = leader()
    told.waits_out()
    told.tell(Failed(), after=5.0)
    assert told.waits_out() == Read(2.0)
    told.tell(Found(record("a", version="2")))
    assert told.written == ("2", "a", 15, 0, False)
    assert told.left == 2.0, "what was read proves nothing about when it was sent"

    told.stores(version="3")
    assert told.left == 10.0


def test_a_leader_that_cannot_renew_stops_in_time_and_becomes_a_candidate() -> None:
    told = leader()
    told.waits_out()
    while told.left:
        told.tell(Failed())
        told.waits_out()

    assert told.now == 1010.0
    assert told.command == Read(5.0)


def test_a_leader_that_finds_another_holder_stops_at_once() -> None:
    told = leader()
    told.tell(LeaseTick(), Failed(), LeaseTick(), after=2.0)
    told.tell(Found(record("b", version="9")))

    assert told.left == 0.0
    assert told.command == LeaseWait(1.0)
    assert told.candidate.expires - told.now == 5.0


def test_whose_term_ended_gets_the_lease_again_if_nobody_took_it() -> None:
    told = leader()
    told.tell(Failed(), LeaseTick(), Found(record("a", version="1")), after=12.0)

    assert told.written == ("1", "a", 15, 0, False)
    told.stores(version="2")
    assert told.left == 10.0


def test_what_something_else_made_of_a_write_is_no_success() -> None:
    told = Told()
    told.tell(GONE, Stored(record("c"), told.now))

    assert told.left == 0.0
    assert told.command == LeaseWait(1.0)


# --- what people do to it ---------------------------------------------------------------------------------------------


def test_a_leader_makes_a_lease_that_was_deleted_again() -> None:
    told = leader()
    told.tell(LeaseTick(), Failed(), LeaseTick(), GONE, after=2.0)
    assert told.written == ("", "a", 15, 0, True)
    assert told.left == 8.0

    told.stores(version="12")
    assert told.left == 10.0


@pytest.mark.parametrize("seen", [record(), record(""), record("", duration=1), record("a")])
def test_who_saw_a_lease_that_was_deleted_since_waits_for_its_whole_duration(seen: LeaseRecord) -> None:
    told = Told()
    told.tell(Found(seen), Failed())
    told.tell(LeaseTick(), GONE)
    for _ in range(15):
        assert told.command == LeaseWait(1.0)
        told.tell(LeaseTick(), after=1.0)
        if told.command == Read(5.0):
            told.tell(GONE)

    assert told.written == ("", "a", 15, 0, True)


def test_a_deleted_lease_counts_as_held_for_the_longer_of_the_two_durations() -> None:
    told = follower(duration=60)
    told.tell(LeaseTick(), GONE, after=1.0)
    assert isinstance(told.tell(LeaseTick(), GONE, after=58.0), LeaseWait)

    assert isinstance(told.tell(LeaseTick(), after=2.0), Read)
    assert isinstance(told.tell(GONE), Write)


def test_a_holder_that_was_removed_by_hand_has_its_whole_duration_to_notice() -> None:
    told = follower()
    told.tell(LeaseTick(), Found(record("", version="2", transitions=4)), after=14.5)
    assert told.command == LeaseWait(1.0)

    assert isinstance(told.tell(LeaseTick(), Found(record("", version="2", transitions=4)), after=14.9), LeaseWait)
    told.tell(LeaseTick(), after=0.1)
    assert told.written == ("2", "a", 15, 5, True)


def test_a_lease_that_others_wrote_into_is_renewed_by_its_new_version() -> None:
    told = leader()
    told.tell(LeaseTick(), Failed(), LeaseTick(), Found(record("a", version="5")), after=2.0)

    assert told.written == ("5", "a", 15, 0, False)
    assert told.left == 8.0


# --- leaving ----------------------------------------------------------------------------------------------------------


def test_a_leader_that_leaves_releases_the_lease_and_leads_no_more() -> None:
    told = leader()
    told.tell(Release())
    assert told.left == 0.0
    assert told.written == ("1", "", 1, 0, False)

    assert told.tell(Stored(record("", version="2", duration=1), told.now)) == Done()


def test_a_release_that_failed_is_tried_again_if_the_lease_is_still_ours() -> None:
    told = leader()
    told.tell(Release(), Failed())
    assert told.command == LeaseWait(1.0)
    assert told.waits_out() == Read(5.0)
    told.tell(Found(record("a", version="2")))
    assert told.written == ("2", "", 1, 0, False)

    told.tell(Failed(), LeaseTick())
    assert told.tell(Found(record("", version="3", duration=1))) == Done()


def test_an_answer_that_comes_after_the_release_brings_no_term() -> None:
    told = leader()
    told.tell(Release(), Stored(record("a", version="2"), told.now))

    assert told.left == 0.0


def test_who_does_not_lead_leaves_without_a_write() -> None:
    told = follower()
    assert told.tell(Release()) == Read(5.0), "a write of ours may have been stored unseen"

    assert told.tell(Found(record())) == Done()


# --- options ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong",
    [
        {"lease_duration": 10},
        {"lease_duration": 15.5},
        {"renew_deadline": 15.0},
        {"renew_deadline": 3.9},
        {"retry_period": 0.0},
        {"retry_period": 5.1},
    ],
)
def test_times_that_cannot_be_are_refused_in_one_sentence(wrong: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match=r"LeaseTiming is .*: use a whole lease_duration"):
        LeaseTiming(**wrong)


def test_the_defaults_are_those_of_client_go() -> None:
    assert (TIMING.lease_duration, TIMING.renew_deadline, TIMING.retry_period) == (15, 10.0, 2.0)
