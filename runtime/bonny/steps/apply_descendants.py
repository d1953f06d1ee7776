"""ApplyDescendants: creates and changes the objects that the handler registered, by server-side apply, and no others.

Objects of one level are applied 16 at a time. After a failure the rest of the level is still applied, and the next
level is not. An object that waits for others is not created, and a change of its wanted fields is not applied. Drift
is corrected: an object that was applied before as it is registered now is put back.

No request is sent when the live object already is as wanted:

- the fields that we own (managedFields) equal the wanted ones, value by value; or
- the wanted object equals the last one that we sent, and the fields that we own equal the ones stored then (the
  server stores `cpu: 1000m` as `1`, so the first comparison never holds there).

When the API server refuses a change, for example of an immutable field, an object that was registered with
`recreate=True` is deleted and created again. A dry run checks first that the server would accept the new object.

Ownership: an object is ours if it carries its owner's UID, as a label or an owner reference. The first apply of a name
is sent so that the API server refuses it if an object of that name exists; then an uncached GET must show our UID. An
apply to an existing object carries the live object's UID. A foreign object is reported as `ForeignObject`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import cache, cached_property
from typing import Any, TypeAlias

from ..core.objects import Item, version_number
from ..core.ordering import Descendant, ObjectName
from ..core.records import Action
from ..engine.reconcile import Reconcile
from ..errors import OptionError, UndeclaredKind
from ..events import Event, EventType
from ..kinds import Owned
from ..resource import APPLY_ORDER, Key, Resource, gvk_of, identify, key_of, listed, owner_reference
from .child import HELD, Child
from .live import gather_all

log = logging.getLogger("bonny.steps.apply_descendants")

Outcome: TypeAlias = tuple[Owned, Key, str | None]
"""Kind and key of a descendant that had its turn, and the outcome; None if the cluster had it already."""


class ApplyDescendants:
    """Usage: `ApplyDescendants()`, after the controller and before `PruneDescendants` and `ApplyStatus`.

    `create_events=True` emits an event for each object that was created or changed; failures are always reported.
    RBAC: get, list, watch, create and patch on the kinds in `owns`; delete for those registered with `recreate=True`.
    """

    runs_while_waiting = True

    def __init__(self, *, create_events: bool = False) -> None:
        self._create_events = create_events

    async def __call__(self, axn: Reconcile[Any]) -> None:
        """Raises: `UndeclaredKind`, `ForeignObject`, `ApiError`; of several the first, the others as notes."""
        if axn.action in (Action.DELETE, Action.FINALIZE) or axn.is_sent("descendants"):
            return
        axn.before_apply_descendants()
        if not axn.changes_descendants:
            axn.mark_sent("descendants")
            axn.applied = set() if axn.waiting is None else None
            return
        order, records = ApplyOrder(axn), axn.context.applied_records
        try:
            for group in axn.descendant_groups():
                # Here, and not in tasks of their own: `when` may raise an error that is not an Exception.
                turns = [(each, order.unready(each)) for each in group]
                outcomes = await gather_all(lambda turn: self._apply(axn, turn[0], hold=bool(turn[1])), turns)
                for (each, unready), outcome in zip(turns, outcomes, strict=True):
                    order.note(each, outcome, unready=unready)
        finally:
            axn.mark_sent("descendants")
        if order.awaited:
            axn.wait(f"waiting for {listed(list(order.awaited))}")
        if axn.waiting is not None:  # not all are registered, or applied
            return
        axn.applied = {outcome[:2] for outcome in order.outcomes.values()}
        for dropped in records.keys() - axn.applied:
            if axn.context.is_shown(*dropped):
                del records[dropped]

    async def _apply(self, axn: Reconcile[Any], descendant: Descendant, *, hold: bool) -> Outcome:
        """Create or change one descendant if needed; with `hold` only if another writer changed or deleted it."""
        kind = declared(axn, descendant.resource)
        wanted = prepared(axn, kind, descendant)
        collected = any(owner["uid"] == axn.uid for owner in wanted["metadata"].get("ownerReferences") or ())
        if not (collected or axn.controller.finalizes()):
            _warn_of_uncollected(type(axn.controller).__name__, kind.resource)
        child = Child(axn, kind, key_of(wanted), wanted, adopt=descendant.adopt, recreate=descendant.recreate)
        outcome = await child.apply(hold=hold)
        if outcome not in (None, HELD):
            if self._create_events:
                message = f"{outcome.lower()} {identify(wanted)}"
                axn.emit_at_end(Event(EventType.NORMAL, outcome, "Apply", message, wanted))
            axn.outdated = axn.outdated or axn.looked_at(wanted)
            await child.note_correction()
        return kind, child.key, outcome


class ApplyOrder:
    """The descendants of one reconcile that had their turn, and which others wait for them.

    Readiness is judged by the objects in the watch. A stream that is not in sync is not believed, nor an object that is
    older than our last write to it; the owner is queued again when the watch shows more.
    """

    def __init__(self, axn: Reconcile[Any]) -> None:
        self._axn = axn
        self.outcomes: dict[ObjectName, Outcome] = {}
        self.awaited: dict[str, None] = {}
        """The objects that others wait for, without the objects that wait themselves."""

    def unready(self, descendant: Descendant) -> list[ObjectName]:
        """The objects before `descendant` that are not ready. Raises: the errors of `when`."""
        return [name for name in descendant.after if not self._is_ready(*self.outcomes[name], descendant.when)]

    def note(self, descendant: Descendant, outcome: Outcome, *, unready: list[ObjectName]) -> None:
        """`descendant` had its turn while the objects `unready` were not ready."""
        self.outcomes[descendant.name] = outcome
        for name in unready if outcome[2] == HELD else ():
            before = self.outcomes[name][2]
            if before != HELD:
                self.awaited[str(name)] = None
                # Our own write does not wake the owner, but it can make the object ready.
                self._axn.outdated |= before is not None

    def _is_ready(self, kind: Owned, key: Key, outcome: str | None, when: Callable[[Resource], bool] | None) -> bool:
        if when is None or outcome == HELD:
            return outcome != HELD
        item, record = self._shown.get((kind.gvk, key)), self._axn.context.applied_records.get((kind, key))
        if item is None or (record is not None and item.version < version_number(record.version)):
            return False
        return when({**item.decode(), "apiVersion": kind.api_version, "kind": kind.kind})

    @cached_property
    def _shown(self) -> dict[tuple[tuple[str, str], Key], Item]:
        """The children as the watch shows them, by API version and kind, as several declarations of one kind may show
        a child; none while a stream is not in sync."""
        return {(kind.gvk, item.key): item for kind, item in self._axn.context.children(self._axn.uid) or ()}


@cache
def _warn_of_uncollected(controller: str, kind: str) -> None:
    """Once for each controller and kind."""
    extra = {"controller": controller, "kind": kind, "then": "define `finalize` on the controller"}
    log.warning("descendants stay when their owner is deleted", extra=extra)


def prepared(axn: Reconcile[Any], kind: Owned, descendant: Descendant) -> Resource:
    """The object as it is sent: with our labels, its group and, where Kubernetes allows it, the owner reference."""
    resource, owner = descendant.resource, axn.identity
    metadata = dict(resource["metadata"])
    metadata["labels"] = {**(metadata.get("labels") or {}), **axn.context.labels(owner["metadata"]["uid"])}
    if descendant.group:
        metadata["annotations"] = {**(metadata.get("annotations") or {}), APPLY_ORDER: str(descendant.group)}
    if kind.namespaced and not metadata.get("namespace"):
        if not owner["metadata"].get("namespace"):
            raise OptionError(f"{identify(resource)} needs a namespace: its owner, {identify(owner)}, has none")
        metadata["namespace"] = owner["metadata"]["namespace"]
    # A namespaced owner may own only within its namespace: the garbage collector deletes objects that point elsewhere.
    reachable = not axn.kind.namespaced or metadata.get("namespace") == owner["metadata"].get("namespace")
    if reachable and not descendant.omit_owner_ref:
        others = [other for other in metadata.get("ownerReferences") or () if other["uid"] != owner["metadata"]["uid"]]
        metadata["ownerReferences"] = [*others, owner_reference(owner)]
    return {**resource, "metadata": metadata}


def declared(axn: Reconcile[Any], resource: Mapping[str, Any]) -> Owned:
    """The kind of a descendant, as the controller owns it. Raises: `UndeclaredKind`."""
    namespace = resource["metadata"].get("namespace") or axn.key.namespace
    for kind in axn.context.owns:
        if kind.gvk == gvk_of(resource) and kind.namespace in (None, namespace):
            return kind
    raise UndeclaredKind(
        f"{type(axn.controller).__name__} registered {identify(resource)} but does not own that kind: "
        f'add Owned("{resource["apiVersion"]}", "{resource["kind"]}") to its `owns`',
    )
