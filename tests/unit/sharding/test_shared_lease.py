"""The operator's own Lease, held by all replicas that share: beside old leaders and replicas that count otherwise.

The world is that of the election: requests are lost, late, carried out twice or not answered; clocks differ in speed,
replicas stand still, crash, leave and come; people edit the Lease. During a rolling update from one leader to sharing,
back, or to another number of buckets, all of these live at the same time.
"""

from __future__ import annotations

import random
from typing import Any, Final

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bonny.core.lease import LeaseCommand, LeaseInput, LeaseTiming
from bonny.run import leader
from bonny.sharding.assignment import identity_of_all
from bonny.sharding.terms import Deadlines, SharedLease, shared_timing
from tests.unit.core.test_lease_election import (
    CALM,
    FASTEST,
    FAULTY_SECONDS,
    HAPPENINGS,
    LONGEST_DELAY,
    SLOWEST,
    STEADY_SECONDS,
    TIMINGS,
    Replica,
    Weather,
    World,
    often,
)

# The shared Lease lasts twice as long; its replicas look a third as often.
CALM_SECONDS: Final = LONGEST_DELAY + 2 * 15.0 + 10.0 + 9.0
ONE, SIXTEEN, OTHER = "one", identity_of_all(16), identity_of_all(32)


class Sharer(Replica):
    """A replica that shares, with the real shell's decisions."""

    def __init__(
        self, world: World, identity: str, timing: LeaseTiming, *, offset: float, speed: float, seed: int
    ) -> None:
        self._own = SharedLease(
            None, namespace="", name="op", identity=identity, timing=timing, deadlines=Deadlines("op")
        )
        self._chance = random.Random(seed)
        super().__init__(world, identity, timing, offset=offset, speed=speed)

    def _step(self, event: LeaseInput) -> LeaseCommand:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(leader, "clock", lambda: self.clock)
            patch.setattr(leader, "random", self._chance)
            command = self._own._step(event)
        self.candidate = self._own._candidate
        return command


class Mixed(World):
    """Old leaders, and replicas that share in two ways."""

    def join(self, way: str = "") -> None:
        """Another replica; by default of any of these ways."""
        way = way or self.random.choice((ONE, SIXTEEN, SIXTEEN, OTHER))
        timing, offset = self.random.choice(TIMINGS), self.random.uniform(-1e6, 1e6)
        speed = self.random.choice((SLOWEST, FASTEST, self.random.uniform(SLOWEST, FASTEST)))
        options: dict[str, Any] = {"offset": offset, "speed": speed}
        if way == ONE:
            made = Replica(self, f"r{next(self.numbers)}", timing, **options)
        else:
            made = Sharer(self, way, shared_timing(timing), **options, seed=self.random.randrange(2**32))
        self.replicas.append(made)

    def check(self) -> None:
        """At most one old leader acts, or any number of replicas that share in one way."""
        holders = {each.candidate.identity for each in self.leaders}
        assert len(holders) <= 1, [(one.candidate, one.leads_until - self.now) for one in self.leaders]

    def update(self) -> None:
        """A rolling update: all that are there leave, and as many come that share, or do not, in another way."""
        way = self.random.choice((ONE, SIXTEEN, OTHER))
        for old in self.alive:
            old.leaving = True
            if self.lease is not None:
                self.join(way)


@st.composite
def updates(draw: st.DrawFn) -> Mixed:
    """A mixed world of 2 to 5 replicas after 90 s of faults and updates."""
    world = Mixed(draw(st.integers(0, 2**32)))
    world.weather = Weather(*(draw(often(most)) for most in (0.8, 0.4, 0.4, 0.3, 0.05)))
    happenings: list[tuple[float, str]] = draw(
        st.lists(st.tuples(st.floats(0.0, FAULTY_SECONDS), st.sampled_from((*HAPPENINGS, "update"))), max_size=12)
    )
    for when, name in happenings:
        world.at(world.now + when, getattr(world, name))
    for _ in range(draw(st.integers(2, 5))):
        world.join()
    world.run(FAULTY_SECONDS)
    world.weather = CALM
    return world


@given(world=updates())
def test_one_leader_never_acts_beside_replicas_that_share_nor_do_replicas_that_count_otherwise(world: Mixed) -> None:
    """That it is so is checked at every step of every replica."""
    if all(replica.leaving for replica in world.alive):
        world.join()
    world.run(CALM_SECONDS)
    (holder,) = {each.candidate.identity for each in world.leaders}
    alike = [each for each in world.alive if each.candidate.identity == holder]
    assert world.leaders == alike, "all that share in this way may act"

    def steady() -> None:
        assert world.leaders == alike

    world.run(STEADY_SECONDS, each=steady)


@example(seed=201)
@given(seed=st.integers(0, 2**32))
def test_replicas_that_share_follow_an_old_leader_that_leaves_within_a_look(seed: int) -> None:
    world = Mixed(seed)
    world.join(ONE)
    world.run(5.0)
    (old,) = world.leaders
    for _ in range(3):
        world.join(SIXTEEN)
    world.run(20.0)
    assert world.leaders == [old]
    old.leaving = True

    # The old one notices at its next step, 2 s later; the others look every 3 s.
    world.run(2.1 + 3.1)
    assert len(world.leaders) >= 2
    # With seed 201 the write of one met that of another: it looks once more.
    world.run(3.1)

    assert len(world.leaders) == 3


@pytest.mark.parametrize("way", [ONE, OTHER])
@given(seed=st.integers(0, 2**32))
def test_after_the_last_replica_that_shares_the_others_wait_for_the_whole_duration_and_no_longer(
    way: str, seed: int
) -> None:
    world = Mixed(seed)
    for _ in range(3):
        world.join(SIXTEEN)
    world.run(20.0)
    sharing = world.leaders
    assert len(sharing) == 3
    world.join(way)
    world.run(20.0)
    assert world.leaders == sharing
    for each in sharing:
        each.leaving = True
    world.run(6.1)  # until their next step
    assert world.leaders == []

    longest = max(each.candidate.timing.lease_duration for each in sharing)
    world.run(longest + 3.1)

    (only,) = world.leaders
    assert only not in sharing
