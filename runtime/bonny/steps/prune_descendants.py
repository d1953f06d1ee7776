"""PruneDescendants: deletes children that the handler no longer registers.

A child is deleted only when all of this holds: it carries the label of the owner's UID, this controller applied it,
the handler returned and did not halt, every registered descendant was applied, every owned stream is in sync, and the
owner still is, by an uncached read, what the handler saw: same UID, same generation, not under deletion. The request
names the child's UID and version, so what changed meanwhile stays for the next time.

Off for controllers that define more than one of add, modify and reconcile: each would prune the children of the others.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from ..axn import Action, Axn
from ..client.errors import Conflict, NotFound
from ..controller import Controller
from ..core.fields import owned_fields
from ..core.objects import Item
from ..kinds import Kind

__all__ = ["PruneDescendants"]

# While a stream is in trouble nothing is pruned; somebody has to come back for it.
LATER_SECONDS: Final = 30.0


class PruneDescendants:
    """Usage: `PruneDescendants()`, after `ApplyDescendants`. RBAC: get on the kind, delete on the kinds in `owns`."""

    async def __call__(self, axn: Axn[Any]) -> None:
        """Raises: `ApiError`."""
        if axn.action in (Action.DELETE, Action.FINALIZE) or axn.applied is None:
            return
        if not isinstance(axn.controller, Controller) or not axn.controller.prunes() or not axn.workplace.owns:
            return
        children = axn.workplace.children(axn.uid)
        if children is None:
            axn.requeue_seconds = min(axn.requeue_seconds or LATER_SECONDS, LATER_SECONDS)
            return
        registered = {(kind.api_version, kind.kind, key) for kind, key in axn.applied}
        dropped = [
            (kind, child)
            for kind, child in children
            if (kind.api_version, kind.kind, child.key) not in registered and _is_ours(child, axn.workplace.manager)
        ]
        if dropped and await _owner_is_as_seen(axn):
            await asyncio.gather(*(_delete(axn, kind, child) for kind, child in dropped))


def _is_ours(child: Item, manager: str) -> bool:
    """Whether this very controller applied it: another one of the operator may have children for the same owner."""
    return child.meta.deletion_timestamp is None and owned_fields(child.decode(), manager) is not None


async def _owner_is_as_seen(axn: Axn[Any]) -> bool:
    if axn.kind is None:
        return False
    seen = axn.resource["metadata"]
    try:
        live = (await axn.workplace.client.get(axn.kind, axn.key.name, namespace=axn.key.namespace or None))["metadata"]
    except NotFound:
        return False
    same = (live["uid"], live.get("generation")) == (seen["uid"], seen.get("generation"))
    return same and not live.get("deletionTimestamp")


async def _delete(axn: Axn[Any], kind: Kind, child: Item) -> None:
    try:
        await axn.workplace.client.delete(kind, child.key, uid=child.meta.uid, version=child.meta.resource_version)
    except (NotFound, Conflict):
        return  # gone, or changed: then its event brings the owner back
    axn.workplace.wrote = True
