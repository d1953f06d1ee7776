"""Process of a replica that shares the work with others."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final, TypeAlias, cast

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
from .selection import by_label, by_range
from .shares import POLL_SECONDS, Shares
from .streams import BucketStream, BucketStreams, all_listed, own_uid, owner_uid
from .worker import Activity, BucketWorker, acting

log = logging.getLogger("bonny.sharding")

# After a bucket was given back, others may follow; then the open watches end together.
RESELECT_SECONDS: Final = 2.0

Selection: TypeAlias = Callable[..., Mapping[str, str]]


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

        self._reselecting: asyncio.TimerHandle | None = None
        self._stopping = False
        self._recorder = SharingRecorder
        self._worker = partial(BucketWorker, activity=self._activity)

        def stream(uid: Callable[[Item], str], shown: set[int], select: Selection) -> Callable[..., BucketStream]:
            bucket, selected = (lambda item: bucket_of(uid(item), buckets)), partial(select, of=buckets)
            return partial(BucketStream, bucket=bucket, shown=shown, select=selected)

        self.streams: BucketStreams = BucketStreams(self.operator, self._namespaces, self._restored)
        self.streams.make_primary = stream(own_uid, self._activity.open, by_range)
        self.streams.make_owned = stream(owner_uid, self._children, by_label)

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
        for stream in self.owned:
            await stream.label_children(buckets)
        await self._listed(self.owned)
        self._activity.open |= buckets & self._children & set(self.shares.holding)
        await self._listed(self.primary)

    @property
    def owned(self) -> list[BucketStream]:
        """The streams of children, each once."""
        return _each_once(worker.router.owned_streams for worker in self.workers)

    @property
    def primary(self) -> list[BucketStream]:
        """The streams of handled objects, each once."""
        return _each_once(worker.router.primary for worker in self.workers)

    async def _listed(self, streams: Iterable[BucketStream]) -> None:
        before = {}
        for stream in streams:
            await cancelled([self._lasting[stream].task])
            before[stream] = stream.lists
            stream.prepare_relist()
            self._lasting[stream] = Supervised(stream)
        await all_listed(before, seconds=SETTLE_SECONDS)

    def close(self, bucket: int) -> None:
        """As `Work.close`."""
        self._activity.open.discard(bucket)
        dropped = {cast("Stream", stream): stream.store.drop(bucket) for stream in self.primary}
        for worker in self.workers:
            worker.close(bucket)
            self._left[worker, bucket] = {key for stream in worker.router.primary for key in dropped[stream]}

    def forget(self, bucket: int) -> None:
        """As `Work.forget`."""
        for worker in self.workers:
            worker.forget(self._left.pop((worker, bucket)))
        self._children.discard(bucket)
        for stream in self.owned:
            stream.store.drop(bucket)
        if self._reselecting is None:
            self._reselecting = asyncio.get_running_loop().call_later(RESELECT_SECONDS, self._reselect)

    def _reselect(self) -> None:
        self._reselecting = None
        log.info("selection of watches changed", extra={"buckets": len(self._activity.open)})
        for stream in (*self.owned, *self.primary):
            stream.reselect()

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


def _each_once(streams: Iterable[Iterable[Stream]]) -> list[BucketStream]:
    return list(dict.fromkeys(cast("BucketStream", stream) for some in streams for stream in some))
