"""Shares: holds this replica's share of the buckets, while the operator's own Lease is held as shared.

One watch shows the Leases of buckets and replicas; `assignment` decides. For each bucket that is held a task goes
through its life: the claim, the lists that show its objects, the work, the end of its handlers, the release.

Guarantees, as long as the assumptions of `core.lease` hold: a write is started only within the term of the bucket whose
object causes it, and within the shared one; a bucket is given back only when nothing works on it; and the
process exits with `EXPIRED_EXIT_CODE` if that has not ended when another replica may begin.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import random
import re
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Protocol

import msgspec
from msgspec.structs import replace

from ..client.api import Client
from ..client.clock import clock, pause
from ..core.lease import LeaseRecord
from ..core.objects import Item
from ..core.store import Delta, Store
from ..engine.stream import Stream
from ..resource import Key
from ..run.leader import LEASE, REQUEST_ERRORS, own_identity
from ..run.supervisor import cancelled, first_of
from .assignment import MEMBER_PERIODS, Plan, View, identity_of_all
from .terms import MEMBER_LABEL, BucketTerm, Deadlines, SharedLease, shared_timing
from .worker import Activity, acting

if TYPE_CHECKING:
    from ..operator import Operator

# A replica waits so long before its first claim: replicas that start together see each other first.
JOIN_SECONDS: Final = 0.5
# Buckets that are gained together are listed together.
GAIN_SECONDS: Final = 0.2
POLL_SECONDS: Final = 0.05

log = logging.getLogger("bonny.sharding")


class Work(Protocol):
    """The part of the process that follows the buckets."""

    async def show(self, buckets: set[int]) -> None:
        """List the objects of these buckets too; then their handlers may begin."""

    def close(self, bucket: int) -> None:
        """Begin no handler of the bucket."""

    def forget(self, bucket: int) -> None:
        """All work on the bucket has ended: drop the records of its objects."""

    async def begin_single(self) -> None:
        """Begin the work of the holder of bucket 0."""

    async def end_single(self, *, lost: bool) -> None:
        """End that."""


@dataclasses.dataclass(eq=False)
class Held:
    """A bucket from its claim to its end."""

    term: BucketTerm
    given_up: asyncio.Event = dataclasses.field(default_factory=asyncio.Event)
    """Set when it is to be given back."""

    shown: bool = False
    """Whether its handlers may begin."""

    task: asyncio.Task[None] | None = None

    @property
    def leads(self) -> bool:
        """Whether it is held, and stays so."""
        return self.term.remaining() > 0.0 and not self.given_up.is_set()


class Shares:
    """The buckets of this replica: a part that runs for one term of the shared Lease after the other."""

    def __init__(self, operator: Operator, client: Client, *, namespace: str, work: Work, activity: Activity) -> None:
        """`client` must not be fenced."""
        self.buckets: int = activity.buckets
        self.held: dict[int, Held] = {}
        self.gained = self.lost = self.given_back = 0
        """Buckets since the start."""

        self._client, self._work, self._activity = client, work, activity
        self._name, self._namespace, self._timing = operator.name, namespace, operator.lease
        self._watch_options = operator.watch_options
        self._identity = own_identity()
        suffix = re.sub("[^a-z0-9-]+", "-", self._identity.lower())
        self._member = Key(namespace, f"{operator.name}-member-{suffix}")
        self._deadlines = Deadlines(f"{namespace}/{operator.name}, or of a bucket,")
        self.shared = SharedLease(
            client,
            namespace=namespace,
            name=operator.name,
            identity=identity_of_all(self.buckets),
            timing=shared_timing(operator.lease),
            deadlines=self._deadlines,
        )
        self._view = self._new_view()
        self._refused: dict[int, tuple[LeaseRecord | None, float]] = {}
        """Claims that failed: the Lease as the watch had shown it, and the time."""

        self._changed = asyncio.Event()
        self._unshown = asyncio.Event()
        self._joined = asyncio.Event()
        self._stopped = asyncio.Event()

    def __str__(self) -> str:
        return "shares of the work"

    def remaining(self) -> float:
        """The fence of the process: seconds in which a request of the running task may be started and answered."""
        bucket = acting.get()
        if bucket is None:
            return self.shared.remaining()
        held = self.held.get(bucket)
        return 0.0 if held is None else min(held.term.remaining(), self.shared.remaining())

    @property
    def holding(self) -> list[int]:
        """The buckets that this replica may work on."""
        return sorted(bucket for bucket, held in self.held.items() if held.leads)

    # --- running ---

    async def run(self) -> None:
        """Hold a fair share of the buckets until `stop`; buckets that are held then are given back by `end`."""
        self._stopped.clear()
        self._joined.clear()
        self._view = self._new_view()
        kind = dataclasses.replace(LEASE, label_selector=f"{MEMBER_LABEL}={self._name}")
        leases = Stream(self._client, kind, namespace=self._namespace, options=self._watch_options)
        leases.subscribe(self)
        try:
            await first_of(self._stopped.wait(), leases.run(), self._share(leases), self._stay(), self._show())
        finally:
            self.stop()
            await self._leave()

    def stop(self) -> None:
        """Claim no more, and give back all buckets."""
        self._stopped.set()
        for held in self.held.values():
            held.given_up.set()

    async def ended(self) -> None:
        """Return when no bucket is held."""
        while tasks := [held.task for held in self.held.values() if held.task is not None]:
            await asyncio.wait(tasks)

    async def abandon(self) -> None:
        """The process ends: leave the buckets that still have handlers, which no replica gets before they expire."""
        await cancelled([held.task for held in self.held.values() if held.task is not None])

    async def _share(self, leases: Stream) -> None:
        while not leases.synced:  # noqa: ASYNC110  it may be blocked by a missing permission for as long as that lasts
            await asyncio.sleep(POLL_SECONDS)
        self._view.listed(now=clock())
        await self._joined.wait()
        await asyncio.sleep(JOIN_SECONDS)
        while True:
            self._changed.clear()
            kept = {bucket for bucket, held in self.held.items() if not held.given_up.is_set()}
            recent = clock() - self._timing.retry_period / 2
            waiting = {bucket for bucket, (_, at) in self._refused.items() if at > recent and self._unchanged(bucket)}
            plan = self._view.plan(kept=kept, busy=self.held.keys() | waiting, now=clock())
            self._follow(plan, leases.store)
            await pause(self._timing.retry_period / 4, wake=self._changed)

    def _unchanged(self, bucket: int) -> bool:
        """Whether the watch has shown nothing of the Lease since its claim failed."""
        return bucket in self._refused and self._refused[bucket][0] == self._view.leases[bucket].record

    def _follow(self, plan: Plan, leases: Store) -> None:
        for bucket in plan.surplus:
            self.held[bucket].given_up.set()
        for bucket in plan.claims:
            name = f"{self._name}-bucket-{bucket}"
            item = leases.get(Key(self._namespace, name))
            term = BucketTerm(
                self._client,
                namespace=self._namespace,
                name=name,
                candidate=self._view.candidate(bucket),
                live={} if item is None else {**item.decode(), "apiVersion": LEASE.api_version, "kind": LEASE.kind},
                reads=self._unchanged(bucket),
                deadlines=self._deadlines,
                label=self._name,
            )
            held = self.held[bucket] = Held(term)
            held.task = asyncio.create_task(self._live(bucket, held), name=f"bucket {bucket}")

    # --- one bucket ---

    async def _live(self, bucket: int, held: Held) -> None:
        """The life of a bucket, from its claim on."""
        term = held.term
        campaign = asyncio.create_task(term.run(), name=f"lease of bucket {bucket}")
        try:
            await first_of(term.acquired(), term.refused.wait(), asyncio.sleep(self._timing.retry_period))
            if term.remaining() > 0.0:
                await self._work_on(bucket, held)
                await term.release()
            else:
                self._refused[bucket] = self._view.leases[bucket].record, clock()
                log.debug("bucket not gained", extra={"bucket": bucket, "record": str(term.candidate.record)})
        finally:
            await cancelled([campaign])
            if self._activity.rests(bucket):
                term.stood_down()
            del self.held[bucket]
            self._changed.set()
        if not campaign.cancelled():
            campaign.result()  # a defect is not lost

    async def _work_on(self, bucket: int, held: Held) -> None:
        self.gained += 1
        log.info("bucket gained", extra={"bucket": bucket, "holding": len(self.holding)})
        self._unshown.set()
        if bucket == 0:
            await self._work.begin_single()
        await first_of(held.term.lost.wait(), held.given_up.wait())
        held.given_up.set()
        self._work.close(bucket)
        if bucket == 0:
            await self._work.end_single(lost=held.term.lost.is_set())
        while not self._activity.rests(bucket):
            if held.term.lost.is_set():
                self._activity.cancel(bucket)
            await asyncio.sleep(POLL_SECONDS)  # threads send no notification
        self._work.forget(bucket)
        if held.term.lost.is_set():
            self.lost += 1
            log.warning("bucket lost", extra={"bucket": bucket})
        else:
            self.given_back += 1
            log.info("bucket given back", extra={"bucket": bucket})

    async def _show(self) -> None:
        """Show the objects of the buckets that were gained."""
        while True:
            await self._unshown.wait()
            await asyncio.sleep(GAIN_SECONDS)
            self._unshown.clear()
            gained = [(bucket, held) for bucket, held in self.held.items() if held.leads and not held.shown]
            await self._work.show({bucket for bucket, _ in gained})
            for _, held in gained:
                held.shown = True

    # --- the other Leases ---

    def _new_view(self) -> View:
        return View(self._identity, member=self._member.name, buckets=self.buckets, timing=self._timing)

    def seen(self, _: Stream, delta: Delta) -> None:
        """A Lease of a bucket or of a replica changed."""
        record, now = _record(delta.new), clock()
        rest = delta.key.name.removeprefix(f"{self._name}-")
        if (match := re.fullmatch(r"bucket-(\d+)", rest)) and int(match[1]) < self.buckets:
            self._view.saw_bucket(int(match[1]), record, now=now)
        elif rest.startswith("member-"):
            self._view.saw_member(delta.key.name, record, now=now)
        self._changed.set()

    def advanced(self, _: Stream) -> None:
        """Nothing."""

    def restored(self, _: Stream) -> None:
        """Nothing: `core.lease` decides by the versions of writes."""

    # --- the own Lease as a member ---

    async def _stay(self) -> None:
        """Show the other replicas that this one is there: they count it, nothing else follows from it."""
        every, timing = MEMBER_PERIODS * self._timing.retry_period, self._timing
        while True:
            now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
            metadata = {"namespace": self._namespace, "name": self._member.name, "labels": {MEMBER_LABEL: self._name}}
            spec = {"holderIdentity": self._identity, "renewTime": now, "leaseDurationSeconds": timing.lease_duration}
            body = {"apiVersion": LEASE.api_version, "kind": LEASE.kind, "metadata": metadata, "spec": spec}
            try:
                async with asyncio.timeout(timing.request_seconds):
                    await self._client.apply(LEASE, body)
                self._joined.set()
                await self._remove_others()
            except REQUEST_ERRORS as error:
                log.warning("the lease of this replica cannot be renewed", extra={"error": str(error) or "no answer"})
            await asyncio.sleep(every * (1 - 0.2 * random.random()))

    async def _remove_others(self) -> None:
        """As the holder of bucket 0: remove the Leases of replicas that ended without removing theirs."""
        if 0 not in self.holding:
            return
        for name, record in self._view.gone(now=clock()).items():
            with suppress(*REQUEST_ERRORS):
                await self._client.delete(LEASE, Key(self._namespace, name), version=record.version)

    async def _leave(self) -> None:
        with suppress(*REQUEST_ERRORS):
            async with asyncio.timeout(self._timing.request_seconds):
                await self._client.delete(LEASE, self._member)


class _Lease(msgspec.Struct):
    spec: LeaseRecord = LeaseRecord()


def _record(item: Item | None) -> LeaseRecord:
    """The content of a Lease; empty for one that is not there."""
    if item is None:
        return LeaseRecord()
    return replace(msgspec.json.decode(item.raw, type=_Lease).spec, version=item.meta.resource_version)
