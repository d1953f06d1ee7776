"""Streams that keep only the objects of this replica's buckets.

The server sends all of them. The others are dropped as soon as their metadata is decoded: they reach no store, no queue
and no handler. A child belongs to the bucket of its owner, whose UID is a label.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from contextlib import suppress
from typing import Any

from ..controller import Controller
from ..core.objects import Item
from ..core.store import Delta, Store
from ..core.watch import Change, Gone, Put
from ..engine.router import Router
from ..engine.stream import Stream
from ..kinds import Kind
from ..resource import OWNER_UID, Key
from ..run.streams import Streams


def own_uid(item: Item) -> str:
    """The UID that decides about a handled object."""
    return item.meta.uid


def owner_uid(item: Item) -> str:
    """The UID that decides about a child."""
    return (item.meta.labels or {}).get(OWNER_UID, "")


class BucketStore(Store):
    """A store without the objects of other replicas."""

    def __init__(self, bucket: Callable[[Item], int], shown: Set[int]) -> None:
        super().__init__()
        self._bucket, self._shown = bucket, shown

    def apply(self, change: Change) -> Iterable[Delta]:
        """As `Store.apply`; an object that went to another bucket, as a child with another owner does, has left."""
        if not isinstance(change, Put | Gone) or self._bucket(change.item) in self._shown:
            return super().apply(change)
        key = change.item.key
        left = self._items.get(key)
        if left is None or (isinstance(change, Put) and not change.live) or change.item.version < left.version:
            return []  # the sweep of a list removes it
        self._replace(key, left, None)
        self._unlisted.discard(key)
        return [Delta(key, left, None, live=True)]

    def drop(self, bucket: int) -> set[Key]:
        """Remove the objects of a bucket that another replica gets: they were not deleted. Returns: their keys."""
        dropped = {key: item for key, item in self._items.items() if self._bucket(item) == bucket}
        for key, item in dropped.items():
            self._replace(key, item, None)
            self._unlisted.discard(key)
        return set(dropped)

    def _sweep(self) -> Iterator[Delta]:
        # Read with pauses, in which `drop` may remove objects that are to be swept.
        self._restored = False
        lacking, self._unlisted = self._unlisted, set()
        for key in lacking:
            if (old := self._items.get(key)) is not None:
                self._replace(key, old, None)
                yield Delta(key, old, None, live=False)


class BucketStreams(Streams):
    """Streams whose handled objects and children belong to this replica; related objects are complete."""

    make_primary: Callable[..., Stream]
    make_owned: Callable[..., Stream]

    def router(self, controller: type[Controller[Any]], kind: Kind) -> Router:
        """As `Streams.router`."""
        return Router(
            primary=self._made(self.make_primary, kind),
            owned={owned: self._made(self.make_owned, self._ours(owned)) for owned in controller.owns},
            related={related: self._watched(related) for related in controller.related},
            on_status=controller.on_status,
        )

    def _made(self, make: Callable[..., Stream], kind: Kind) -> list[Stream]:
        self.make = make
        try:
            return self._watched(kind)
        finally:
            self.make = Stream


class BucketStream(Stream):
    """A stream of handled objects or children, with a store of its own buckets."""

    def __init__(self, *arguments: Any, bucket: Callable[[Item], int], shown: Set[int], **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.store: BucketStore = BucketStore(bucket, shown)

    async def listed(self, before: int) -> None:
        """Return once there were more complete lists than `before`, or the stream is blocked."""
        while not (self.lists > before and self.synced) and not self.blocked:
            self._changed.clear()
            await self._changed.wait()


async def all_listed(before: Mapping[BucketStream, int], *, seconds: float) -> None:
    """Wait until all streams have more complete lists than `before`, at most for `seconds`.

    A stream that fails must not hold up other objects.
    """
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await asyncio.gather(*(stream.listed(lists) for stream, lists in before.items()))
