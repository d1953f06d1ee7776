"""Records: what a controller remembers of each key, so that it acts on every foreign change and on none of its own.

One `KeyRecord` per key, in memory, and one pure function, `decide`, that says what to do. Of a key is remembered:

- the object as the last successful reconcile saw and left it (`handled`), and as `Terminal` stopped it;
- its children as they were applied: equal means no request;
- tombstones: deleted objects of this name whose `delete` has not succeeded yet.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import msgspec

from ..kinds import Kind
from ..resource import PAUSED, RECONCILE_AT, Key
from .fields import digest
from .handled import Handled
from .objects import Item
from .queue import Reason

# Deletions within the few seconds that a stream can lag.
REMEMBERED_DELETIONS: Final = 1_000
OTHERS: Final = frozenset({Reason.CHILD, Reason.RELATED})
WAKING: Final = OTHERS | {Reason.REQUEUE, Reason.RESYNC}


class Action(StrEnum):
    """Why a reconcile runs: which change it handles."""

    ADD = "add"
    MODIFY = "modify"
    RECONCILE = "reconcile"
    FINALIZE = "finalize"
    DELETE = "delete"


class Tombstone(msgspec.Struct, frozen=True, gc=False):
    """A deleted object: its last state, and when we learned of the deletion (monotonic seconds).

    Not tracked by the garbage collector (`gc=False`): scanning tens of thousands would block the event loop.
    """

    item: Item
    since: float


@dataclass(frozen=True, slots=True)
class AppliedRecord:
    """The object that we applied, and how the server stored the fields that we own."""

    wanted: bytes
    """Digest of what we sent."""

    uid: str
    version: str
    stored: bytes
    """Digest of the answer, projected onto the fields that we own."""


def applied_record(wanted: Any, live: Mapping[str, Any], owned: Any) -> AppliedRecord:
    """The record of an apply: from the sent object, the answer, and the fields of the answer that we own."""
    metadata = live["metadata"]
    return AppliedRecord(digest(wanted), metadata["uid"], metadata["resourceVersion"], digest(owned))


@dataclass(slots=True)
class KeyRecord:
    """All that is remembered of the reconciles of one key."""

    handled: Handled | None = None
    """The object as the last successful reconcile saw and left it."""

    stopped: Handled | None = None
    """The object as `Terminal` stopped it."""

    applied: dict[tuple[Kind, Key], AppliedRecord] | None = None
    """Its children as they were applied, by kind and key; None for none."""

    tombstones: dict[str, Tombstone] | None = None
    """Deleted objects of this name by UID, oldest first; None for none."""


def decide(
    state: Handled, record: KeyRecord | None, reasons: frozenset[Reason], *, finalizers: frozenset[str]
) -> Action | None:
    """The action for an object in `state`; None for nothing to do. `finalizers` are the controller's own.

    stopped by `Terminal`, and unchanged  -> nothing, unless a child or a related object changed
    under deletion, our finalizer         -> finalize
    not yet reconciled under this UID     -> add
    differs from the last reconcile       -> modify
    a child changed, or a timer           -> reconcile
    else                                  -> nothing
    """
    handled, stopped = (None, None) if record is None else (record.handled, record.stopped)
    if stopped == state and not reasons & OTHERS:
        return None
    if state.deletion is not None:
        return None if finalizers.isdisjoint(state.finalizers) else Action.FINALIZE
    if handled is None or handled.uid != state.uid:
        return Action.ADD
    if handled != state:
        return Action.MODIFY
    return Action.RECONCILE if reasons & WAKING else None


def is_paused(annotations: Mapping[str, str] | None, action: Action) -> bool:
    """Whether the annotation lets the handler rest. A deletion is not held up."""
    resting = annotations is not None and annotations.get(PAUSED, "false") != "false"
    return resting and action not in (Action.FINALIZE, Action.DELETE)


def with_request(reasons: frozenset[Reason], state: Handled, record: KeyRecord) -> frozenset[Reason]:
    """`reasons`, and `requested` if the annotation for that has a value that was not handled yet.

    Of an object that was never handled no earlier value is known: there, each change counts.
    """
    requested = (state.annotations or {}).get(RECONCILE_AT)
    if requested is None:
        return reasons
    known = None if record.handled is None else record.handled.annotations or {}
    is_new = Reason.CHANGED in reasons if known is None else requested != known.get(RECONCILE_AT)
    return reasons | {Reason.REQUESTED} if is_new else reasons


class Records(dict[Key, KeyRecord]):
    """The records of one controller for one kind."""

    def __init__(self) -> None:
        self._deleted: dict[str, None] = {}
        self.epoch = 0
        """Increased when the server's versions went backwards: earlier decisions are invalid then."""

    def of(self, key: Key) -> KeyRecord:
        """The record of `key`, made if it has none."""
        record = self.get(key)
        if record is None:
            record = self[key] = KeyRecord()
        return record

    def forget(self, key: Key) -> None:
        """No object of this name exists any more; deletions of earlier ones are still due."""
        record = self.pop(key, None)
        if record is not None and record.tombstones:
            self[key] = KeyRecord(tombstones=record.tombstones)

    def forget_reconciles(self) -> None:
        """Each object counts as not yet reconciled."""
        for record in self.values():
            record.handled = record.stopped = record.applied = None

    def forget_versions(self) -> None:
        """The server's versions went backwards: what is remembered of reconciles is invalid."""
        self.begin_epoch()
        self.forget_reconciles()
        self._deleted.clear()

    def begin_epoch(self) -> None:
        """Reconciles that are under way are not remembered."""
        self.epoch += 1
        for record in self.values():
            record.stopped = None

    # --- tombstones ---

    def add_tombstone(self, key: Key, item: Item, *, now: float) -> None:
        """The object `key` is gone and its `delete` is due. A UID that already has a tombstone keeps its time."""
        record = self.of(key)
        record.tombstones = record.tombstones or {}
        earlier = record.tombstones.get(item.meta.uid)
        record.tombstones[item.meta.uid] = Tombstone(item, earlier.since if earlier is not None else now)

    def tombstones(self, key: Key) -> tuple[Tombstone, ...]:
        """The tombstones of `key`, oldest first."""
        record = self.get(key)
        return () if record is None or record.tombstones is None else tuple(record.tombstones.values())

    def remove_tombstone(self, key: Key, stone: Tombstone) -> None:
        """The `delete` of this UID succeeded, was given up, or was never due. A newer tombstone of the UID stays."""
        record = self.of(key)
        if record.tombstones is not None and record.tombstones.get(stone.item.meta.uid) is stone:
            del record.tombstones[stone.item.meta.uid]

    def remove_tombstones_before(self, moment: float) -> list[Key]:
        """Remove tombstones from before `moment`; returns the keys that have none left."""
        emptied = []
        for key, record in self.items():
            if record.tombstones:
                record.tombstones = {uid: stone for uid, stone in record.tombstones.items() if stone.since >= moment}
                if not record.tombstones:
                    emptied.append(key)
        return emptied

    def mark_deleted(self, uid: str) -> None:
        """The server confirmed that `uid` is gone, and its `delete` is done; a lagging stream may still show it."""
        self._deleted[uid] = None
        if len(self._deleted) > REMEMBERED_DELETIONS:
            del self._deleted[next(iter(self._deleted))]

    def is_deleted(self, uid: str) -> bool:
        """Whether `uid` was marked as deleted."""
        return uid in self._deleted
