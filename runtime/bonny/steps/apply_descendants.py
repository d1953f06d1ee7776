"""ApplyDescendants: makes the cluster hold what the handler registered, by server-side apply, and touches nothing else.

An object that comes after others is applied after them (`apply_order`), objects of one level 16 at a time. After a
failure the rest of the level is still applied, and the next level is not. No request is sent when the live object
already is as wanted:

- the fields that we own (managedFields) equal the wanted ones, value by value; or
- the wanted object equals what we sent last time, and the fields that we own equal what the server stored then (the
  server stores `cpu: 1000m` as `1`, so the first comparison never holds there).

When the API server refuses a change, for example of an immutable field, an object that was registered with
`recreate=True` is deleted and created again. A dry run checks first that the server would accept the new object.

Ownership: an object is ours if it carries its owner's UID, as a label or an owner reference. The first apply of a name
is sent so that the API server refuses it if an object of that name exists; then an uncached GET must show our UID. An
apply to an existing object carries the live object's UID. A foreign object is reported as `ForeignObject`.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Awaitable, Mapping
from functools import cache
from typing import Any, Final

from ..client.errors import IMMUTABLE, Conflict, Invalid
from ..core.fields import digest, overridden, same
from ..core.objects import Item
from ..core.ordering import Descendant
from ..core.records import Action, applied_record
from ..engine.context import ReconcileContext
from ..engine.reconcile import Reconcile
from ..errors import ADVICE, ApiError, ForeignObject, OptionError, Retry, UndeclaredKind
from ..events import Event, EventType
from ..kinds import Kind, Owned, builtin
from ..resource import (
    APPLY_ORDER,
    MANAGED_BY,
    OWNER_UID,
    Key,
    Resource,
    gvk_of,
    identify,
    key_of,
    listed,
    owner_reference,
    owners_of,
)
from .apply_order import HELD, ApplyOrder, Outcome
from .live import (
    NOTHING_OWNED,
    OwnedPart,
    computed,
    owned_part,
    owner_is_as_shown,
    read,
    read_owner,
    report_fight,
    together,
)

# etcd counts from 1 before anything is stored, so no object has this version: an apply that names it creates, or is
# refused with a conflict. There is no other "create only" for server-side apply.
NO_VERSION: Final = "1"


CREATED: Final = "Created"
UPDATED: Final = "Updated"
# How the API server says that a field cannot be changed; types and limits are refused in other words.
# Their deletion loses data that no new object brings back. Of custom resources it is not known.
HOLDS_DATA: Final = frozenset(
    ("PersistentVolumeClaim", "PersistentVolume", "Namespace", "CustomResourceDefinition", "StatefulSet")
)
# Leaves room for the random suffix of a dry run's name, also in names of at most 63 characters.
TRIAL_NAME: Final = 50

log = logging.getLogger("bonny.steps.apply_descendants")


class ApplyDescendants:
    """Usage: `ApplyDescendants()`, after the controller and before `PruneDescendants` and `ApplyStatus`.

    `create_events=True` emits an event for each object that was created or changed; failures are always reported.
    RBAC: get, list, watch, create and patch on the kinds in `owns`; delete for those registered with `recreate=True`.
    """

    runs_while_waiting = True

    def __init__(self, *, create_events: bool = False) -> None:
        self._create_events = create_events

    def __call__(self, axn: Reconcile[Any]) -> Awaitable[None] | None:
        """Raises: `UndeclaredKind`, `ForeignObject`, `ApiError`; of several the first, the others as notes."""
        if axn.action in (Action.DELETE, Action.FINALIZE) or axn.is_sent("descendants"):
            return None
        if axn.changes_descendants:
            return self._apply_all(axn)
        axn.mark_sent("descendants")
        axn.applied = set() if axn.waiting is None else None
        return None

    async def _apply_all(self, axn: Reconcile[Any]) -> None:
        axn.before_apply_descendants()
        order, applied = ApplyOrder(axn), set[tuple[Kind, Key]]()
        try:
            for group in axn.descendant_groups():
                # Here, and not in tasks of their own: what `when` raises may be no Exception.
                unready = [order.unready(each) for each in group]
                turns = list(zip(group, unready, strict=True))
                outcomes = await together(lambda turn: self._apply(axn, turn[0], hold=bool(turn[1])), turns)
                for (each, others), outcome in zip(turns, outcomes, strict=True):
                    order.note(each, outcome, unready=others)
                    applied.add(outcome[:2])
        finally:
            axn.mark_sent("descendants")
        if order.awaited:
            axn.wait(f"waiting for {listed(list(order.awaited))}")
        if axn.waiting is not None:  # not all are registered, or applied
            return
        applied_records = axn.context.applied_records
        for dropped in applied_records.keys() - applied:
            if axn.context.is_shown(*dropped):
                del applied_records[dropped]
        axn.applied = applied

    async def _apply(self, axn: Reconcile[Any], descendant: Descendant, *, hold: bool) -> Outcome:
        """Create or change one descendant if needed; with `hold` only if another writer changed or deleted it."""
        kind = declared(axn, descendant.resource)
        wanted = prepared(
            descendant, axn.identity, operator=axn.context.operator, kind=kind, owner_namespaced=axn.kind.namespaced
        )
        collected = any(owner["uid"] == axn.uid for owner in wanted["metadata"].get("ownerReferences") or ())
        if not (collected or axn.controller.finalizes()):
            _warn_of_uncollected(type(axn.controller).__name__, kind.resource)
        return kind, key_of(wanted), await self._make_so(axn, kind, descendant, wanted, hold=hold)

    async def _make_so(
        self, axn: Reconcile[Any], kind: Owned, descendant: Descendant, wanted: Resource, *, hold: bool
    ) -> str | None:
        """Let the cluster hold `wanted`, made of `descendant`; returns the outcome, None if nothing was written."""
        context, key = axn.context, key_of(wanted)
        shown, synced = context.observe(kind, key)
        live = None if shown is None else shown.decode()
        ours = NOTHING_OWNED if live is None else await owned_part(live, context.manager)
        if live is not None and synced and _unchanged(context, kind, wanted, live, ours):
            return None
        last = context.applied_records.get((kind, key))
        # The wanted object did not change since the last apply, so another writer changed the live one.
        drifted = last is not None and last.wanted == digest(wanted)
        if hold and not drifted:
            return HELD
        wait = context.fights.wait((kind, key), now=time.monotonic()) if drifted else 0.0
        if wait:
            axn.requeue_within(wait)
            return None
        if live is None:
            await _owner_must_exist(axn)
            live = await _created_or_found(axn, kind, wanted)
            ours = NOTHING_OWNED if live is None else await owned_part(live, context.manager)
            if live is not None and _unchanged(context, kind, wanted, live, ours):
                return None
        outcome: str | None = CREATED
        if live is not None:
            _must_be_ours(axn, descendant, wanted, live)
            outcome = await _change(axn, kind, wanted, before=live, ours=ours, recreate=descendant.recreate)
        if outcome is not None and self._create_events:
            axn.tell(Event(EventType.NORMAL, outcome, "Apply", f"{outcome.lower()} {identify(wanted)}", wanted))
        if outcome is not None and axn.looked_at(wanted):
            axn.outdated = True
        if outcome is not None and drifted and context.fights.corrected((kind, key), now=time.monotonic()):
            await _report_fight(axn, wanted, shown)
        return outcome


async def _report_fight(axn: Reconcile[Any], wanted: Resource, shown: Item | None) -> None:
    """Once for each fight: report which field managers change the object back, according to its managedFields."""
    by = f"an unknown writer {'deletes it' if shown is None else 'removes fields'}"
    if shown is not None:
        by = await computed(len(shown.raw), _rivals, wanted, shown, axn.context.manager) or by
    report_fight(axn, f"{identify(wanted)} is changed back each time it is corrected: {by}", related=wanted)


def _rivals(wanted: Resource, shown: Item, manager: str) -> str:
    """The field managers other than `manager` that set other values than the wanted ones, with their paths."""
    live = shown.decode()
    writers: list[str] = []
    for entry in live["metadata"].get("managedFields") or ():
        if entry["manager"] == manager:
            continue
        # Many items of a list may have the same path.
        paths = ", ".join(dict.fromkeys(overridden(wanted, live, entry.get("fieldsV1") or {})))
        if paths:
            writers.append(f"field manager {entry['manager']!r} sets {paths}")
    return "; ".join(writers)


@cache
def _warn_of_uncollected(controller: str, kind: str) -> None:
    """Once for each controller and kind."""
    extra = {"controller": controller, "kind": kind, "then": "define `finalize` on the controller"}
    log.warning("descendants stay when their owner is deleted", extra=extra)


def prepared(
    descendant: Descendant, owner: Resource, *, operator: str, kind: Owned, owner_namespaced: bool
) -> Resource:
    """The object as it is sent: with our labels, its group and, where Kubernetes allows it, the owner reference."""
    resource = descendant.resource
    metadata = dict(resource["metadata"])
    metadata["labels"] = {
        **(metadata.get("labels") or {}),
        MANAGED_BY: operator,
        OWNER_UID: owner["metadata"]["uid"],
    }
    if descendant.group:
        metadata["annotations"] = {**(metadata.get("annotations") or {}), APPLY_ORDER: str(descendant.group)}
    if kind.namespaced and not metadata.get("namespace"):
        if not owner["metadata"].get("namespace"):
            raise OptionError(f"{identify(resource)} needs a namespace: its owner, {identify(owner)}, has none")
        metadata["namespace"] = owner["metadata"]["namespace"]
    # A namespaced owner may own only within its namespace: the garbage collector deletes what points elsewhere.
    reachable = not owner_namespaced or metadata.get("namespace") == owner["metadata"].get("namespace")
    if reachable and not descendant.omit_owner_ref:
        others = [other for other in metadata.get("ownerReferences") or () if other["uid"] != owner["metadata"]["uid"]]
        metadata["ownerReferences"] = [*others, owner_reference(owner)]
    return {**resource, "metadata": metadata}


def _must_be_ours(axn: Reconcile[Any], descendant: Descendant, wanted: Resource, live: Resource) -> None:
    if descendant.adopt or axn.uid in owners_of(live):
        return
    axn.context.contested(declared(axn, wanted), key_of(wanted))
    if live["metadata"].get("deletionTimestamp"):
        remedy = "it is being deleted, and ours is created once it is gone"
    else:
        remedy = "rename the descendant, delete that object, or register it with adopt=True"
    raise ForeignObject(f"{identify(wanted)} exists and is not ours{_belongs_to(live, axn)}: {remedy}")


async def _owner_must_exist(axn: Reconcile[Any]) -> None:
    """Before creating a child while the owner's stream is failing: the owner may be gone without our knowing, and the
    garbage collector would delete the child again and again.

    Raises: `Retry`.
    """
    if not axn.context.up_to_date and await read_owner(axn) is None:
        raise Retry(f"{identify(axn.identity)} was deleted, but the watch has not reported it yet")


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


def _unchanged(context: ReconcileContext, kind: Owned, wanted: Resource, live: Resource, ours: OwnedPart) -> bool:
    """Whether the live object has all wanted fields, and no field of ours that is no longer wanted."""
    metadata = live["metadata"]
    record = context.applied_records.get((kind, key_of(wanted)))
    resent = record is not None and record.uid == metadata["uid"] and record.wanted == digest(wanted)
    if metadata.get("deletionTimestamp"):
        return False
    if kind.metadata_only:
        # There are no fields to compare: only the version that our apply made is known to be right.
        return resent and record is not None and record.version == metadata["resourceVersion"]
    fields, held = ours
    if fields is None:
        return False
    return same(held, _managed_part(wanted)) or (resent and record is not None and record.stored == digest(held))


def _managed_part(wanted: Resource) -> Resource:
    """The part of an applied object that managedFields records: all but its type and name."""
    metadata = {name: value for name, value in wanted["metadata"].items() if name not in ("name", "namespace")}
    rest = {name: value for name, value in wanted.items() if name not in ("apiVersion", "kind", "metadata")}
    return {**rest, "metadata": metadata}


def _belongs_to(live: Resource, axn: Reconcile[Any]) -> str:
    """The owner of a foreign object, for the message."""
    metadata = live["metadata"]
    for reference in metadata.get("ownerReferences") or ():
        earlier = "an earlier " if (reference["kind"], reference["name"]) == (axn.kind.kind, axn.key.name) else ""
        return f" (it belongs to {earlier}{reference['kind']} {reference['name']})"
    manager = (metadata.get("labels") or {}).get(MANAGED_BY)
    return f" (it is managed by {manager})" if manager else ""


async def _created_or_found(axn: Reconcile[Any], kind: Owned, wanted: Resource) -> Resource | None:
    """Create `wanted` and return None; if an object of its name exists, return that one and change nothing.

    Raises: `Conflict` if such an object appeared and vanished at the same moment.
    """
    key, context = key_of(wanted), axn.context
    # An object that we applied before and the stream does not show most likely exists. A read costs less than a
    # refused write.
    live = await read(axn, kind, key) if (kind, key) in context.applied_records else None
    if live is not None:
        return live
    fenced = {**wanted, "metadata": {**wanted["metadata"], "resourceVersion": NO_VERSION}}
    try:
        with context.writing(kind, key) as wrote:
            made, _ = await context.client.apply(kind, fenced, manager=context.manager, force=False)
            wrote(made["metadata"]["resourceVersion"])
    except Conflict:
        live = await read(axn, kind, key)
        if live is None:
            raise
        return live
    context.applied_records[kind, key] = applied_record(wanted, made, (await owned_part(made, context.manager))[1])
    return None


async def _change(
    axn: Reconcile[Any], kind: Owned, wanted: Resource, *, before: Resource, ours: OwnedPart, recreate: bool
) -> str | None:
    """Apply `wanted` to the existing object `before`; returns the outcome, None if nothing was written.

    `ours` are the fields that we own of it. The request carries the UID, so that the API server refuses it if another
    object took the name in the meantime.
    """
    key, context = key_of(wanted), axn.context
    last = context.applied_records.get((kind, key))
    sent = {**wanted, "metadata": {**wanted["metadata"], "uid": before["metadata"]["uid"]}}
    if not before["metadata"].get("managedFields") and axn.uid in owners_of(before):
        await _claim(axn, kind, before)
    try:
        with context.writing(kind, key) as wrote:
            live, _ = await context.client.apply(kind, sent, manager=context.manager, force=True)
            version = live["metadata"]["resourceVersion"]
            now = await owned_part(live, context.manager)
            if kind.metadata_only:
                # By the version alone: if another writer made it, our apply came after it, so nothing is missed.
                changed = version != before["metadata"]["resourceVersion"] and (last is None or last.version != version)
            else:
                # If our fields did not change, nothing was written: the version belongs to another writer's change,
                # whose event must not be taken for ours.
                changed = not same(now, ours)
            if changed:
                wrote(version)
    except Invalid as refused:
        if not recreate:
            advise(refused, kind)
            raise
        await _recreate(axn, kind, wanted, before=before)
        return CREATED
    context.applied_records[kind, key] = applied_record(wanted, live, now[1])
    return UPDATED if changed else None


async def _claim(axn: Reconcile[Any], kind: Owned, child: Resource) -> None:
    """Name our manager in a child of ours whose managedFields another client removed.

    Without any manager, the API server would note `before-first-apply` as another owner of all fields at the next
    apply, and then no field that is not wanted any more would ever be removed. Which fields were ours is unknown: our
    label stands for them until the apply names all.
    Raises: `Conflict` if the child changed in the meantime.
    """
    label: Resource = {"f:metadata": {"f:labels": {f"f:{OWNER_UID}": {}}}}
    entry = {"manager": axn.context.manager, "operation": "Apply", "apiVersion": kind.api_version}
    seen = {name: child["metadata"][name] for name in ("uid", "resourceVersion")}
    patch = {"metadata": {**seen, "managedFields": [{**entry, "fieldsType": "FieldsV1", "fieldsV1": label}]}}
    with axn.context.writing(kind, key_of(child)) as wrote:
        stored = await axn.context.client.merge_patch(kind, key_of(child), patch)
        wrote(stored["metadata"]["resourceVersion"])


def advise(refused: Invalid, kind: Kind) -> None:
    """Note how an object is replaced whose field cannot be changed, unless that would lose data."""
    if IMMUTABLE in refused.message and builtin(*kind.gvk) and kind.kind not in HOLDS_DATA:
        refused.add_note(f"{ADVICE}recreate=True would replace it, which deletes it and what it holds")


async def _recreate(axn: Reconcile[Any], kind: Owned, wanted: Resource, *, before: Resource) -> None:
    """Delete the object and create it again.

    Raises: before anything is deleted, `Invalid` if the API server would refuse the new object, and `Retry` if the
    owner changed; `Retry` while the old object still exists.
    """
    key, context = key_of(wanted), axn.context
    trial_name = f"{key.name[:TRIAL_NAME].rstrip('.-')}-{secrets.token_hex(4)}"
    trial = {**wanted, "metadata": {**wanted["metadata"], "name": trial_name}}
    try:
        await context.client.apply(kind, trial, manager=context.manager, force=False, dry_run=True)
    except ApiError as error:
        # The random name would make each failure a different one: a new status and a new event at each try.
        error.args = (str(error).replace(trial_name, key.name),)
        raise
    if not await owner_is_as_shown(axn):
        raise Retry(f"{identify(axn.identity)} changed before {identify(wanted)} was deleted to be recreated")
    with context.deleting(kind, key, before["metadata"]["uid"]):
        await context.client.delete(kind, key, uid=before["metadata"]["uid"])
    context.applied_records.pop((kind, key), None)
    if await _created_or_found(axn, kind, wanted) is not None:
        raise Retry(f"{identify(wanted)} is being deleted, to be recreated")
