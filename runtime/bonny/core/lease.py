"""Lease: which of several candidates leads, and until when: the rules of one coordination.k8s.io/v1 Lease.

`step` makes every decision: a candidate and something that happened in; a candidate and one command out. The shell that
talks to the server is `bonny.run.leader`.

    Read --Found, held--> LeaseWait --LeaseTick--> Read
    Read --Found, free--> Write --Stored--> leads until `until`; LeaseWait --LeaseTick--> Write
    Read or Write --Failed--> LeaseWait --LeaseTick--> Read

Rules worth knowing:
- A term lasts `renew_deadline` from the moment when a write that was stored was *sent*. Only the answer to a write
  extends it. A Lease that is read and found to be ours, as after a lost answer, is what the next write is based on.
- A standby counts from the moment when it *received* a record that it had not seen before, for the duration that the
  record names. Times in a record are never compared with the local clock.
- Every write names the resourceVersion that it was decided on: of several candidates that find the Lease free, one gets
  it.
- A write that was not answered with success may have been stored: what counts is what is read next.
- A Lease that was there and is gone, or whose holder was removed by hand, is free after a whole lease duration: its
  holder may not know yet. The holder itself makes it again at once. A holder that finds another's name stops at once.

Assumptions, without which two may lead at a time:
- Clocks may differ by any amount; the fastest runs less than lease_duration / renew_deadline (by default 1.5) times as
  fast as the slowest. A clock goes on while its process, or the machine, stands still.
- The API server stores a write only if the version that it names is the newest. An etcd that is restored from a backup
  forgets who leads.
- Each process has an identity of its own.
- The Lease is not removed while a candidate has not seen its holder yet, or while a request to create it is on its
  way; leaseDurationSeconds of a held Lease is not shortened, and no other program writes what a release writes: all of
  these mean that the leader is dead.

Does not: call back a request that was sent before `until` and arrives late. It carries a version or a UID, or is an
apply that the next leader puts right.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

import msgspec
from msgspec.structs import replace

from ..errors import OptionError

NEVER: Final = float("-inf")
# As client-go; the API server requires more than 0. A holder that was removed by hand leaves a longer duration behind.
RELEASED_SECONDS: Final = 1
# Waits are shortened by up to this fraction, so that replicas do not ask together for ever.
JITTER: Final = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseTiming:
    """How long a lease lasts. Times are seconds; the defaults equal client-go's and controller-runtime's."""

    lease_duration: int = 15
    """No other replica leads until this time has passed without a renewal. Default 15; the API takes whole seconds."""

    renew_deadline: float = 10.0
    """A leader that could not renew for so long stops. Default 10 s: 5 s before another replica may lead."""

    retry_period: float = 2.0
    """A leader renews this often; the others look twice as often. Default 2 s."""

    def __post_init__(self) -> None:
        whole = isinstance(self.lease_duration, int)
        if not (whole and 0 < 2 * self.retry_period <= self.renew_deadline < self.lease_duration):
            raise OptionError(
                f"LeaseTiming is {self.lease_duration} / {self.renew_deadline} / {self.retry_period} s: use a whole "
                "lease_duration that is longer than renew_deadline, and that at least two times retry_period"
            )

    @property
    def request_seconds(self) -> float:
        """The longest that a request may take: one that hangs leaves time for another."""
        return self.renew_deadline / 2


# Encoded with the names of the API, so that a spec is decoded and encoded as it is.
class LeaseRecord(
    msgspec.Struct,
    frozen=True,
    rename={
        "holder": "holderIdentity",
        "duration": "leaseDurationSeconds",
        "transitions": "leaseTransitions",
        "renewed": "renewTime",
    },
):
    """The content of a Lease. Any difference between two records is a sign of life."""

    version: str = ""
    """Its resourceVersion; empty: there is no Lease."""

    holder: str = ""
    duration: int = 0
    transitions: int = 0
    renewed: str = ""


class Candidate(msgspec.Struct, frozen=True):
    """The state between two steps. Times are on the clock of `now`."""

    identity: str
    timing: LeaseTiming
    record: LeaseRecord | None = None
    """The last one that was read or written."""

    since: float = NEVER
    """When it came."""

    known: bool = False
    """Whether to decide by `record`; else it is time to read."""

    renews: float = NEVER
    """When the next renewal is due."""

    until: float = NEVER
    """No write is started from then on, and each is answered by then or given up."""

    expires: float = NEVER
    """From then on another replica may lead: all work has stopped."""

    releasing: bool = False


# --- what can happen ---


class LeaseTick(msgspec.Struct, frozen=True):
    """The wait is over, or this is the first step."""


class Found(msgspec.Struct, frozen=True):
    """The Lease was read, or is not there: `LeaseRecord()`."""

    record: LeaseRecord


class Stored(msgspec.Struct, frozen=True):
    """A write was answered with success. `sent` is when it was begun."""

    record: LeaseRecord
    sent: float


class Failed(msgspec.Struct, frozen=True):
    """A read or write was refused, came too late, or was not answered in time."""


class Release(msgspec.Struct, frozen=True):
    """All work has stopped, and this candidate leaves."""


LeaseInput: TypeAlias = LeaseTick | Found | Stored | Failed | Release

# --- what to do ---


class Read(msgspec.Struct, frozen=True):
    """Read the Lease within so many seconds; answer with `Found` or `Failed`."""

    seconds: float


class Write(msgspec.Struct, frozen=True):
    """Write `record` within so many seconds; answer with `Stored` or `Failed`.

    Only if the Lease still has the version of `record`; where that is empty, create it.
    """

    record: LeaseRecord
    acquires: bool
    """Whether it gets another holder, so that acquireTime is now."""

    seconds: float


class LeaseWait(msgspec.Struct, frozen=True):
    """Do nothing for so long, then answer with `LeaseTick`."""

    seconds: float


class Done(msgspec.Struct, frozen=True):
    """The Lease is released, or not ours: nothing is left to do."""


LeaseCommand: TypeAlias = Read | Write | LeaseWait | Done


def step(candidate: Candidate, event: LeaseInput, *, now: float, chance: float) -> tuple[Candidate, LeaseCommand]:
    """Decide what follows from `event`.

    `now` is in seconds, on a clock that goes on while the machine sleeps; `chance` is a uniform draw from [0, 1).
    """
    look = candidate.timing.retry_period / 2 * (1 - JITTER * chance)
    match event:
        case Found(record):
            candidate = _seen(candidate, record if record.version else _gone(candidate), now)
            if record.version and record.holder != candidate.identity:
                candidate = _stopped(candidate, now)
        case Stored(record, sent) if record.holder == candidate.identity and not candidate.releasing:
            candidate = _renewed(_seen(candidate, record, now), sent, chance)
        case Stored(record) if record.holder == "" and candidate.releasing:
            candidate = _seen(candidate, record, now)
        case Stored() | Failed():
            # A record that was stored in another form than it was sent is not a success either.
            return replace(candidate, known=False), LeaseWait(_within_term(candidate, look, now))
        case Release():
            candidate = replace(candidate, until=NEVER, releasing=True)
    return _decided(candidate, look, now)


def _decided(candidate: Candidate, look: float, now: float) -> tuple[Candidate, LeaseCommand]:
    record, timing = candidate.record, candidate.timing
    seconds = _within_term(candidate, timing.request_seconds, now)
    if record is None or not candidate.known:
        return candidate, Read(seconds)
    ours, leads = record.holder == candidate.identity, now < candidate.until
    if candidate.releasing:
        released = replace(record, holder="", duration=RELEASED_SECONDS)
        return candidate, Write(released, acquires=False, seconds=seconds) if ours else Done()
    if ours and leads and now < candidate.renews:
        return candidate, LeaseWait(_within_term(candidate, candidate.renews - now, now))
    vacant = not record.holder and record.duration <= RELEASED_SECONDS
    held = record.duration or timing.lease_duration
    wait = 0.0 if ours or leads or vacant else candidate.since + held - now
    if wait > 0.0:
        # Where it ends within a look, what is known then is good enough for a write: it names the version.
        return replace(candidate, known=wait <= look), LeaseWait(min(wait, look))
    transitions = record.transitions if ours or not record.version else record.transitions + 1
    wanted = replace(record, holder=candidate.identity, duration=timing.lease_duration, transitions=transitions)
    return candidate, Write(wanted, acquires=not ours, seconds=seconds)


def _seen(candidate: Candidate, record: LeaseRecord, now: float) -> Candidate:
    since = candidate.since if record == candidate.record else now
    return replace(candidate, record=record, since=since, known=True)


def _gone(candidate: Candidate) -> LeaseRecord:
    """A Lease that is not there: free, unless it was there before, when its holder may not know yet."""
    before = candidate.record
    if before is None or not before.version:
        return before or LeaseRecord()
    return LeaseRecord(duration=max(candidate.timing.lease_duration, before.duration))


def _renewed(candidate: Candidate, sent: float, chance: float) -> Candidate:
    timing = candidate.timing
    return replace(
        candidate,
        renews=sent + timing.retry_period * (1 - JITTER * chance),
        until=sent + timing.renew_deadline,
        expires=sent + timing.lease_duration,
    )


def _stopped(candidate: Candidate, now: float) -> Candidate:
    """Another holder is named: no more writes, and work has as long to stop as at any other end."""
    timing = candidate.timing
    expires = min(candidate.expires, now + timing.lease_duration - timing.renew_deadline)
    return replace(candidate, until=NEVER, expires=expires)


def _within_term(candidate: Candidate, seconds: float, now: float) -> float:
    """`seconds`, but no longer than the term lasts, while it does."""
    return min(seconds, candidate.until - now) if now < candidate.until else seconds
