"""How long to wait after a failure."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bonny.core.backoff import Backoff
from bonny.errors import OptionError

CHANCES = st.floats(0, 1, exclude_max=True)


@given(failures=st.integers(1, 10_000), chance=CHANCES)
def test_no_wait_is_shorter_than_the_base_or_longer_than_the_cap(failures: int, chance: float) -> None:
    assert 0.8 <= Backoff(base=0.8, cap=30.0).delay(failures, chance=chance) <= 30.0


@given(failures=st.integers(1, 100), chance=CHANCES)
def test_another_failure_never_makes_the_wait_shorter(failures: int, chance: float) -> None:
    backoff = Backoff(base=0.2, cap=300.0)

    assert backoff.delay(failures + 1, chance=chance) >= backoff.delay(failures, chance=chance)


def test_the_bound_doubles_with_each_failure_up_to_the_cap() -> None:
    backoff = Backoff(base=1.0, cap=10.0)

    assert [backoff.delay(n, chance=1.0) for n in range(1, 6)] == [2.0, 4.0, 8.0, 10.0, 10.0]


def test_the_whole_span_below_the_bound_is_used() -> None:
    """Full jitter: streams that broke together do not come back together."""
    backoff = Backoff(base=1.0, cap=64.0)

    assert [backoff.delay(4, chance=chance) for chance in (0.0, 0.5)] == [1.0, 8.5]


@given(failures=st.integers(1, 10_000), chance=CHANCES, failing=st.floats(0, 1e6))
def test_no_wait_is_longer_than_the_time_that_it_failed_already_or_twice_the_base(
    failures: int, chance: float, failing: float
) -> None:
    backoff = Backoff(base=0.2, cap=300.0)

    wait = backoff.delay(failures, chance=chance, failing=failing)

    assert 0.2 <= wait <= min(300.0, max(failing, 0.4))
    assert wait >= 0.75 * min(0.2 * 2.0 ** min(failures, 63), 300.0, failing)


@pytest.mark.parametrize(("base", "cap"), [(0, 1), (-1, 1), (2, 1), (float("nan"), 1), (1, float("nan"))])
def test_impossible_limits_are_refused_in_one_sentence(base: float, cap: float) -> None:
    with pytest.raises(OptionError, match=r"use 0 < base <= cap, in seconds$"):
        Backoff(base=base, cap=cap)
