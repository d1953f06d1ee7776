"""Ledger: what a controller remembers of its own work, so that it acts on every foreign change and on none of its own.

Four kinds of entries, all in memory and about the keys of one kind:

- handled states: the object as the last successful reconcile saw it; equal means nothing to do.
- tombstones: deleted objects whose `delete` has not succeeded yet.
- applied records: the fields that we own of an applied descendant; equal means no request.
- own writes: versions that our writes made, our deletions, and the keys that wait for a stream to show them.

Versions are used to wait, and to recognise exactly the event of an own write; never to drop older events: events often
come before the answer to the write, and a foreign change can hide behind our own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import Any, Final

import msgspec

from ..errors import InvalidObject
from ..kinds import Kind
from ..resource import Key
from .fields import digest
from .objects import UNREADABLE, Item, OwnerRef, version_number

# Not part of the content: bookkeeping, parts with a field of their own, and the type, which a list leaves out.
NO_CONTENT: Final = frozenset({"apiVersion", "kind", "metadata", "status"})


class Handled(msgspec.Struct, frozen=True, gc=False):
    """The state of an object as a reconcile saw it, to detect changes. One per object, so it is kept small."""

    uid: str
    content: int | bytes
    """The generation where the server keeps one, else a hash of the object without status and bookkeeping."""

    labels: Mapping[str, str] | None
    annotations: Mapping[str, str] | None
    finalizers: tuple[str, ...]
    owners: tuple[OwnerRef, ...]
    deletion: str | None
    status: bytes = b""
    """A hash of the status, for controllers that ask for status changes."""


def handled_state(
    item: Item, *, with_status: bool, metadata_only: bool = False, trust_generation: bool = True
) -> Handled:
    """The state of `item` for comparison. Does not raise: it is asked for each object that a stream shows.

    For metadata-only objects and objects that cannot be decoded, each new version counts as new content.
    """
    meta = item.meta
    content: int | bytes = meta.generation if trust_generation else 0
    status = b""
    if metadata_only:
        # There is no status to compare either.
        content = content if content and not with_status else meta.resource_version.encode()
    elif not content or with_status:
        try:
            decoded = item.decode()
            status = digest(decoded.get("status")) if with_status else b""
            if not content:
                content = digest({name: value for name, value in decoded.items() if name not in NO_CONTENT})
        except (InvalidObject, *UNREADABLE):
            content = meta.resource_version.encode()
    return Handled(
        uid=meta.uid,
        content=content,
        labels=meta.labels,
        annotations=meta.annotations,
        finalizers=meta.finalizers,
        owners=meta.owner_references,
        deletion=meta.deletion_timestamp,
        status=status,
    )


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


# Upper bound for deletions within the few seconds that a stream can lag.
REMEMBERED_ENDS: Final = 1_000


class Ledger:
    """The memory of one controller for one kind."""

    def __init__(self) -> None:
        self.handled: dict[Key, Handled] = {}
        self.applied_records: dict[Key, dict[tuple[Kind, Key], AppliedRecord]] = {}
        """By handled key, then by kind and key of the descendant."""

        self._tombstones: dict[Key, dict[str, Tombstone]] = {}
        self._deleted: dict[str, None] = {}
        self.epoch = 0
        """Increased when the server's versions went backwards: earlier decisions are invalid then."""

    # --- tombstones ---------------------------------------------------------------------------------------------------

    def add_tombstone(self, key: Key, item: Item, *, now: float) -> None:
        """The object `key` is gone and its `delete` is due. A UID that already has a tombstone keeps its time."""
        stones = self._tombstones.setdefault(key, {})
        earlier = stones.get(item.meta.uid)
        stones[item.meta.uid] = Tombstone(item, earlier.since if earlier is not None else now)

    def tombstones(self, key: Key) -> tuple[Tombstone, ...]:
        """The tombstones of `key`, oldest first."""
        return tuple(self._tombstones.get(key, {}).values())

    def remove_tombstone(self, key: Key, stone: Tombstone) -> None:
        """The `delete` of this UID succeeded, was given up, or was never due. A newer tombstone of the UID stays."""
        stones = self._tombstones.get(key, {})
        if stones.get(stone.item.meta.uid) is stone:
            del stones[stone.item.meta.uid]
        if not stones:
            self._tombstones.pop(key, None)

    def remove_tombstones_before(self, moment: float) -> list[Key]:
        """Remove tombstones from before `moment`; returns the keys that have none left."""
        for key, stones in self._tombstones.items():
            self._tombstones[key] = {uid: stone for uid, stone in stones.items() if stone.since >= moment}
        empty = [key for key, stones in self._tombstones.items() if not stones]
        for key in empty:
            del self._tombstones[key]
        return empty

    def mark_deleted(self, uid: str) -> None:
        """The server confirmed that `uid` is gone, and its `delete` is done; a lagging stream may still show it."""
        self._deleted[uid] = None
        if len(self._deleted) > REMEMBERED_ENDS:
            del self._deleted[next(iter(self._deleted))]

    def is_deleted(self, uid: str) -> bool:
        """Whether `uid` was marked as deleted."""
        return uid in self._deleted

    def drop(self, key: Key) -> None:
        """The object is gone and its deletion is handled."""
        self.handled.pop(key, None)
        self.applied_records.pop(key, None)

    def forget_versions(self) -> None:
        """The server's versions went backwards: what we remember of our writes is invalid."""
        self.epoch += 1
        self.handled.clear()
        self.applied_records.clear()
        self._deleted.clear()


# Fewer void entries than this are not worth a clean-up.
SLACK: Final = 64
# Far more than one reconcile writes; a bound for the case that a stream never shows our writes.
REMEMBERED_WRITES: Final = 8


@dataclass(slots=True)
class _Writes:
    """The writes to one object: how many are under way, the versions they made, the events seen meanwhile."""

    pending: int = 0
    versions: list[str] = field(default_factory=list)
    held: list[str] = field(default_factory=list)


class OwnWrites:
    """Recognises the events of own writes on one stream by their exact version, in whichever order they come.

    Give it only versions that the write itself made: the answer to a write that changed nothing carries the version of
    another writer's change.
    """

    def __init__(self) -> None:
        self._writes: dict[Key, _Writes] = {}
        self._order: list[tuple[int, Key]] = []
        self._shown = 0

    def __len__(self) -> int:
        return len(self._writes)

    def forget_versions(self) -> None:
        """The server's versions went backwards: forget all versions. Writes in progress stay known."""
        self._shown = 0
        self._order.clear()
        self._writes = {key: _Writes(writes.pending) for key, writes in self._writes.items() if writes.pending}

    def begin(self, key: Key) -> None:
        """A write to `key` is about to be sent."""
        self._writes.setdefault(key, _Writes()).pending += 1

    def end(self, key: Key, version: str | None) -> list[str]:
        """The write was answered with `version`, or failed (None).

        Returns: the versions of events that came in the meantime and turned out to be foreign.
        """
        writes = self._writes[key]
        writes.pending -= 1
        if version is not None:
            if version in writes.held:
                writes.held.remove(version)
            elif not 0 < version_number(version) <= self._shown:
                writes.versions = [*writes.versions, version][-REMEMBERED_WRITES:]
                if version_number(version):
                    heappush(self._order, (version_number(version), key))
                    self._rebuild()
        if writes.pending:
            return []
        foreign, writes.held = writes.held, []
        if not writes.versions:
            del self._writes[key]
        return foreign

    def drop(self, key: Key) -> None:
        """The object is gone: no events of writes to it will come."""
        writes = self._writes.get(key)
        if writes is not None and not writes.pending:
            del self._writes[key]

    def is_own(self, key: Key, version: str) -> bool:
        """Ask once per event of the watch: whether it is, or may turn out to be, the echo of an own write."""
        number = version_number(version)
        self._shown = max(self._shown, number)
        writes = self._writes.get(key)
        if writes is None:
            return False
        own = version in writes.versions
        # Events come in order: earlier writes will not be shown any more.
        writes.versions = [known for known in writes.versions if known != version and version_number(known) >= number]
        if not own and writes.pending:
            writes.held.append(version)
            own = True
        if not writes.versions and not writes.pending:
            del self._writes[key]
        return own

    def passed(self, *, at: int) -> None:
        """The stream is at the version `at`: writes up to there that had no event were part of a list."""
        self._shown = max(self._shown, at)
        while self._order and self._order[0][0] <= at:
            _, key = heappop(self._order)
            writes = self._writes.get(key)
            if writes is None:
                continue
            writes.versions = [known for known in writes.versions if not 0 < version_number(known) <= at]
            if not writes.versions and not writes.pending:
                del self._writes[key]

    def _rebuild(self) -> None:
        """Drop void places, once they may be more than half of all: a stream that is refused shows nothing."""
        if len(self._order) > 2 * REMEMBERED_WRITES * len(self._writes) + SLACK:
            known = ((key, version) for key, writes in self._writes.items() for version in writes.versions)
            self._order = sorted((version_number(version), key) for key, version in known)


class Barriers:
    """Keys that wait until one stream shows a version that they wrote."""

    def __init__(self) -> None:
        self._wanted: dict[Key, int] = {}
        self._order: list[tuple[int, Key]] = []

    def __len__(self) -> int:
        return len(self._wanted)

    def require(self, key: Key, version: int) -> None:
        """`key` must not be reconciled before the stream is at `version`."""
        if version > self._wanted.get(key, 0):
            self._wanted[key] = version
            heappush(self._order, (version, key))
            self._rebuild()

    def blocks(self, key: Key, *, at: int) -> bool:
        """Whether `key` still waits while the stream is at the version `at`."""
        return self._wanted.get(key, 0) > at

    def met(self, *, at: int) -> list[Key]:
        """Remove and return the keys whose wait is over."""
        met = []
        while self._order and self._order[0][0] <= at:
            version, key = heappop(self._order)
            # A key that wrote again since waits for its newer version.
            if self._wanted.get(key) == version:
                del self._wanted[key]
                met.append(key)
        return met

    def drop(self, key: Key) -> int:
        """Stop waiting for `key`. Returns the version that it waited for; 0 for none."""
        wanted = self._wanted.pop(key, 0)
        self._rebuild()
        return wanted

    def _rebuild(self) -> None:
        """Drop void places, once they are more than half of all."""
        if len(self._order) > 2 * len(self._wanted) + SLACK:
            self._order = [(version, key) for key, version in self._wanted.items()]
            heapify(self._order)


class Ends:
    """Own deletions that one stream has not shown yet; the answer to a DELETE has no version to wait for."""

    def __init__(self) -> None:
        self._expected: dict[Key, tuple[str, Key]] = {}
        self._waiting: Counter[Key] = Counter()

    def __len__(self) -> int:
        return len(self._expected)

    def expect(self, key: Key, uid: str, *, owner: Key) -> None:
        """The reconcile of `owner` is about to delete `key`."""
        self.cancel(key)
        self._expected[key] = (uid, owner)
        self._waiting[owner] += 1

    def cancel(self, key: Key) -> Key | None:
        """`key` was deleted, or will not be; returns the owner that waited for it."""
        _, owner = self._expected.pop(key, ("", None))
        if owner is not None:
            self._waiting[owner] -= 1
            if not self._waiting[owner]:
                del self._waiting[owner]
        return owner

    def blocks(self, owner: Key) -> bool:
        return owner in self._waiting

    def drop(self, owner: Key) -> None:
        """Stop waiting for the deletions of `owner`."""
        if self.blocks(owner):
            for key in [key for key, (_, waiting) in self._expected.items() if waiting == owner]:
                self.cancel(key)

    def is_end(self, key: Key, old: Item | None, new: Item | None) -> bool:
        """Whether `key` went from `old` to `new` because we deleted it: gone, or under deletion from now on."""
        if old is None or self._expected.get(key, ("",))[0] != old.meta.uid:
            return False
        gone = new is None or new.meta.uid != old.meta.uid
        return gone or (new is not None and new.meta.deletion_timestamp != old.meta.deletion_timestamp)


def applied_record(wanted: Any, live: Mapping[str, Any], owned: Any) -> AppliedRecord:
    """The record of an apply: from the sent object, the answer, and the fields of the answer that we own."""
    metadata = live["metadata"]
    return AppliedRecord(digest(wanted), metadata["uid"], metadata["resourceVersion"], digest(owned))
