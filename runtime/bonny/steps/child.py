"""Child: one child of the handled object in one reconcile: as it is wanted, as the cluster has it, as it was applied.

Each request names the state that it was decided on: a creation is refused where an object of the name exists, a change
where another object took the name, a deletion where the object changed.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from ..client.errors import IMMUTABLE, Conflict, Invalid, NotFound
from ..core.fields import digest, overridden, owned_fields, same
from ..core.objects import Item, Meta, decode_item
from ..core.records import AppliedRecord, applied_record
from ..engine.reconcile import Reconcile
from ..errors import ADVICE, ApiError, ForeignObject, Retry
from ..kinds import Kind, Owned, builtin
from ..resource import MANAGED_BY, OWNER_UID, Key, Resource, identify, owners_of
from .live import TRIES, OwnedPart, gather_all, in_thread, owned_part, owner_is_as_shown, read, read_owner, report_fight

# etcd counts from 1 before anything is stored, so no object has this version: an apply that names it creates, or is
# refused with a conflict. There is no other "create only" for server-side apply.
NO_VERSION: Final = "1"

CREATED: Final = "Created"
UPDATED: Final = "Updated"
HELD: Final = "Held"
# Their deletion loses data. Custom resources may hold data, too.
HOLDS_DATA: Final = frozenset(
    ("PersistentVolumeClaim", "PersistentVolume", "Namespace", "CustomResourceDefinition", "StatefulSet")
)
# Leaves room for the random suffix of a dry run's name, also in names of at most 63 characters.
TRIAL_NAME: Final = 50


@dataclass(slots=True, eq=False)
class Child:
    """One child of the object of `axn`. It holds decoded objects: do not keep it."""

    axn: Reconcile[Any]
    kind: Owned
    key: Key

    wanted: Resource = field(default_factory=dict)
    """The object as it is sent; empty for a child that is only deleted."""

    adopt: bool = False
    recreate: bool = False

    shown: Item | None = None
    """The object as the watch shows it; None if it shows none."""

    live: Resource = field(default_factory=dict)
    """The object as it was last seen: shown, read, or the answer to a write; empty if there is none."""

    ours: OwnedPart = (None, {})
    """The fields of `live` that this controller owns."""

    drifted: bool = False
    """Whether another writer changed or deleted it: the wanted object did not change since the last apply."""

    @property
    def record(self) -> AppliedRecord | None:
        """The record of the last apply."""
        return self.axn.context.applied_records.get((self.kind, self.key))

    async def apply(self, *, hold: bool) -> str | None:
        """Create or change it if needed; with `hold` only if it drifted.

        Returns `CREATED` or `UPDATED`; `HELD` if it had to wait; None if nothing was written.
        Raises: `ForeignObject`; `Retry`; `ApiError`.
        """
        context, fights = self.axn.context, self.axn.context.fights
        self.shown, synced = context.observe(self.kind, self.key)
        await self._see({} if self.shown is None else self.shown.decode())
        if synced and self._is_as_wanted():
            return None
        self.drifted = self.record is not None and self.record.wanted == digest(self.wanted)
        if hold and not self.drifted:
            return HELD
        wait = fights.wait((self.kind, self.key), now=time.monotonic()) if self.drifted else 0.0
        if wait:
            self.axn.requeue_within(wait)
            return None
        if not self.live:
            # While the owner's stream is failing, the owner may be gone without our knowing, and the garbage collector
            # would delete the child again and again.
            if not context.up_to_date and await read_owner(self.axn) is None:
                raise Retry(f"{identify(self.axn.identity)} was deleted, but the watch has not reported it yet")
            if await self._create():
                return CREATED
            if self._is_as_wanted():
                return None
        self._must_be_ours()
        return await self._change()

    async def delete(self, seen: Meta, *, insist: bool) -> None:
        """Delete it in the version `seen`, unless it is under deletion; a changed object stays.

        With `insist` a changed object is read again, and deleted if it is still a child that this controller applied.
        Raises: `ApiError`; `Conflict` after three tries.
        """
        for tries_left in reversed(range(TRIES if insist else 1)):
            if seen.deletion_timestamp is not None:
                return
            try:
                with self.axn.context.deleting(self.kind, self.key, seen.uid):
                    await self.axn.client.delete(self.kind, self.key, uid=seen.uid, version=seen.resource_version)
            except Conflict:
                if insist and not tries_left:
                    raise
            except NotFound:
                return
            else:
                return
            live = await read(self.axn, self.kind, self.key) if tries_left else None
            if live is None or self.axn.uid not in owners_of(live):
                return
            if owned_fields(live, self.axn.context.manager) is None:
                return
            seen = decode_item(msgspec.json.encode(live)).meta

    async def note_correction(self) -> None:
        """After a write: if it undid repeated changes of another writer, report that writer.

        Once for each fight; managedFields of the object name them.
        """
        if not (self.drifted and self.axn.context.fights.corrected((self.kind, self.key), now=time.monotonic())):
            return
        by = f"an unknown writer {'deletes it' if self.shown is None else 'removes fields'}"
        if self.shown is not None:
            by = await in_thread(len(self.shown.raw), _rivals, self.wanted, self.shown, self.axn.context.manager) or by
        message = f"{identify(self.wanted)} is changed back each time it is corrected: {by}"
        report_fight(self.axn, message, related=self.wanted)

    # --- comparing ---

    async def _see(self, live: Resource) -> None:
        """The object is `live`: look up which of its fields are ours."""
        self.live, self.ours = live, await owned_part(live, self.axn.context.manager)

    async def _read(self) -> bool:
        """See the object uncached; returns whether it exists."""
        await self._see(await read(self.axn, self.kind, self.key) or {})
        return bool(self.live)

    def _is_as_wanted(self) -> bool:
        """Whether the live object has all wanted fields, and no field of ours that is no longer wanted."""
        if not self.live or self.live["metadata"].get("deletionTimestamp"):
            return False
        metadata, last = self.live["metadata"], self.record
        if last is not None and (last.uid, last.wanted) != (metadata["uid"], digest(self.wanted)):
            last = None  # of another object, or of other fields
        if self.kind.metadata_only:
            # There are no fields to compare: only the version that our apply made is known to be right.
            return last is not None and last.version == metadata["resourceVersion"]
        fields, held = self.ours
        if fields is None:
            return False
        return same(held, _managed_part(self.wanted)) or (last is not None and last.stored == digest(held))

    def _must_be_ours(self) -> None:
        if self.adopt or self.axn.uid in owners_of(self.live):
            return
        self.axn.context.wait_for_name(self.kind, self.key)
        if self.live["metadata"].get("deletionTimestamp"):
            remedy = "it is being deleted, and ours is created once it is gone"
        else:
            remedy = "rename the descendant, delete that object, or register it with adopt=True"
        raise ForeignObject(f"{identify(self.wanted)} exists and is not ours{self._belongs_to()}: {remedy}")

    def _belongs_to(self) -> str:
        """The owner of a foreign object, for the message."""
        metadata, axn = self.live["metadata"], self.axn
        for reference in metadata.get("ownerReferences") or ():
            earlier = "an earlier " if (reference["kind"], reference["name"]) == (axn.kind.kind, axn.key.name) else ""
            return f" (it belongs to {earlier}{reference['kind']} {reference['name']})"
        manager = (metadata.get("labels") or {}).get(MANAGED_BY)
        return f" (it is managed by {manager})" if manager else ""

    # --- writing ---

    async def _create(self) -> bool:
        """Create it, and return True; if an object of its name exists, see that object, and change nothing.

        Raises: `Conflict` if such an object appeared and vanished at the same moment.
        """
        # An object that we applied before and the stream does not show most likely exists. A read costs less than a
        # refused write.
        if self.record is not None and await self._read():
            return False
        try:
            with self.axn.context.writing(self.kind, self.key) as wrote:
                made = await self._send(force=False, resourceVersion=NO_VERSION)
                wrote(made["metadata"]["resourceVersion"])
        except Conflict:
            if not await self._read():
                raise
            return False
        await self._see(made)
        self.axn.context.applied_records[self.kind, self.key] = applied_record(self.wanted, self.live, self.ours[1])
        return True

    async def _change(self) -> str | None:
        """Apply it to the object that was seen; returns the outcome.

        The request carries the UID, so that the API server refuses it if another object took the name in the meantime.
        """
        before, ours, last = self.live["metadata"], self.ours, self.record
        if not before.get("managedFields") and self.axn.uid in owners_of(self.live):
            await self._claim()
        try:
            with self.axn.context.writing(self.kind, self.key) as wrote:
                await self._see(await self._send(force=True, uid=before["uid"]))
                version = self.live["metadata"]["resourceVersion"]
                if self.kind.metadata_only:
                    # By the version alone: if another writer made it, our apply came after it, so nothing is missed.
                    changed = version != before["resourceVersion"] and (last is None or last.version != version)
                else:
                    # If our fields did not change, nothing was written: the version is another writer's.
                    changed = not same(self.ours, ours)
                if changed:
                    wrote(version)
        except Invalid as refused:
            if not self.recreate:
                advise(refused, self.kind)
                raise
            await self._replace()
            return CREATED
        self.axn.context.applied_records[self.kind, self.key] = applied_record(self.wanted, self.live, self.ours[1])
        return UPDATED if changed else None

    async def _replace(self) -> None:
        """Delete the object that was seen, and create it again.

        Raises: before anything is deleted, `Invalid` if the API server would refuse the new object, and `Retry` if the
        owner changed; `Retry` while the old object still exists.
        """
        uid = self.live["metadata"]["uid"]
        trial_name = f"{self.key.name[:TRIAL_NAME].rstrip('.-')}-{secrets.token_hex(4)}"
        try:
            await self._send(force=False, dry_run=True, name=trial_name)
        except ApiError as error:
            # The random name would make each failure a different one: a new status and a new event at each try.
            error.args = (str(error).replace(trial_name, self.key.name),)
            raise
        if not await owner_is_as_shown(self.axn):
            owner, name = identify(self.axn.identity), identify(self.wanted)
            raise Retry(f"{owner} changed before {name} was deleted to be recreated")
        with self.axn.context.deleting(self.kind, self.key, uid):
            await self.axn.context.client.delete(self.kind, self.key, uid=uid)
        self.axn.context.applied_records.pop((self.kind, self.key), None)
        if not await self._create():
            raise Retry(f"{identify(self.wanted)} is being deleted, to be recreated")

    async def _claim(self) -> None:
        """Name our manager in a child of ours whose managedFields another client removed.

        Without any manager, the API server would note `before-first-apply` as another owner of all fields at the next
        apply, and then fields that are no longer wanted would never be removed. Which fields were ours is unknown:
        our label stands for them until the apply names all.
        Raises: `Conflict` if the child changed in the meantime.
        """
        label: Resource = {"f:metadata": {"f:labels": {f"f:{OWNER_UID}": {}}}}
        entry = {"manager": self.axn.context.manager, "operation": "Apply", "apiVersion": self.kind.api_version}
        seen = {name: self.live["metadata"][name] for name in ("uid", "resourceVersion")}
        patch = {"metadata": {**seen, "managedFields": [{**entry, "fieldsType": "FieldsV1", "fieldsV1": label}]}}
        with self.axn.context.writing(self.kind, self.key) as wrote:
            stored = await self.axn.context.client.merge_patch(self.kind, self.key, patch)
            wrote(stored["metadata"]["resourceVersion"])

    async def _send(self, *, force: bool, dry_run: bool = False, **metadata: str) -> Resource:
        """Apply the wanted object with that metadata besides; returns the answer."""
        sent = {**self.wanted, "metadata": {**self.wanted["metadata"], **metadata}}
        context = self.axn.context
        answer, _ = await context.client.apply(self.kind, sent, manager=context.manager, force=force, dry_run=dry_run)
        return answer


async def delete_children(axn: Reconcile[Any], children: Sequence[tuple[Owned, Item]], *, insist: bool) -> None:
    """Delete children as they are shown. Raises: as `Child.delete`."""
    await gather_all(lambda each: Child(axn, each[0], each[1].key).delete(each[1].meta, insist=insist), children)


def is_applied_by(child: Item, manager: str) -> bool:
    """Whether that controller applied it: another controller of the operator may have children of the same owner."""
    return owned_fields(child.decode(), manager) is not None


def advise(refused: Invalid, kind: Kind) -> None:
    """Note how an object is replaced whose field cannot be changed, unless that would lose data."""
    if IMMUTABLE in refused.message and builtin(*kind.gvk) and kind.kind not in HOLDS_DATA:
        refused.add_note(f"{ADVICE}recreate=True would delete it with its data and create it again")


def _managed_part(wanted: Resource) -> Resource:
    """The part of an applied object that managedFields records: all but its type and name."""
    metadata = {name: value for name, value in wanted["metadata"].items() if name not in ("name", "namespace")}
    rest = {name: value for name, value in wanted.items() if name not in ("apiVersion", "kind", "metadata")}
    return {**rest, "metadata": metadata}


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
