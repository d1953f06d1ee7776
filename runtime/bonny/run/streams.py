"""Streams: the kinds that one run of an operator follows; controllers and extras share equal streams.

When all are in sync for the first time, children without an owner are reported. The deletion of an owner is not seen
while no process runs. The garbage collector removes children that have an owner reference; the others stay until a
person removes them. They are only reported: this process may see less than the one that created them.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from ..client.api import Client
from ..controller import Controller
from ..core.objects import Item
from ..engine.router import UID_INDEX, Router
from ..engine.stream import Stream
from ..kinds import Kind, Owned
from ..operator import Operator
from ..resource import MANAGED_BY, OWNER_UID
from ..servers.visitor import Namespaces

ORPHAN_EXAMPLES: Final = 5
# Children per turn of the event loop.
BATCH: Final = 1_000

log = logging.getLogger("bonny.run.streams")


class Streams:
    """The shared streams of `operator`, which watches `namespaces`."""

    def __init__(self, operator: Operator, namespaces: Namespaces, on_restore: Callable[[Stream], None]) -> None:
        """`on_restore` is called with the stream that noticed that the server was restored from a backup."""
        self.client: Client
        """Set before the first stream is made."""

        self._operator, self._namespaces, self._on_restore = operator, namespaces, on_restore
        self._streams: dict[tuple[object, ...], Stream] = {}

    def __iter__(self) -> Iterator[Stream]:
        return iter(self._streams.values())

    def of(self, kind: Kind, namespace: str | None) -> Stream:
        """The stream of a kind in a namespace, None for all."""
        name = (kind.api_version, kind.plural, namespace, kind.label_selector, kind.field_selector, kind.metadata_only)
        if name not in self._streams:
            stream = Stream(self.client, kind, namespace=namespace, options=self._operator.watch_options)
            stream.on_restore = self._on_restore
            self._streams[name] = stream
        return self._streams[name]

    def router(self, controller: type[Controller[Any]], kind: Kind) -> Router:
        """A router for a kind of a controller, with the streams of what it owns and refers to."""
        return Router(
            primary=self._watched(kind),
            owned={owned: self._watched(self._ours(owned)) for owned in controller.owns},
            related={related: self._watched(related) for related in controller.related},
            on_status=controller.on_status,
        )

    def _watched(self, kind: Kind) -> list[Stream]:
        """The streams of a kind: one, or one for each watched namespace."""
        everywhere = kind.namespaced and kind.namespace is None
        return [self.of(kind, each) for each in (self._namespaces if everywhere else (kind.namespace,))]

    def _ours(self, owned: Owned) -> Owned:
        """Select the objects that this operator manages: the cluster's other Secrets stay out of its memory."""
        ours = f"{MANAGED_BY}={self._operator.name}"
        return replace(owned, label_selector=f"{owned.label_selector},{ours}" if owned.label_selector else ours)


async def expire_tombstones(routers: Sequence[Router], *, seconds: float) -> None:
    """On a standby: keep deletions for as long as it may take to become the leader, and no longer."""
    while True:
        await asyncio.sleep(seconds / 2)
        for router in routers:
            router.remove_tombstones(before=time.monotonic() - seconds)


# --- the first sync ---------------------------------------------------------------------------------------------------


async def report_first_sync(streams: Collection[Stream], routers: Sequence[Router]) -> None:
    """Wait until every stream is in sync or blocked, then log that, and children that are left without an owner."""
    began = time.monotonic()
    await asyncio.gather(*(stream.wait_until_synced() for stream in streams))
    seconds = round(time.monotonic() - began, 3)
    objects, blocked = sum(len(stream.store) for stream in streams), sum(stream.blocked for stream in streams)
    log.info("in sync", extra={"objects": objects, "seconds": seconds, "blocked": blocked})
    orphans = await find_orphans(routers)
    if orphans:
        stay = sum(not orphan.collected for orphan in orphans)
        examples = ", ".join(orphan.child for orphan in orphans[:ORPHAN_EXAMPLES])
        extra = {"count": len(orphans), "without_owner_reference": stay, "examples": examples}
        log.warning("orphaned children found", extra=extra)


class Orphan(NamedTuple):
    """A child that carries the UID of an owner that does not exist."""

    child: str
    """As in messages: `configmaps default/w1`."""

    owner_uid: str
    collected: bool
    """The child has an owner reference, so the garbage collector removes it."""


async def find_orphans(routers: Sequence[Router]) -> list[Orphan]:
    """Children whose owner is missing in complete streams; children whose owner may be unseen are left out."""
    streams = dict.fromkeys(stream for router in routers for stream in router.owned_streams)
    children = [(stream.kind.resource, item) for stream in streams for item in stream.store]
    orphans = []
    for number, (resource, item) in enumerate(children):
        if number % BATCH == 0:
            await asyncio.sleep(0)
        uid = (item.meta.labels or {}).get(OWNER_UID)
        if uid is not None and _owner_is_gone(item, uid, routers):
            collected = any(reference.uid == uid for reference in item.meta.owner_references)
            orphans.append(Orphan(f"{resource} {item.key}", uid, collected))
    return orphans


def _owner_is_gone(child: Item, uid: str, routers: Iterable[Router]) -> bool:
    """Whether every stream that could show the owner is complete and does not show it."""
    reference = next((each for each in child.meta.owner_references if each.uid == uid), None)
    streams = [stream for router in routers if router.owns for stream in router.primary]
    if reference is None:
        # The label alone names no kind and no namespace: every owner of the cluster must be visible.
        if any(stream.namespace is not None for stream in streams):
            return False
    else:
        # An owner that is referred to is in the namespace of the child, or in none.
        kind = (reference.api_version.rpartition("/")[0], reference.kind)
        where = (None, child.meta.namespace)
        streams = [each for each in streams if (each.kind.group, each.kind.kind) == kind and each.namespace in where]
    return bool(streams) and all(
        stream.current and not stream.narrowed and not stream.store.lookup(UID_INDEX, uid) for stream in streams
    )
