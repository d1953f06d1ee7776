"""When a correction that another writer undoes is made again. Virtual time throughout."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bonny.core.fights import AT_ONCE, GAP_SECONDS, LONGEST_SECONDS, Fights


def corrections(fights: Fights, *, until: float, every: float = 0.0) -> list[float]:
    """When `child` is corrected while a rival undoes each correction `every` seconds after it."""
    now, made = 0.0, []
    while (now := now + fights.wait("child", now=now)) < until:
        fights.corrected("child", now=now)
        made.append(now)
        now += every
        assert len(made) < 100_000, "it spins"
    return made


def test_the_first_five_corrections_in_a_row_are_made_at_once_and_each_further_one_waits_longer() -> None:
    assert corrections(Fights(), until=300.0) == [0, 0, 0, 0, 0, 1, 3, 7, 15, 31, 63, 123, 183, 243]


def test_a_fight_that_lasts_for_a_month_costs_one_correction_a_minute() -> None:
    month = 30 * 86_400.0
    assert len(corrections(Fights(), until=month)) <= month / LONGEST_SECONDS + 12


@pytest.mark.parametrize("every", [GAP_SECONDS, 60.0, 3600.0])
def test_what_drifts_now_and_then_is_corrected_at_once_each_time(every: float) -> None:
    fights = Fights()
    assert len(corrections(fights, until=100 * every, every=every)) == 100
    assert not fights.corrected("child", now=101 * every)


def test_a_subject_that_was_left_alone_after_its_wait_is_corrected_at_once_again() -> None:
    fights = Fights()
    last = corrections(fights, until=300.0)[-1]
    left_alone = last + LONGEST_SECONDS + GAP_SECONDS

    assert [fights.corrected("child", now=left_alone) for _ in range(AT_ONCE)] == [False] * 4 + [True]
    assert fights.wait("child", now=left_alone) == 1.0


def test_a_fight_is_reported_once_and_each_new_one_again() -> None:
    fights = Fights()
    assert [fights.corrected("child", now=0.1 * n) for n in range(20)].count(True) == 1
    later = 1000.0
    assert [fights.corrected("child", now=later + 0.1 * n) for n in range(20)].count(True) == 1


def test_subjects_do_not_wait_for_each_other() -> None:
    fights = Fights()
    corrections(fights, until=10.0)
    assert fights.wait("child", now=10.0) > 0.0
    assert fights.wait("sibling", now=10.0) == 0.0


def test_only_subjects_corrected_within_the_last_70_seconds_are_remembered() -> None:
    fights = Fights()
    for number in range(10_000):
        for _ in range(1 + number % 9):
            fights.corrected(f"child-{number}", now=float(number))
    assert len(fights._rows) <= LONGEST_SECONDS + GAP_SECONDS


@given(pauses=st.lists(st.floats(0.0, 100.0), max_size=60))
def test_a_wait_is_never_longer_than_a_minute_whatever_came_before(pauses: list[float]) -> None:
    fights, now = Fights(), 0.0
    for pause in pauses:
        now += pause
        fights.corrected("child", now=now)
        assert 0.0 <= fights.wait("child", now=now) <= LONGEST_SECONDS
        assert fights.wait("child", now=now + LONGEST_SECONDS) == 0.0
