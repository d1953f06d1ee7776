"""Worker that reconciles the objects of this replica's buckets, and counts the running handlers of each bucket."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Collection
from contextvars import ContextVar
from functools import partial
from typing import Any, Final, cast

from ..calling import HANDLER_THREAD, stopping
from ..core.objects import Item
from ..core.queue import Reason, Work
from ..core.records import Action
from ..engine.context import ReconcileContext
from ..engine.reconcile import Reconcile
from ..engine.worker import Worker
from ..errors import Retry
from ..resource import Key
from .assignment import bucket_of
from .selection import BUCKET, VALUES

acting: Final[ContextVar[int | None]] = ContextVar("acting", default=0)
"""The bucket whose term permits the writes of this task, and of tasks and threads that it starts. Code outside of
reconciles belongs to bucket 0; None: any replica that shares may write, as events."""


class Activity:
    """The buckets that handlers work on."""

    def __init__(self, buckets: int) -> None:
        self.buckets = buckets
        self.open: set[int] = set()
        """Buckets of which handlers may begin."""

        self._slots: dict[asyncio.Task[Any], set[int]] = {}
        self._cancelled: set[asyncio.Task[Any]] = set()
        self._threads: dict[int, set[threading.Thread]] = {}
        """Threads that may work on a bucket after their task was cancelled."""

    def is_cancelled(self, slot: asyncio.Task[Any]) -> bool:
        """Whether `cancel` cancelled it."""
        return slot in self._cancelled

    def began(self, slot: asyncio.Task[Any], bucket: int) -> None:
        """A handler of the bucket begins."""
        self._slots.setdefault(slot, set()).add(bucket)

    def ended(self, slot: asyncio.Task[Any]) -> None:
        """All that the slot did for its key has ended, but for a thread if it was cancelled."""
        buckets = self._slots.pop(slot, set())
        self._cancelled.discard(slot)
        if slot.cancelling():
            for bucket in buckets:
                self.abandoned(bucket)

    def abandoned(self, bucket: int) -> None:
        """Any running thread of a handler may work on the bucket."""
        running = {thread for thread in threading.enumerate() if thread.name == HANDLER_THREAD}
        self._threads[bucket] = self._threads.get(bucket, set()) | running

    def cancel(self, bucket: int) -> None:
        """Cancel the handlers of the bucket."""
        for slot, buckets in self._slots.items():
            if bucket in buckets and slot not in self._cancelled:
                self._cancelled.add(slot)
                slot.cancel()

    def rests(self, bucket: int) -> bool:
        """Whether nothing works on the bucket."""
        self._threads[bucket] = {thread for thread in self._threads.get(bucket, ()) if thread.is_alive()}
        return not self._threads[bucket] and not any(bucket in buckets for buckets in self._slots.values())


class BucketContext(ReconcileContext):
    """A context whose descendants carry the label of their bucket, too."""

    def labels(self, owner_uid: str) -> dict[str, str]:
        """As `ReconcileContext.labels`."""
        return {**super().labels(owner_uid), BUCKET: str(bucket_of(owner_uid, VALUES))}


class BucketWorker(Worker):
    """A worker for objects in open buckets."""

    def __init__(self, *, activity: Activity, **parts: Any) -> None:
        # Periodic tasks run in one replica: a task that a handler registered elsewhere would never run.
        super().__init__(**{**parts, "tasks": None})
        self._context = partial(BucketContext, **self._context.keywords)  # type: ignore[assignment]
        self._activity = activity

    async def _handle(self, work: Work[Key]) -> None:
        slot = cast("asyncio.Task[Any]", asyncio.current_task())
        all_end, activity = self._slots.ended.is_set, self._activity
        token = stopping.set(lambda: all_end() or activity.is_cancelled(slot))
        try:
            await super()._handle(work)
        finally:
            stopping.reset(token)
            activity.ended(slot)

    async def _process(
        self, action: Action, key: Key, item: Item, reasons: frozenset[Reason], *, tries: int = 0
    ) -> Reconcile[Any]:
        bucket = bucket_of(item.meta.uid, self._activity.buckets)
        if bucket not in self._activity.open:
            raise Retry("another replica handles the object")
        self._activity.began(cast("asyncio.Task[Any]", asyncio.current_task()), bucket)
        token = acting.set(bucket)
        try:
            return await super()._process(action, key, item, reasons, tries=tries)
        finally:
            acting.reset(token)

    def close(self, bucket: int) -> None:
        """Another replica calls `delete` for the deleted objects of the bucket, if any does."""
        for record in self.router.records.values():
            for uid in [uid for uid in record.tombstones or () if bucket_of(uid, self._activity.buckets) == bucket]:
                del (record.tombstones or {})[uid]

    def forget(self, keys: Collection[Key]) -> None:
        """Remember nothing of these objects: another replica may change them."""
        for key in keys:
            if self.router.item(key) is None:
                self.router.forget(key)
                self.router.queue.discard(key)
                self.paused.discard(key)
