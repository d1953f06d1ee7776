"""Terms: the leases of a replica that shares: the operator's own, and one for each bucket that it holds.

The operator's own Lease is held by all replicas together, under one name, which contains how they share. So a leader of
an older version, and replicas that count the buckets otherwise, wait as a standby does. It is never released: replicas
cannot know which of them is the last, so it ends by itself.
"""

from __future__ import annotations

import asyncio
import logging
import random
from functools import partial
from types import SimpleNamespace
from typing import Any, Final

from msgspec.structs import replace

from ..client.clock import clock
from ..core import lease
from ..core.lease import Candidate, LeaseTiming
from ..resource import Resource
from ..run.leader import Leadership, _Watchdog

MEMBER_LABEL: Final = "bonny.dev/shares"
"""On the Leases of buckets and replicas; its value is the name of the operator."""

PHASE: Final = random.random()
"""When this process renews its buckets, as a part of the retry period: replicas need not write at the same moments."""

log = logging.getLogger("bonny.sharding")


def shared_timing(own: LeaseTiming) -> LeaseTiming:
    """Twice as long as the terms of buckets, with a third of the writes: every replica renews it."""
    retry = min(3 * own.retry_period, own.renew_deadline)
    return LeaseTiming(lease_duration=2 * own.lease_duration, renew_deadline=2 * own.renew_deadline, retry_period=retry)


class Deadlines:
    """One watchdog for many leases: it looks at the earliest deadline."""

    def __init__(self, name: str) -> None:
        self._watchdog = _Watchdog(name)
        self._at: dict[object, float] = {}

    def of(self, term: object) -> SimpleNamespace:
        """The watchdog of one term: `arm` and `disarm`, as of `_Watchdog`."""
        return SimpleNamespace(arm=partial(self._set, term), disarm=partial(self._set, term, None))

    def _set(self, term: object, at: float | None) -> None:
        if at is None:
            self._at.pop(term, None)
        else:
            self._at[term] = at
        if self._at:
            self._watchdog.arm(min(self._at.values()))
        else:
            self._watchdog.disarm()


class SharedLease(Leadership):
    """The operator's own Lease, held together with all other replicas."""

    def __init__(self, *arguments: Any, deadlines: Deadlines, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._watchdog: Any = deadlines.of(self)
        self._other = ""

    async def release(self) -> None:
        """Nothing: other replicas may hold it. `leave` ends the own part."""

    async def leave(self) -> None:
        """Hold it no longer. All work must have stopped."""
        await super().release()

    def _step(self, event: lease.LeaseInput) -> lease.LeaseCommand:
        if isinstance(event, lease.Release):
            return lease.Done()
        if isinstance(event, lease.LeaseTick):
            # Others have renewed it since: a write that is based on the own last one would fail.
            self._candidate = replace(self._candidate, known=False)
        if isinstance(event, lease.Found):
            self._note(event.record.holder)
        return super()._step(event)

    def _note(self, holder: str) -> None:
        """Log who holds it, if others do, each once."""
        other = holder if holder != self._candidate.identity else ""
        if other and other != self._other:
            extra = {"lease": self._name, "holder": other, "expected": self._candidate.identity}
            log.warning("not sharing: the lease is held in another way", extra=extra)
        self._other = other


class BucketTerm(Leadership):
    """The Lease of one bucket, from the moment when this replica claims it until it gives the bucket back."""

    def __init__(
        self,
        *arguments: Any,
        deadlines: Deadlines,
        candidate: Candidate,
        live: Resource,
        reads: bool,
        label: str,
        **options: Any,
    ) -> None:
        """`live`: the Lease as the watch showed it. It is read first if `reads`, or if the candidate has another."""
        super().__init__(*arguments, identity=candidate.identity, timing=candidate.timing, **options)
        self._watchdog: Any = deadlines.of(self)
        self._live = live
        version = live["metadata"]["resourceVersion"] if live else ""
        fresh = candidate.record is not None and candidate.record.version == version
        self._candidate = replace(candidate, known=fresh and not reads)
        self._label = label
        self.refused = asyncio.Event()
        """Set when a write failed: if that was the claim, another replica was faster."""

    @property
    def candidate(self) -> Candidate:
        """The Lease as it was last read or written."""
        return self._candidate

    def _step(self, event: lease.LeaseInput) -> lease.LeaseCommand:
        if isinstance(event, lease.Failed):
            self.refused.set()
        command = super()._step(event)
        if isinstance(event, lease.Stored) and isinstance(command, lease.LeaseWait) and self._candidate.known:
            # The process wakes up once for all of its buckets (docs/decisions/0120).
            period = self._candidate.timing.retry_period
            renews = event.sent + period * (1.0 - (event.sent / period - PHASE) % 1.0)
            self._candidate = replace(self._candidate, renews=renews)
            return lease.LeaseWait(renews - clock())
        return command

    def _body(self, command: lease.Write) -> Resource:
        body = super()._body(command)
        metadata = body["metadata"]
        labels = {**(metadata.get("labels") or {}), MEMBER_LABEL: self._label}
        return {**body, "metadata": {**metadata, "labels": labels}}
