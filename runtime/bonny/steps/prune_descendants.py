"""PruneDescendants: deletes children that the handler neither registers nor keeps.

A child is deleted only if all of this holds: it carries the label with the owner's UID; this controller applied it; its
kind is not declared with `Owned(..., prune=False)`; a handler that listed its kind was shown it; the handler returned
and did not halt; every registered descendant was applied, and nothing waits; every owned stream is in sync; and an
uncached read shows the owner as the handler saw it, and not under deletion. The request names the child's UID and
version, so a child that changed in the meantime is left for the next reconcile.

Off for controllers that define `add` or `modify`: each handler would prune the children of the other handlers.
"""

from __future__ import annotations

from typing import Any, Final

from ..core.records import Action
from ..engine.reconcile import Reconcile
from ..resource import named
from .child import delete_children, is_applied_by
from .live import owner_is_as_shown

# The owner's change comes as an event, unless the owner was changed back in the meantime: look again after this time.
LATER_SECONDS: Final = 30.0


class PruneDescendants:
    """Usage: `PruneDescendants()`, after `ApplyDescendants`. RBAC: get on the kind, delete on the kinds in `owns`."""

    async def __call__(self, axn: Reconcile[Any]) -> None:
        """Raises: `ApiError`."""
        if axn.action in (Action.DELETE, Action.FINALIZE) or axn.applied is None or axn.waiting is not None:
            return
        if not axn.context.owns or not axn.controller.prunes():
            return
        children = axn.context.children(axn.uid)
        if not children:
            return
        dropped = [each for each in axn.unwanted(children) if is_applied_by(each[1], axn.context.manager)]
        if not dropped:
            return
        if await owner_is_as_shown(axn):
            await delete_children(axn, dropped, insist=False)
            axn.outdated = axn.outdated or any(axn.looked_at(named(kind.gvk, child.key)) for kind, child in dropped)
        else:
            axn.requeue_within(LATER_SECONDS)
