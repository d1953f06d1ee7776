"""Orphans: children whose owner does not exist, looked for when the streams are in sync for the first time.

The deletion of an owner is not seen while no process runs. The garbage collector removes children that have an owner
reference; the others stay until a person removes them. They are only reported: this process may see less than the one
that created them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from ..core.objects import Item
from ..engine.router import UID_INDEX, Router
from ..resource import OWNER_UID

# Children per turn of the event loop.
BATCH: Final = 1_000


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
        namespaces = (None, child.meta.namespace)
        streams = [
            stream
            for stream in streams
            if (stream.kind.group, stream.kind.kind) == kind and stream.namespace in namespaces
        ]
    return bool(streams) and all(
        stream.current and not stream.narrowed and not stream.store.lookup(UID_INDEX, uid) for stream in streams
    )
