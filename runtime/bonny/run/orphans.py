"""Orphans: children whose owner is gone, found when the streams are in sync for the first time.

An owner that was deleted while no process ran is never seen again, and neither is its deletion. What carries an owner
reference is removed by the garbage collector; the rest stays until a person removes it. So it is reported, and nothing
else is done: a name in a log is no harm if this process does not see all that its predecessor saw.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from ..core.objects import Item
from ..engine.router import UID_INDEX, Router
from ..engine.stream import Stream
from ..resource import OWNER_UID

__all__ = ["Orphan", "find_orphans"]

# After so many children others get their turn on the loop.
LOOKED_AT_ONCE: Final = 1_000


class Orphan(NamedTuple):
    """A child that carries the UID of an owner that does not exist."""

    child: str
    """As in messages: `configmaps default/w1`."""

    owner_uid: str
    collected: bool
    """It has an owner reference: the cluster's garbage collector removes it."""


async def find_orphans(routers: Sequence[Router]) -> list[Orphan]:
    """The children of owners that none of the complete streams shows; of others nothing is said."""
    sources = {id(source): source for router in routers for source in router.owned_streams}
    children = [(source.kind.resource, item) for source in sources.values() for item in source.store]
    found = []
    for number, (resource, item) in enumerate(children):
        if number % LOOKED_AT_ONCE == 0:
            await asyncio.sleep(0)
        uid = (item.meta.labels or {}).get(OWNER_UID)
        if uid is not None and _owner_is_gone(item, uid, routers):
            named = any(reference.uid == uid for reference in item.meta.owner_references)
            found.append(Orphan(f"{resource} {item.key}", uid, named))
    return found


def _owner_is_gone(child: Item, uid: str, routers: Iterable[Router]) -> bool:
    """Whether every stream that could show the owner is complete, and none does."""
    reference = next((known for known in child.meta.owner_references if known.uid == uid), None)
    group = None if reference is None else reference.api_version.rpartition("/")[0]
    asked = [
        source
        for router in routers
        if router.owns
        for source in router.primary
        if reference is None or (source.kind.group, source.kind.kind) == (group, reference.kind)
    ]
    if reference is not None:
        # By reference the owner of a child is in its namespace, or in none; by label it can be anywhere.
        asked = [source for source in asked if source.namespace in (None, child.meta.namespace)]
    elif any(source.namespace is not None for source in asked):
        return False
    return bool(asked) and all(_is_complete(source) and not source.store.lookup(UID_INDEX, uid) for source in asked)


def _is_complete(source: Stream) -> bool:
    return source.current and not source.narrowed
