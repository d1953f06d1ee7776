"""The soak's schedule is a pure function of its seed, and leaves no kind of fault out."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.soak.chaos import EFFECTS, REQUESTS
from tests.soak.schedule import ALWAYS, TARGETS, Kind, Target, schedule

SECONDS = 600.0
SEEDS = range(25)


def test_the_same_seed_gives_the_same_schedule_and_another_seed_another() -> None:
    assert schedule(7, seconds=SECONDS) == schedule(7, seconds=SECONDS)
    assert len({schedule(seed, seconds=SECONDS) for seed in SEEDS}) == len(SEEDS)


def test_the_same_seed_gives_the_same_schedule_in_another_process() -> None:
    """The order of a set differs from process to process."""
    program = "from tests.soak.schedule import schedule; print(schedule(7, seconds=600.0))"
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=_path())
    assert said.stdout.strip() == str(schedule(7, seconds=SECONDS))


@pytest.mark.parametrize("seed", SEEDS)
def test_every_kind_of_fault_occurs_within_ten_minutes(seed: int) -> None:
    assert {strike.kind for strike in schedule(seed, seconds=SECONDS)} == ALWAYS


def test_the_operator_is_killed_only_on_request() -> None:
    assert Kind.OPERATOR_KILLED not in ALWAYS
    kinds = {strike.kind for strike in schedule(7, seconds=SECONDS, kinds=frozenset(Kind))}
    assert kinds == frozenset(Kind)


@pytest.mark.parametrize("seed", SEEDS)
def test_strikes_come_in_order_and_are_over_at_the_end(seed: int) -> None:
    strikes = schedule(seed, seconds=SECONDS)
    assert [strike.at for strike in strikes] == sorted(strike.at for strike in strikes)
    assert all(strike.lasts >= 0 and strike.at + strike.lasts <= SECONDS + 0.001 for strike in strikes)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_strike_is_on_requests_that_its_kind_is_for(seed: int) -> None:
    for strike in schedule(seed, seconds=SECONDS, kinds=frozenset(Kind)):
        assert strike.target in TARGETS.get(strike.kind, (None,))
        assert strike.times is None or strike.target is not None


def test_a_longer_chaos_begins_like_a_shorter_one() -> None:
    short, long = schedule(7, seconds=100.0), schedule(7, seconds=SECONDS)
    assert [strike.at for strike in short] == [strike.at for strike in long[: len(short)]]
    assert [strike.kind for strike in short] == [strike.kind for strike in long[: len(short)]]


def test_every_kind_on_requests_has_an_effect_and_every_target_its_requests() -> None:
    assert EFFECTS.keys() == TARGETS.keys()
    assert REQUESTS.keys() == set(Target)
    for kind, make in EFFECTS.items():
        assert make() is not None, kind


def _path() -> dict[str, str]:
    return {"PYTHONPATH": ":".join(path for path in sys.path if path), "PYTHONHASHSEED": "1"}
