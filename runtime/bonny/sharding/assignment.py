"""Assignment: which buckets a replica claims and gives back; the rules, without I/O.

An object is in the bucket that the first bits of FNV-1a 64 of its UID name, for all its life. Each bucket has a Lease,
and whether that is free, only `core.lease` decides: a bucket is claimed by the write that a candidate would do now. The
rest is balance: replicas count each other by a Lease each, and each keeps its share of the buckets, never more.

Rules worth knowing:
- Views of two replicas may differ. That costs balance, and never lets two act: a claim names the version of the Lease.
- The replicas in the order of their names get `divmod(buckets, replicas)`; the first ones get one more.
- Of too many buckets, the last are given back, so bucket 0 moves as rarely as possible.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, NamedTuple

from msgspec.structs import replace

from ..core import lease
from ..core.lease import Candidate, LeaseRecord, LeaseTiming

HASH: Final = "fnv1a64"
_OFFSET, _PRIME, _ALL = 0xCBF29CE484222325, 0x100000001B3, 0xFFFFFFFFFFFFFFFF
BITS: Final = 64
# A replica shows that it is there after so many retry periods, or earlier.
MEMBER_PERIODS: Final = 2


def fnv1a64(text: str) -> int:
    """FNV-1a of the UTF-8 bytes, as the API server's `shardRange` computes it."""
    value = _OFFSET
    for byte in text.encode():
        value = (value ^ byte) * _PRIME & _ALL
    return value


def bucket_of(uid: str, buckets: int) -> int:
    """The bucket of an object; `buckets` is a power of two."""
    return fnv1a64(uid) >> BITS + 1 - buckets.bit_length()


def identity_of_all(buckets: int) -> str:
    """The holder of the operator's own Lease while replicas share. Another count is another holder."""
    return f"shared-{HASH}-{buckets}"


class Plan(NamedTuple):
    """The buckets to claim and to give back."""

    share: int
    claims: list[int]
    surplus: list[int]


class View:
    """The Leases as this replica received them. Times are on the clock of `now`."""

    def __init__(self, identity: str, *, member: str, buckets: int, timing: LeaseTiming) -> None:
        """`identity` holds buckets; `member` is the name of the Lease by which others count this replica."""
        self._member = member
        self._timing = timing
        self.leases = [Candidate(identity, timing) for _ in range(buckets)]
        self.members: dict[str, Candidate] = {}

    def saw_bucket(self, bucket: int, record: LeaseRecord, *, now: float) -> None:
        """The Lease of a bucket was received; an empty record: it is not there."""
        self.leases[bucket] = self._seen(self.leases[bucket], record, now)

    def listed(self, *, now: float) -> None:
        """The Leases that were not received are not there.

        Where there are others, they were deleted by hand, and their holders may not know yet.
        """
        others = any(each.record is not None for each in self.leases)
        missing = LeaseRecord(duration=self._timing.lease_duration) if others else LeaseRecord()
        for bucket, candidate in enumerate(self.leases):
            if candidate.record is None:
                self.leases[bucket] = replace(candidate, record=missing, since=now, known=True)

    def saw_member(self, name: str, record: LeaseRecord, *, now: float) -> None:
        """The Lease of a member was received; an empty record: it was deleted."""
        if not record.version:
            self.members.pop(name, None)
        elif name in self.members:
            self.members[name] = self._seen(self.members[name], record, now)
        else:
            # It may have ended long ago: it counts until its next sign of life is late.
            late = now + MEMBER_PERIODS * self._timing.retry_period * 1.25
            self.members[name] = Candidate(name, self._timing, record, since=min(late - record.duration, now))

    def live(self, *, now: float) -> list[str]:
        """The members in their order, this one among them."""
        others = {name for name, each in self.members.items() if now < _end(each)}
        return sorted(others | {self._member})

    def gone(self, *, now: float) -> dict[str, LeaseRecord]:
        """The Leases of members that ended, as they were received."""
        members = {name: each.record for name, each in self.members.items() if now >= _end(each) and each.record}
        return {name: record for name, record in members.items() if name != self._member}

    def plan(self, *, kept: Collection[int], busy: Collection[int], now: float) -> Plan:
        """`kept`: buckets that this replica holds and keeps; `busy`: these, and the buckets that it is giving back."""
        live = self.live(now=now)
        rank, buckets = live.index(self._member), len(self.leases)
        each, more = divmod(buckets, len(live))
        share = each + (rank < more)
        # Each replica begins elsewhere, so that two rarely claim the same bucket.
        first = rank * buckets // len(live)
        order = [(first + number) % buckets for number in range(buckets)]
        free = [bucket for bucket in order if bucket not in busy and self._is_free(bucket, now)]
        return Plan(share, free[: max(share - len(kept), 0)], sorted(kept)[share:])

    def candidate(self, bucket: int) -> Candidate:
        """The candidate to begin with, with the Lease that was received."""
        return replace(self.leases[bucket], known=True)

    def _is_free(self, bucket: int, now: float) -> bool:
        _, command = lease.step(self.candidate(bucket), lease.LeaseTick(), now=now, chance=0.0)
        return isinstance(command, lease.Write)

    def _seen(self, candidate: Candidate, record: LeaseRecord, now: float) -> Candidate:
        return lease.step(candidate, lease.Found(record), now=now, chance=0.0)[0]


def _end(member: Candidate) -> float:
    """When a member's Lease ends, if it is not renewed."""
    record = member.record
    return member.since + (record.duration if record is not None and record.holder else 0)
