"""Process of a replica that shares the work with others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Any, cast

from ..client.api import Client
from ..controller import Restart
from ..core.objects import Item
from ..engine.router import SETTLE_SECONDS
from ..engine.stream import Stream
from ..events import EventRecorder
from ..resource import Key
from ..run.leader import Leadership
from ..run.process import Process
from ..run.supervisor import CANCEL_SECONDS, Supervised, Term, cancelled
from . import Sharding
from .assignment import bucket_of
from .shares import POLL_SECONDS, Shares
from .streams import BucketStream, BucketStreams, all_listed, own_uid, owner_uid
from .worker import Activity, BucketWorker, acting


class SharingRecorder(EventRecorder):
    """Sends events as long as this replica shares: an event is of any bucket, and changes no object."""

    async def run(self) -> None:
        acting.set(None)
        await super().run()

    async def drain(self, *, seconds: float) -> None:
        acting.set(None)
        await super().drain(seconds=seconds)


class SharingProcess(Process):
    """A run of an operator that acts on its buckets. `Process` begins and ends terms of the shared Lease."""

    shares: Shares

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        buckets = cast("Sharding", self.operator.sharding).buckets
        self._activity = Activity(buckets)
        self._children: set[int] = set()
        """Buckets whose children are in the stores; `Activity.open` has the buckets whose handled objects are."""

        self._single_term = Term()
        self.workers: list[BucketWorker] = []  # type: ignore[assignment]
        self._left: dict[tuple[BucketWorker, int], set[Key]] = {}
        """Objects of buckets that are being given back."""

        self._stopping = False
        self._recorder = SharingRecorder
        self._worker = partial(BucketWorker, activity=self._activity)

        def stream(uid: Callable[[Item], str], shown: set[int]) -> Callable[..., BucketStream]:
            return partial(BucketStream, bucket=lambda item: bucket_of(uid(item), buckets), shown=shown)

        self.streams: BucketStreams = BucketStreams(self.operator, self._namespaces, self._restored)
        self.streams.make_primary = stream(own_uid, self._activity.open)
        self.streams.make_owned = stream(owner_uid, self._children)

    def _candidate(self, voter: Client) -> tuple[Leadership, Callable[[], float]]:
        self.shares = Shares(self.operator, voter, namespace=self.own_namespace, work=self, activity=self._activity)
        return self.shares.shared, self.shares.remaining

    # --- terms of the shared Lease ---

    def _begin_term(self) -> None:
        self.term.begin({self.shares: Restart.PERMANENT, **{worker: worker.restart for worker in self.workers}})

    async def _end_term(self, *, grace: float) -> None:
        await super()._end_term(grace=grace)
        # Without a limit when the term was lost: the watchdog ends the process if it has to.
        seconds = CANCEL_SECONDS + self.operator.lease.request_seconds if self._stopping else None
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.shares.ended()
        await self.shares.abandon()

    async def _finish(self) -> None:
        self._stopping = True
        await super()._finish()
        await self.shares.shared.leave()

    # --- buckets ---

    async def show(self, buckets: set[int]) -> None:
        """As `Work.show`: children first, so that no object is reconciled as if it had none."""
        self._children |= buckets
        await self._listed(stream for worker in self.workers for stream in worker.router.owned_streams)
        self._activity.open |= buckets & self._children & set(self.shares.holding)
        await self._listed(stream for worker in self.workers for stream in worker.router.primary)

    async def _listed(self, streams: Iterable[Stream]) -> None:
        before = {stream: stream.lists for stream in cast("Iterable[BucketStream]", streams)}
        for stream in before:
            await cancelled([self._lasting[stream].task])
            stream.prepare_relist()
            self._lasting[stream] = Supervised(stream)
        await all_listed(before, seconds=SETTLE_SECONDS)

    def close(self, bucket: int) -> None:
        """As `Work.close`."""
        self._activity.open.discard(bucket)
        routers = [worker.router for worker in self.workers]
        dropped = _dropped((stream for router in routers for stream in router.primary), bucket)
        for worker in self.workers:
            worker.close(bucket)
            self._left[worker, bucket] = {key for stream in worker.router.primary for key in dropped[stream]}

    def forget(self, bucket: int) -> None:
        """As `Work.forget`."""
        for worker in self.workers:
            worker.forget(self._left.pop((worker, bucket)))
        self._children.discard(bucket)
        _dropped((stream for worker in self.workers for stream in worker.router.owned_streams), bucket)

    async def begin_single(self) -> None:
        """As `Work.begin_single`."""
        await self._list_again()
        self._single_term.begin(self._singles())
        self.term.parts.update(self._single_term.parts)  # for the probes

    async def end_single(self, *, lost: bool) -> None:
        """As `Work.end_single`."""
        self.tasks.leading = False
        for part in self._single_term.parts:
            self.term.parts.pop(part, None)
        await self._single_term.end(self.tasks.ending, grace=0.0 if lost else self.config.grace)
        if self.operator.servers or self.operator.tasks or self.operator.parts:
            self._activity.abandoned(0)
        while self._single_term.abandoned:  # noqa: ASYNC110  as threads, it sends no notification
            await asyncio.sleep(POLL_SECONDS)
        if not self._stopping:
            await self._renew_servers()


def _dropped(streams: Iterable[Stream], bucket: int) -> dict[Stream, set[Key]]:
    """The keys of the objects that the streams no longer show."""
    return {stream: cast("BucketStream", stream).store.drop(bucket) for stream in dict.fromkeys(streams)}
