"""Streams that keep only the objects of this replica's buckets.

Requests select them (`selection`). Other objects that the server sends are dropped as soon as their metadata is
decoded: they reach no store, no queue and no handler. A child belongs to the bucket of its owner, whose UID is a label.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Set
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeAlias, cast

from ..client.api import Client
from ..client.errors import NotFound, NotServed
from ..client.pages import pages
from ..controller import Controller
from ..core.objects import Item
from ..core.store import Delta, Store
from ..core.watch import Change, Gone, Put
from ..engine.router import Router
from ..engine.stream import Stream
from ..kinds import Kind
from ..resource import OWNER_UID, Key
from ..run.leader import REQUEST_ERRORS
from ..run.streams import Streams
from ..steps.live import gather_all
from .assignment import bucket_of
from .selection import BUCKET, VALUES, SelectingClient
from .worker import acting

Select: TypeAlias = Callable[[Set[int]], Mapping[str, str]]

log = logging.getLogger("bonny.sharding")


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
        self.foreign = 0
        """Objects of other replicas that the server sent, since the start."""

    def apply(self, change: Change) -> Iterable[Delta]:
        """As `Store.apply`; an object that went to another bucket, as a child with another owner does, has left."""
        if not isinstance(change, Put | Gone) or self._bucket(change.item) in self._shown:
            return super().apply(change)
        self.foreign += 1
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

    def __init__(
        self,
        client: Client,
        *arguments: Any,
        select: Select,
        bucket: Callable[[Item], int],
        shown: Set[int],
        **more: Any,
    ) -> None:
        """`select` makes the selection of the buckets `shown`; `bucket` names that of an object."""
        self.whole = False
        """Whether the server must send all objects: some of the own ones may lack their label."""

        selecting = SelectingClient(client, lambda: {} if self.whole else select(shown))
        super().__init__(cast("Client", selecting), *arguments, **more)
        self.store: BucketStore = BucketStore(bucket, shown)
        self.reselect = selecting.reselect
        self._bucket = bucket

    async def label_children(self, buckets: Set[int]) -> None:
        """Label the children of these buckets that earlier releases created; without success, `whole` is set.

        So nothing is handled, nor pruned, before its children carry the label.
        """
        unlabelled = f"{self.kind.label_selector},{OWNER_UID},!{BUCKET}"
        kind = replace(self.kind, label_selector=unlabelled, metadata_only=True)
        self.whole = True
        try:
            async for page in pages(self._client, kind, namespace=self.namespace):
                await gather_all(self._label, [item for item in page.items if self._bucket(item) in buckets])
        except NotServed:
            pass  # nor are there any objects
        except REQUEST_ERRORS as error:
            extra = {"stream": str(self), "error": str(error) or "no answer"}
            log.warning("children without the label of their bucket: all children are watched", extra=extra)
            return
        self.whole = False

    async def _label(self, child: Item) -> None:
        acting.set(self._bucket(child))
        labels = {BUCKET: str(bucket_of(owner_uid(child), VALUES))}
        with suppress(NotFound):
            await self._client.merge_patch(
                self.kind, child.key, {"metadata": {"uid": child.meta.uid, "labels": labels}}
            )

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
