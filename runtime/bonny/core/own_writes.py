"""Own writes: what keys wrote and deleted, until the streams have shown it, and the names that keys follow.

Rules, each with a test of its name in tests/unit/core/test_own_writes.py:
- An event is own if a write of this key made exactly its version, whether it comes before or after the answer.
- While a write is under way, each event of this key's objects is held; when the last write is answered, the foreign
  events count. So a foreign change in front of, between or behind own writes is noticed.
- The key waits for each stream until that is at the newest version that the key wrote there, and for each deletion.
- A key that waits is parked for at most 5 s. Then it forgets its writes; if they are shown later, they are foreign.
- A key follows each name that it wants or deletes, whichever object has it.

Versions never serve to drop older events: events often come before the answer to the write, and a foreign change can
hide behind our own.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Callable, Collection, Set
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Final, Protocol, TypeAlias

from ..kinds import Kind
from ..resource import Key
from .objects import Item, version_number
from .queue import Queue, Reason
from .store import Delta, Store

# A stream usually shows an own write within milliseconds. Keys do not wait for a slow one for longer than this.
BARRIER_SECONDS: Final = 5.0


class Shows(Protocol):
    """A stream: whatever shows objects in the order of their versions."""

    store: Store

    @property
    def version(self) -> int:
        """The version that its store has reached."""


Name: TypeAlias = tuple[Shows, Key, str]
"""An object of a stream: of this UID if the key deleted it; empty: whichever has the name, because the key wants it."""


@dataclass(slots=True)
class _Writes:
    """The memory of one key; it exists only while it is not empty."""

    pending: int = 0
    """Writes that are under way."""

    made: set[tuple[Shows, str]] = field(default_factory=set)
    """Versions that writes made and no event has shown."""

    held: dict[tuple[Shows, str], Reason] = field(default_factory=dict)
    """Versions of events that came while a write was under way, with what they mean if they are foreign."""

    awaited: dict[Shows, int] = field(default_factory=dict)
    """The newest version that the key wrote, by the stream that has to show it."""

    names: frozenset[Name] = frozenset()
    """Names that the key wants, and objects that it deleted: the answer to a DELETE has no version to wait for."""

    parked_since: float | None = None
    """When the key began to wait (monotonic seconds)."""

    @property
    def waits(self) -> bool:
        """Whether a stream has yet to show what the key wrote or deleted."""
        return bool(self.awaited) or any(uid for _, _, uid in self.names)


class OwnWrites:
    """See the module. Of all keys of one workqueue."""

    def __init__(
        self,
        queue: Queue[Key],
        shown_by: Callable[[Kind, Key, Key], Shows | None],
        enqueue: Callable[[Key, Reason], object],
        wake: Callable[[], object],
    ) -> None:
        """`shown_by`: the stream that shows an object of this kind and key that an owner writes. `wake` is called when
        a parked key is ready."""
        self.waits = 0
        """Times a key waited for its own write to appear in a stream."""

        self.missed = 0
        """Times a key gave up waiting for its own write to appear in a stream."""

        self._queue = queue
        self._shown_by = shown_by
        self._enqueue = enqueue
        self._wake = wake
        self._keys: defaultdict[Key, _Writes] = defaultdict(_Writes)
        self._awaited: defaultdict[Shows, list[tuple[int, Key]]] = defaultdict(list)
        """The versions that keys wait for, in ascending order."""

        self._followers: defaultdict[Name, set[Key]] = defaultdict(set)

    # --- what a reconcile does ---

    def begin_write(self, *, owner: Key) -> None:
        """The reconcile of `owner` is about to write."""
        self._keys[owner].pending += 1

    def end_write(self, kind: Kind, key: Key, version: str | None, *, owner: Key) -> None:
        """The write to `key` made `version`, or failed (None). The end of the last write queues its owner for the held
        events that are foreign.

        Give only a version that the write itself made: the answer to a write that changed nothing has the version of
        another writer's change.
        """
        # A stream may have come, or been closed, since the write began.
        stream, writes = self._shown_by(kind, key, owner), self._keys[owner]
        writes.pending -= 1
        if stream is not None and version is not None:
            number = version_number(version)
            # The stream is past this version and has not shown it: it was part of a list.
            if writes.held.pop((stream, version), None) is None and not 0 < number <= stream.version:
                writes.made.add((stream, version))
            if number > max(stream.version, writes.awaited.get(stream, 0)):
                self._await_no_longer(stream, owner)
                writes.awaited[stream] = number
                insort(self._awaited[stream], (number, owner))
        if not writes.pending:
            for reason in writes.held.values():
                self._enqueue(owner, reason)
            writes.held.clear()
        self._release(owner)

    def begin_deletion(self, kind: Kind, key: Key, uid: str, *, owner: Key) -> None:
        """The reconcile of `owner` is about to delete `key`; the owner waits until the stream shows that."""
        stream = self._shown_by(kind, key, owner)
        shown = None if stream is None else stream.store.get(key)
        if stream is not None and shown is not None and shown.meta.uid == uid:
            self._follow(owner, self._keys[owner].names | {(stream, key, uid)})

    def cancel_deletion(self, kind: Kind, key: Key, uid: str, *, owner: Key) -> None:
        """The deletion failed, or its outcome is unknown."""
        if owner in self._keys and (stream := self._shown_by(kind, key, owner)) is not None:
            self._follow(owner, self._keys[owner].names - {(stream, key, uid)})

    def want(self, names: Collection[tuple[Kind, Key]], *, owner: Key) -> None:
        """Foreign objects have these names, and `owner` wants them: it follows these names, and no earlier ones."""
        if names or owner in self._keys:
            found = ((self._shown_by(kind, key, owner), key) for kind, key in names)
            wanted = {(stream, key, "") for stream, key in found if stream is not None}
            self._follow(owner, wanted.union(name for name in self._keys[owner].names if name[2]))

    # --- what a stream shows ---

    def followers(self, stream: Shows, delta: Delta) -> set[Key]:
        """The keys that want the name of this object, or deleted it."""
        uids = ("",) if delta.old is None else ("", delta.old.meta.uid)
        return {key for uid in uids for key in self._followers.get((stream, delta.key, uid), ())}

    def is_own(self, key: Key, stream: Shows, delta: Delta, reason: Reason) -> bool:
        """Ask once per difference and key: whether it is, or may turn out to be, that of a write or deletion of `key`.

        A list shows no event: it can hide a foreign change in front of an own write.
        """
        writes = self._keys.get(key)
        if writes is None:
            return False
        old, new = delta.old, delta.new
        if old is not None and (name := (stream, delta.key, old.meta.uid)) in writes.names and _ends(old, new):
            self._follow(key, writes.names - {name})
            return delta.live
        if new is None or not delta.live:
            return False
        event = stream, new.meta.resource_version
        if event in writes.made:
            writes.made.remove(event)
            self._release(key)
            return True
        if writes.pending:
            writes.held[event] = reason
        return writes.pending > 0

    def advanced(self, stream: Shows) -> None:
        """The stream reached a newer version: release the keys that waited for it."""
        waiting = self._awaited.get(stream)
        if waiting and waiting[0][0] <= stream.version:
            number = bisect_right(waiting, stream.version, key=itemgetter(0))
            shown, self._awaited[stream] = waiting[:number], waiting[number:]
            for _, key in shown:
                writes = self._keys[key]
                del writes.awaited[stream]
                # Writes that had no event were part of a list.
                writes.made = {made for made in writes.made if made[0] is not stream}
                self._release(key)

    def close(self, stream: Shows) -> None:
        """The stream shows nothing more: no key waits for it."""
        for _, key in self._awaited.pop(stream, ()):
            del self._keys[key].awaited[stream]
            self._release(key)

    # --- whether a key waits ---

    def park(self, key: Key, *, now: float) -> bool:
        """Give `key` back to the queue if a stream has not shown the writes of its last reconcile; returns whether.

        After `BARRIER_SECONDS` the key goes on with the stores as they are, and looks once more at what it wrote.
        """
        writes = self._keys.get(key)
        if writes is not None and writes.waits:
            if writes.parked_since is None:
                writes.parked_since = now
                self.waits += 1
            until = writes.parked_since + BARRIER_SECONDS
            if now < until:
                self._queue.park(key, until=until)
                return True
            self.missed += 1
        self.forget_writes(key)
        return False

    def forget(self, key: Key) -> None:
        """No object of this name exists any more."""
        self.want((), owner=key)
        self.forget_writes(key)

    def forget_writes(self, key: Key) -> None:
        """`key` waits for nothing any more. A write that outlives its reconcile stays known until it is answered."""
        writes = self._keys.get(key)
        if writes is not None:
            for stream in list(writes.awaited):
                self._await_no_longer(stream, key)
            writes.made.clear()
            writes.parked_since = None
            self._follow(key, {name for name in writes.names if not name[2]})

    def forget_all_writes(self) -> None:
        """The server's versions went backwards: versions of earlier writes mean something else now."""
        for key in list(self._keys):
            self.forget_writes(key)

    def _release(self, key: Key) -> None:
        """Let `key` go on if it waits for nothing else; drop what is known of it if there is nothing to remember."""
        writes = self._keys[key]
        if not writes.waits:
            if writes.parked_since is not None:
                self._queue.unpark(key)
                self._wake()
            if not (writes.pending or writes.made or writes.held or writes.names):
                del self._keys[key]

    def _await_no_longer(self, stream: Shows, key: Key) -> None:
        version = self._keys[key].awaited.pop(stream, None)
        if version is not None:
            waiting = self._awaited[stream]
            del waiting[bisect_left(waiting, (version, key))]

    def _follow(self, key: Key, names: Set[Name]) -> None:
        """`key` follows these names from now on, and no others."""
        writes = self._keys[key]
        for name in names - writes.names:
            self._followers[name].add(key)
        for name in writes.names - names:
            self._followers[name].discard(key)
            if not self._followers[name]:
                del self._followers[name]
        writes.names = frozenset(names)
        self._release(key)


def _ends(old: Item, new: Item | None) -> bool:
    """Whether `old` is gone, or under deletion from now on."""
    return new is None or new.meta.uid != old.meta.uid or new.meta.deletion_timestamp != old.meta.deletion_timestamp
