"""Assignment: replicas with views of their own, in virtual time, and the Leases of a server that stores by version."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from bonny.core import lease
from bonny.core.lease import Candidate, LeaseRecord, LeaseTiming
from bonny.sharding import Sharding
from bonny.sharding.assignment import View, bucket_of, fnv1a64, identity_of_all

TIMING: Final = LeaseTiming()
BUCKETS: Final = 16
HELD: Final = LeaseRecord(version="1", holder="other", duration=15, transitions=3, renewed="a")


def view(identity: str = "a", *, buckets: int = BUCKETS) -> View:
    made = View(identity, member=f"m-{identity}", buckets=buckets, timing=TIMING)
    made.listed(now=0.0)
    return made


def test_the_hash_is_that_of_the_api_server() -> None:
    # Values of the reference implementation; the empty text is its offset.
    assert fnv1a64("") == 0xCBF29CE484222325
    assert fnv1a64("a") == 0xAF63DC4C8601EC8C
    assert fnv1a64("foobar") == 0x85944171F73967E8


@given(st.uuids(), st.sampled_from([2, 4, 8, 16, 32, 64]))
def test_more_buckets_divide_the_buckets_of_a_smaller_number(uid: object, buckets: int) -> None:
    assert 0 <= bucket_of(str(uid), buckets) < buckets
    assert bucket_of(str(uid), 64) * buckets // 64 == bucket_of(str(uid), buckets)


def test_random_uids_spread_over_the_buckets() -> None:
    draw = random.Random(1)
    counts = [0] * BUCKETS
    for _ in range(16_000):
        counts[bucket_of(f"{draw.getrandbits(128):032x}", BUCKETS)] += 1
    assert max(counts) < 1.15 * 1_000
    assert min(counts) > 0.85 * 1_000


@pytest.mark.parametrize("number", [0, 1, 3, 12, 128, "16"])
def test_a_number_of_buckets_that_is_not_a_power_of_two_is_refused(number: object) -> None:
    with pytest.raises(ValueError, match=r"Sharding\.buckets is .*: use 2, 4, 8, 16, 32 or 64"):
        Sharding(buckets=number)  # type: ignore[arg-type]


@given(st.integers(1, 40), st.sampled_from([2, 16, 64]))
def test_the_shares_of_all_members_add_up_and_differ_by_at_most_one(members: int, buckets: int) -> None:
    names = [f"{number:02d}" for number in range(members)]
    shares = []
    for name in names:
        seen = view(name, buckets=buckets)
        for other in names:
            seen.saw_member(f"m-{other}", replace(HELD, holder=other), now=0.0)
        shares.append(seen.plan(kept=(), busy=(), now=1.0).share)
    assert sum(shares) == buckets
    assert max(shares) - min(shares) <= 1


def test_a_held_bucket_is_claimed_when_its_duration_has_passed_since_it_was_received_and_not_before() -> None:
    seen = view()
    seen.saw_bucket(3, HELD, now=100.0)
    assert 3 not in seen.plan(kept=(), busy=(), now=114.9).claims
    assert 3 in seen.plan(kept=(), busy=(), now=115.0).claims
    seen.saw_bucket(3, replace(HELD, version="2", renewed="b"), now=115.0)
    assert 3 not in seen.plan(kept=(), busy=(), now=116.0).claims


def test_a_released_bucket_is_claimed_at_once_and_a_deleted_one_after_its_duration() -> None:
    seen = view()
    for bucket in range(BUCKETS):
        seen.saw_bucket(bucket, HELD, now=100.0)
    seen.saw_bucket(1, replace(HELD, version="2", holder="", duration=1), now=101.0)
    seen.saw_bucket(2, LeaseRecord(), now=101.0)
    assert seen.plan(kept=(), busy=(), now=101.0).claims == [1]
    assert 2 not in seen.plan(kept=(), busy=(), now=115.5).claims
    assert 2 in seen.plan(kept=(), busy=(), now=116.0).claims


def test_a_new_replica_waits_for_a_lease_that_was_deleted_by_hand_before_it_came_and_not_at_the_first_start() -> None:
    """Regression: it claimed the bucket at once, while the holder did not know yet that its Lease was gone."""
    first = view()
    assert len(first.plan(kept=(), busy=(), now=0.0).claims) == BUCKETS
    later = View("b", member="m-b", buckets=BUCKETS, timing=TIMING)
    for bucket in range(1, BUCKETS):
        later.saw_bucket(bucket, HELD, now=5.0)
    later.listed(now=5.0)
    assert later.plan(kept=(), busy=(), now=19.9).claims == []
    assert 0 in later.plan(kept=(), busy=(), now=20.0).claims


def test_the_last_of_too_many_buckets_are_given_back_and_busy_ones_are_not_claimed() -> None:
    seen = view()
    seen.saw_member("m-b", HELD, now=0.0)
    plan = seen.plan(kept=range(12), busy=range(12), now=1.0)
    assert plan == (8, [], [8, 9, 10, 11])
    assert seen.plan(kept=[0], busy=[0, 1, 2], now=1.0).claims == [3, 4, 5, 6, 7, 8, 9]


def test_a_member_counts_until_its_sign_of_life_is_late_and_one_that_is_gone_does_not() -> None:
    """Regression: a new replica counted one that had died, and left a part of its own share to nobody for 15 s."""
    seen = view()
    seen.saw_member("m-dead", HELD, now=0.0)
    assert seen.live(now=4.9) == ["m-a", "m-dead"]
    assert seen.live(now=5.0) == ["m-a"]
    assert seen.gone(now=5.0) == {"m-dead": HELD}
    seen.saw_member("m-dead", replace(HELD, version="2"), now=6.0)
    assert seen.live(now=20.9) == ["m-a", "m-dead"], "a sign of life counts for the whole duration"
    seen.saw_member("m-dead", LeaseRecord(), now=7.0)
    assert seen.live(now=7.0) == ["m-a"]
    seen.saw_member("m-a", HELD, now=0.0)
    assert seen.gone(now=1_000.0) == {}, "its own Lease is never removed"


def test_replicas_that_count_otherwise_have_another_name() -> None:
    assert identity_of_all(16) == "shared-fnv1a64-16"
    assert identity_of_all(16) != identity_of_all(32)


# --- several replicas in virtual time ---------------------------------------------------------------------------------


@dataclass
class Server:
    """Leases of buckets, stored by version; every watcher receives each change after a delay of its own."""

    records: list[LeaseRecord] = field(default_factory=lambda: [LeaseRecord()] * BUCKETS)
    version: int = 0

    def write(self, bucket: int, record: LeaseRecord) -> LeaseRecord | None:
        """Store it if it names the stored version. Returns: the stored record; None for a conflict."""
        if record.version != self.records[bucket].version:
            return None
        self.version += 1
        self.records[bucket] = replace(record, version=str(self.version), renewed=str(self.version))
        return self.records[bucket]


@dataclass
class Replica:
    name: str
    speed: float
    view: View
    held: dict[int, Candidate] = field(default_factory=dict)
    pending: list[tuple[float, str, int, LeaseRecord]] = field(default_factory=list)
    """What it will receive: when, of what, and the record."""

    draining: dict[int, float] = field(default_factory=dict)
    asleep_until: float = 0.0
    dead: bool = False

    def clock(self, now: float) -> float:
        return now * self.speed

    def acts(self, bucket: int, now: float) -> bool:
        """Whether a write for the bucket would be started now."""
        return bucket in self.held and self.clock(now) < self.held[bucket].until


class World:
    """Replicas that claim, renew, drain and release as `shares` does, a tenth of a second at a time."""

    def __init__(self, data: random.Random) -> None:
        self.random, self.server, self.now = data, Server(), 0.0
        self.replicas: list[Replica] = []
        self.calm = False
        """Whether each write arrives at once, and is answered."""

        self.members: dict[str, LeaseRecord] = {}
        self.late: list[tuple[float, int, LeaseRecord]] = []
        """Writes that arrive after their sender gave them up: when, of which bucket, and the record."""

    def join(self, name: str) -> None:
        speed = self.random.uniform(1.0, 1.45)  # `core.lease` assumes less than 1.5
        replica = Replica(name, speed, View(name, member=name, buckets=BUCKETS, timing=TIMING))
        for bucket, record in enumerate(self.server.records):
            if record.version:
                replica.view.saw_bucket(bucket, record, now=replica.clock(self.now))
        replica.view.listed(now=replica.clock(self.now))
        for other, record in self.members.items():
            replica.view.saw_member(other, record, now=replica.clock(self.now))
        self.replicas.append(replica)

    def tell(self, what: str, bucket: int, record: LeaseRecord) -> None:
        for replica in self.replicas:
            earlier = max((at for at, *_ in replica.pending), default=0.0)
            at = max(earlier, self.now + self.random.choice([0.0, 0.1, 0.3, 1.0]))
            replica.pending.append((at, what, bucket, record))

    def delete(self, bucket: int) -> None:
        """By hand; not while a request to create it is on its way, as `core.lease` assumes."""
        if all(late != bucket or record.version for _, late, record in self.late):
            self.server.records[bucket] = LeaseRecord()
            self.tell("", bucket, LeaseRecord())

    def write(self, replica: Replica, bucket: int, record: LeaseRecord) -> None:
        if not self.calm and self.random.random() < 0.04:
            self.late.append((self.now + self.random.choice([1.0, 6.0, 20.0]), bucket, record))
            replica.held[bucket], _ = lease.step(
                replica.held[bucket], lease.Failed(), now=replica.clock(self.now), chance=0.0
            )
            return
        sent, stored = self.now, self.server.write(bucket, record)
        if stored is not None:
            self.tell("", bucket, stored)
        answered = stored is not None and (self.calm or self.random.random() > 0.05)
        event = lease.Stored(stored, replica.clock(sent)) if stored and answered else lease.Failed()
        replica.held[bucket], _ = lease.step(replica.held[bucket], event, now=replica.clock(self.now), chance=0.0)
        if stored and not answered:
            found = lease.Found(stored)
            replica.held[bucket], _ = lease.step(replica.held[bucket], found, now=replica.clock(self.now), chance=0.0)

    def step(self) -> None:
        self.now = round(self.now + 0.1, 1)
        arrived = [each for each in self.late if each[0] <= self.now]
        self.late = [each for each in self.late if each[0] > self.now]
        for _, bucket, record in arrived:
            if (stored := self.server.write(bucket, record)) is not None:
                self.tell("", bucket, stored)
        for replica in self.replicas:
            if not replica.dead and self.now >= replica.asleep_until:
                self.act(replica)

    def act(self, replica: Replica) -> None:
        now = replica.clock(self.now)
        while replica.pending and replica.pending[0][0] <= self.now:
            _, what, bucket, record = replica.pending.pop(0)
            if what:
                replica.view.saw_member(what, record, now=now)
            else:
                replica.view.saw_bucket(bucket, record, now=now)
        if round(self.now * 10) % 20 == 0:
            member = replace(HELD, version=f"{self.now}", holder=replica.name)
            self.members[replica.name] = member
            self.tell(replica.name, 0, member)
        self.go_on(replica, now)
        kept = replica.held.keys() - replica.draining.keys()
        plan = replica.view.plan(kept=kept, busy=replica.held, now=now)
        for bucket in plan.surplus:
            replica.draining[bucket] = self.now + self.random.choice([0.0, 0.5, 3.0])
        for bucket in plan.claims:
            claim, command = lease.step(replica.view.candidate(bucket), lease.LeaseTick(), now=now, chance=0.0)
            assert isinstance(command, lease.Write)
            replica.held[bucket] = claim
            self.write(replica, bucket, command.record)

    def go_on(self, replica: Replica, now: float) -> None:
        """Renew, release and end terms."""
        for bucket, candidate in list(replica.held.items()):
            if now >= candidate.until:
                del replica.held[bucket]  # a lost term; its handlers are cancelled
                replica.draining.pop(bucket, None)
            elif replica.draining.get(bucket, self.now + 1) <= self.now:
                released, command = lease.step(candidate, lease.Release(), now=now, chance=0.0)
                replica.held[bucket] = released
                if isinstance(command, lease.Write):
                    self.write(replica, bucket, command.record)
                del replica.held[bucket], replica.draining[bucket]
            elif bucket not in replica.draining:
                replica.held[bucket], command = lease.step(candidate, lease.LeaseTick(), now=now, chance=0.0)
                if isinstance(command, lease.Write):
                    self.write(replica, bucket, command.record)

    def owners(self, bucket: int) -> list[str]:
        """Replicas that would write for the bucket now, also those that wake up from a sleep."""
        return [each.name for each in self.replicas if not each.dead and each.acts(bucket, self.now)]


@settings(max_examples=25)
@given(st.integers(0, 10_000))
def test_no_two_replicas_act_on_a_bucket_and_at_rest_all_buckets_are_shared_evenly(seed: int) -> None:
    data = random.Random(seed)
    world, number = World(data), 0
    for _ in range(data.randint(1, 4)):
        number += 1
        world.join(f"r{number:02d}")
    for tick in range(600):
        if tick % 60 == 30:
            awake = [each for each in world.replicas if not each.dead]
            match data.choice(["kill", "sleep", "join", "delete", "nothing"]):
                case "kill" if len(awake) > 1:
                    data.choice(awake).dead = True
                case "sleep":
                    data.choice(awake).asleep_until = world.now + data.choice([3.0, 9.0, 25.0])
                case "join" if len(awake) < 6:
                    number += 1
                    world.join(f"r{number:02d}")
                case "delete":
                    world.delete(data.randrange(BUCKETS))
        world.step()
        for bucket in range(BUCKETS):
            assert len(world.owners(bucket)) <= 1, (seed, world.now, bucket)
    world.calm = True
    for _ in range(500):
        world.step()
    holding = sorted(
        sum(each.acts(bucket, world.now) for bucket in range(BUCKETS)) for each in world.replicas if not each.dead
    )
    assert sum(holding) == BUCKETS, (seed, holding)
    assert holding[-1] - holding[0] <= 1, (seed, holding)
