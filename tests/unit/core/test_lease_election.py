"""An election among several candidates on a hostile network, in virtual time: never two that may write at a time.

`World` is the protocol as plain values: one Lease with versions, and replicas whose clocks differ in offset and speed.
Requests are lost, late, carried out twice or never answered; replicas stand still, crash, leave and come; people edit
the Lease. hypothesis decides how bad it is and what people do; a random number generator that it seeds, the rest.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

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

# A rolling update that changes the times: each counts by what the other wrote. Both bear 1.5 times as fast a clock.
TIMINGS: Final = (LeaseTiming(lease_duration=6, renew_deadline=4.0, retry_period=1.0), LeaseTiming())
SLOWEST, FASTEST = 1.0, 1.49
LONGEST_DELAY: Final = 20.0
DELAYS: Final = (0.01, 0.01, 0.01, 0.3, 1.0, 4.0, LONGEST_DELAY)
FAULTY_SECONDS: Final = 90.0
# Timers fire a little late, so that floating point numbers let time pass.
RESOLUTION: Final = 1e-6
# After the last fault: the last stray write may land after 20 s, and name somebody who is gone; that expires after
# 15 s; who hangs in a request is free after 5 s; two looks, and the answers.
CALM_SECONDS: Final = LONGEST_DELAY + 15.0 + 5.0 + 3.0
STEADY_SECONDS: Final = 20.0


@dataclass(frozen=True)
class Weather:
    """How likely it is, from 0 to 1, that ..."""

    late: float
    lost: float
    unanswered: float
    twice: float
    frozen: float


CALM: Final = Weather(0.0, 0.0, 0.0, 0.0, 0.0)


class Replica:
    """A candidate with a clock, and the shell around it as `bonny.run.leader` is one."""

    def __init__(self, world: World, name: str, timing: LeaseTiming, *, offset: float, speed: float) -> None:
        self.world = world
        self.candidate = Candidate(name, timing)
        self.offset = offset
        self.speed = speed
        self.alive = True
        self.leaving = False
        self.frozen_until = 0.0
        self.requests = 0
        self.awaited = 0
        """The number of the answer, or wait, that comes next; whatever else comes is not looked at."""

        self.born = world.now
        self.tell(LeaseTick())

    @property
    def clock(self) -> float:
        return self.offset + self.speed * self.world.now

    @property
    def leads_until(self) -> float:
        """The moment of the world after which it starts no write."""
        if self.leaving or not self.alive:
            return float("-inf")
        return (self.candidate.until - self.offset) / self.speed

    def tell(self, event: LeaseInput) -> None:
        command = self._step(event)
        if self.leaving and not self.candidate.releasing:
            command = self._step(Release())
        self.world.check()
        self._perform(command)

    def _step(self, event: LeaseInput) -> LeaseCommand:
        self.candidate, command = step(self.candidate, event, now=self.clock, chance=self.world.random.random())
        return command

    def _perform(self, command: LeaseCommand) -> None:
        self.awaited = number = next(self.world.numbers)
        match command:
            case LeaseWait(seconds):
                assert seconds >= 0
                self.hears(number, LeaseTick(), after=seconds / self.speed + RESOLUTION)
            case Read(seconds) | Write(seconds=seconds):
                assert seconds > 0
                self.requests += 1
                sent = self.clock
                self.world.send(self, command, lambda event, delay: self.hears(number, event, after=delay), sent)
                self.hears(number, Failed(), after=seconds / self.speed)
            case Done():
                self.alive = False

    def hears(self, number: int, event: LeaseInput, *, after: float) -> None:
        """`event` comes, unless something else answers the same before."""

        def come() -> None:
            if self.alive and self.awaited == number:
                if self.frozen_until > self.world.now:
                    self.world.at(self.frozen_until, come)
                else:
                    self.awaited = 0
                    self.tell(event)

        self.world.at(self.world.now + after, come)


class World:
    """One Lease, and who wants it."""

    def __init__(self, seed: int) -> None:
        self.now = 1000.0
        self.random = random.Random(seed)
        self.numbers = count(1)
        self.weather = CALM
        self.faulty_until = self.now + FAULTY_SECONDS
        self.lease: LeaseRecord | None = None
        self.creations = 0
        """How many requests to create it are on their way."""
        self.replicas: list[Replica] = []
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []

    def at(self, when: float, happens: Callable[[], None]) -> None:
        heappush(self._agenda, (when, next(self.numbers), happens))

    def run(self, seconds: float, *, each: Callable[[], None] = lambda: None) -> None:
        """Let time pass; `each` is called after everything that happens."""
        ends = self.now + seconds
        while self._agenda and self._agenda[0][0] <= ends:
            self.now, _, happens = heappop(self._agenda)
            happens()
            each()
        self.now = ends

    def likely(self, probability: float) -> bool:
        return self.random.random() < probability

    # --- replicas -----------------------------------------------------------------------------------------------------

    def join(self) -> None:
        timing, offset = self.random.choice(TIMINGS), self.random.uniform(-1e6, 1e6)
        speed = self.random.choice((SLOWEST, FASTEST, self.random.uniform(SLOWEST, FASTEST)))
        self.replicas.append(Replica(self, f"r{next(self.numbers)}", timing, offset=offset, speed=speed))

    @property
    def alive(self) -> list[Replica]:
        return [replica for replica in self.replicas if replica.alive]

    @property
    def leaders(self) -> list[Replica]:
        """Those that may start a write now."""
        return [replica for replica in self.replicas if replica.leads_until > self.now]

    def check(self) -> None:
        leaders = self.leaders
        assert len(leaders) <= 1, [(one.candidate, one.leads_until - self.now) for one in leaders]

    # --- the API server -----------------------------------------------------------------------------------------------

    def send(
        self, sender: Replica, command: LeaseCommand, answer: Callable[[LeaseInput, float], None], sent: float
    ) -> None:
        """A request on its way; it is carried out when it arrives, though its sender may have given it up."""
        if self.likely(self.weather.frozen):
            self._freeze(sender)
        if self.likely(self.weather.lost):
            return
        creation = isinstance(command, Write) and not command.record.version
        for _ in range(1 + self.likely(self.weather.twice)):
            self.creations += creation

            def arrive() -> None:
                self.creations -= creation
                event = self._carried_out(command, sent)
                if not self.likely(self.weather.unanswered):
                    answer(event, self._delay())

            self.at(self.now + self._delay(), arrive)

    def _delay(self) -> float:
        return self.random.choice(DELAYS) if self.likely(self.weather.late) else 0.01

    def _carried_out(self, command: LeaseCommand, sent: float) -> LeaseInput:
        match command:
            case Read():
                return Found(self.lease or LeaseRecord())
            case Write(record):
                if record.version != (self.lease.version if self.lease else ""):
                    return Failed()
                return Stored(self.write(record), sent)
        raise AssertionError(command)

    def write(self, record: LeaseRecord) -> LeaseRecord:
        number = str(next(self.numbers))
        self.lease = replace(record, version=number, renewed=f"at {number}")
        return self.lease

    # --- what happens besides -----------------------------------------------------------------------------------------

    def crash(self) -> None:
        """The leader ends, or whoever there is; somebody else comes."""
        (self.leaders or self.alive or self.replicas)[0].alive = False
        self._replace()

    def leave(self) -> None:
        for replica in (self.leaders or self.alive)[:1]:
            replica.leaving = True
        self._replace()

    def freeze(self) -> None:
        for replica in (self.leaders or self.alive)[:1]:
            self._freeze(replica)

    def _freeze(self, replica: Replica) -> None:
        replica.frozen_until = min(self.now + self.random.uniform(0.1, 40.0), self.faulty_until)

    def _replace(self) -> None:
        # Nobody comes who cannot know that there was a Lease: see the assumptions.
        if self.lease is not None:
            self.join()

    def label(self) -> None:
        """Somebody else writes into the Lease."""
        if self.lease is not None:
            self.write(self.lease)

    def rename_holder(self) -> None:
        if self.lease is not None:
            self.write(replace(self.lease, holder="nobody"))

    def remove_holder(self) -> None:
        if self.lease is not None and self.lease.holder:
            self.write(replace(self.lease, holder=""))

    def delete(self) -> None:
        """Under the assumptions that make it safe."""
        seen = {replica.candidate.record and replica.candidate.record.holder for replica in self.alive}
        if self.lease is not None and seen <= {self.lease.holder} and not self.creations:
            self.lease = None


HAPPENINGS: Final = ("crash", "leave", "freeze", "label", "rename_holder", "remove_holder", "delete")


def often(most: float) -> st.SearchStrategy[float]:
    return st.sampled_from((0.0, most / 4, most))


@st.composite
def elections(draw: st.DrawFn) -> World:
    """A world of 2 to 4 replicas after 90 s of faults."""
    world = World(draw(st.integers(0, 2**32)))
    world.weather = Weather(*(draw(often(most)) for most in (0.8, 0.4, 0.4, 0.3, 0.05)))
    happenings: list[tuple[float, str]] = draw(
        st.lists(st.tuples(st.floats(0.0, FAULTY_SECONDS), st.sampled_from(HAPPENINGS)), max_size=12)
    )
    for when, name in happenings:
        world.at(world.now + when, getattr(world, name))
    for _ in range(draw(st.integers(2, 4))):
        world.join()
    world.run(FAULTY_SECONDS)
    world.weather = CALM
    return world


@given(world=elections())
def test_never_do_two_lead_and_when_faults_end_one_does(world: World) -> None:
    """That no two lead is checked at every step of every replica."""
    if all(replica.leaving for replica in world.alive):
        world.join()
    world.run(CALM_SECONDS)
    assert len(world.leaders) == 1
    (leader,) = world.leaders

    def steady() -> None:
        assert world.leaders == [leader]

    world.run(STEADY_SECONDS, each=steady)


@given(world=elections())
def test_however_bad_it_is_no_replica_asks_more_than_twice_a_look(world: World) -> None:
    for replica in world.replicas:
        looks = (world.now - replica.born) * replica.speed / (0.8 * replica.candidate.timing.retry_period / 2)
        assert replica.requests <= 2 * looks + 4


@given(seed=st.integers(0, 2**32))
def test_a_dead_leader_is_followed_within_its_lease_and_a_look(seed: int) -> None:
    world = World(seed)
    for _ in range(3):
        world.join()
    world.run(world.random.uniform(20.0, 30.0))
    (leader,) = world.leaders
    leader.alive = False

    world.run(leader.candidate.timing.lease_duration + 1.1)

    assert len(world.leaders) == 1


@given(seed=st.integers(0, 2**32))
def test_a_leader_that_leaves_is_followed_within_a_look(seed: int) -> None:
    world = World(seed)
    for _ in range(3):
        world.join()
    world.run(world.random.uniform(20.0, 30.0))
    (leader,) = world.leaders
    leader.leaving = True

    # It notices at once, but in this world only at its next step, 2 s later.
    world.run(2.1 + 1.1)

    assert len(world.leaders) == 1
    assert leader not in world.leaders


def test_clocks_that_differ_more_than_assumed_do_lead_to_two_leaders() -> None:
    """That the search would see it."""

    def partitioned(speed: float) -> None:
        world = World(1)
        slow = Replica(world, "slow", TIMINGS[1], offset=0.0, speed=1.0)
        world.replicas.append(slow)
        world.run(5.0)
        world.replicas.append(Replica(world, "fast", TIMINGS[1], offset=0.0, speed=speed))
        world.run(5.0)
        # The slow one is cut off; the fast one is not.
        send: Any = world.send
        world.send = lambda sender, *request: None if sender is slow else send(sender, *request)  # type: ignore[method-assign]
        world.run(20.0)

    partitioned(1.45)
    with pytest.raises(AssertionError):
        partitioned(1.8)
