"""Router: turns what the streams of one controller and kind show into queued keys.

It decides which key is queued (the object's own, or that of the owner of a changed child) and with which priority
(first adds of a list wait behind live changes), and recognises the events of the controller's own writes. A worker then
decides what to do about a key from the store and its record, never from the event.
"""

from __future__ import annotations

import asyncio
import logging
import time
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from operator import itemgetter
from types import MappingProxyType
from typing import Final, TypeAlias

from ..core.backoff import Backoff
from ..core.fights import Fights
from ..core.handled import handled_state
from ..core.objects import Item
from ..core.own_writes import OwnWrites
from ..core.queue import BACKOFF, Priority, Queue, Reason
from ..core.records import Records
from ..core.store import Delta
from ..errors import OptionError
from ..kinds import IndexFunction, Kind, ObjectNames, Owned, Related
from ..resource import OWNER_UID, Key, Resource
from .stream import Stream

# A stream usually shows an own write within milliseconds. Keys do not wait for a slow one for longer than this.
BARRIER_SECONDS: Final = 5.0
# How often to check whether the streams are in sync again.
IN_SYNC_SECONDS: Final = 2.0
# As controller-runtime's CacheSyncTimeout, after which that gives the controller up. Here reconciles begin; objects of
# streams that are not in sync count as unknown: nothing is pruned, and a creation asks the server first.
SETTLE_SECONDS: Final = 120.0
# Yield to the event loop after this many keys.
QUEUED_AT_ONCE: Final = 1_000
# Names of indexes; indexes of related objects are called by what makes them.
UID_INDEX: Final = ("uid",)
OWNER_INDEX: Final = OWNER_UID

log = logging.getLogger("bonny.engine.router")


def no_worker() -> None:
    """Stands for the worker while none takes keys."""


Name: TypeAlias = tuple[Stream, Key]
"""One object of one stream."""


class Router:
    """Queue, records and streams of one controller for one kind."""

    def __init__(
        self,
        *,
        primary: Sequence[Stream],
        owned: Mapping[Owned, Sequence[Stream]],
        related: Mapping[Related, Sequence[Stream]] = MappingProxyType({}),
        on_status: bool,
        backoff: Backoff = BACKOFF,
    ) -> None:
        """`on_status`: whether a change of only the status queues the object. `backoff`: waits after failures."""
        self.queue: Queue[Key] = Queue(backoff)
        self.records: Records[Stream] = Records()
        self.fights = Fights()
        self.wake: Callable[[], None] = no_worker
        """Set by the worker: called whenever a key may have become ready."""
        self.barrier_waits = 0
        """Times a key waited for its own write to appear in a stream."""

        self.barriers_missed = 0
        """Times a key gave up waiting for its own write to appear in a stream."""

        self._on_status = on_status
        self.primary = list(primary)
        """The streams of the handled objects."""
        self._owned = [(kind, stream) for kind, streams in owned.items() for stream in streams]
        self.owns = list(owned)
        self.owned_streams = [stream for _, stream in self._owned]
        """The streams of children."""
        self._related = [(kind, stream) for kind, streams in related.items() for stream in streams]
        self.related = list(related)
        self._followers: dict[Name, set[Key]] = {}
        """The keys that want the name of an object that is not theirs, or deleted it."""

        self.streams = list(dict.fromkeys([*self.primary, *(stream for _, stream in (*self._owned, *self._related))]))
        """Every stream, each once."""

        self._awaited: dict[Stream, list[tuple[int, Key]]] = {stream: [] for stream in self.streams}
        """The versions that keys wait for, in ascending order."""

        self._unsure: set[Key] = set()
        """Keys whose children were unknown because a stream of children was not in sync."""

        self.restoring: set[Stream] = set()
        """Streams of a restored server, until their next list is complete."""

        if self._owned:
            for stream in self.primary:
                stream.store.add_index(UID_INDEX, lambda item: (item.meta.uid,))
        for stream in self.owned_streams:
            stream.store.add_index(OWNER_INDEX, partial(_label, OWNER_UID))
        for kind, stream in self._related:
            for index in kind.indexes.values():
                function = partial(_label, index) if isinstance(index, str) else partial(_values, kind, index)
                stream.store.add_index(index, function)
            if kind.named_by is not None:
                for handled in self.primary:
                    handled.store.add_index(kind, partial(_named_by, kind, kind.named_by))
        for stream in self.streams:
            stream.subscribe(self)

    # --- for workers --------------------------------------------------------------------------------------------------

    def primary_stream(self, key: Key) -> Stream:
        """The primary stream that `key` belongs to."""
        for stream in self.primary:
            if stream.namespace in (None, key.namespace):
                return stream
        return self.primary[0]

    def item(self, key: Key) -> Item | None:
        return self.primary_stream(key).store.get(key)

    def streams_of(self, kind: Kind, key: Key) -> Iterator[Stream]:
        """The streams that can show the object `key` of an owned or related kind; owned kinds first."""
        for other, stream in (*self._owned, *self._related):
            if other.gvk == kind.gvk and stream.namespace in (None, key.namespace):
                yield stream

    def stream_of(self, kind: Kind, key: Key) -> Stream | None:
        """The first stream of `streams_of`."""
        return next(self.streams_of(kind, key), None)

    def owned_streams_of(self, gvk: tuple[str, str]) -> list[Stream]:
        """The streams of an owned kind; empty for other kinds."""
        return [stream for kind, stream in self._owned if kind.gvk == gvk]

    def indexes_of(self, gvk: tuple[str, str], name: str) -> dict[Stream, Hashable]:
        """The streams of an owned or related kind that have the index `name` (empty: all of them), each with the name
        of this index in its store; None for no index."""
        if not name:
            return {stream: None for kind, stream in (*self._owned, *self._related) if kind.gvk == gvk}
        related = [(kind, stream) for kind, stream in self._related if kind.gvk == gvk]
        return {stream: kind.indexes[name] for kind, stream in related if name in kind.indexes}

    def children(self, owner_uid: str, *, owner: Key) -> list[tuple[Owned, Item]] | None:
        """The objects with the label of this owner; None while a stream of an owned kind is not in sync.

        In that case `owner` is queued again once all are.
        """
        if not self._in_sync:
            if not self._unsure:
                self._ask()
            self._unsure.add(owner)
            return None
        return self.children_of(owner_uid)

    def children_of(self, owner_uid: str) -> list[tuple[Owned, Item]]:
        """The objects with the label of this owner, as the streams show them."""
        return [(kind, item) for kind, stream in self._owned for item in stream.store.items(OWNER_INDEX, owner_uid)]

    @property
    def _in_sync(self) -> bool:
        return all(stream.current for stream in self.owned_streams)

    def _ask(self) -> None:
        """Queue the keys that asked for their children, once those are known."""
        if not self._in_sync:
            asyncio.get_running_loop().call_later(IN_SYNC_SECONDS, self._ask)
            return
        for key in self._unsure:
            self._enqueue(key, Reason.CHILD, priority=Priority.LOW)
        self._unsure.clear()

    async def wait_until_synced(self) -> None:
        """Return once every stream is in sync or blocked, or `SETTLE_SECONDS` after the first primary stream is.

        So a failing API does not delay the objects of working ones for longer.
        """
        waits = {stream: asyncio.ensure_future(stream.wait_until_synced()) for stream in self.streams}
        try:
            await asyncio.wait([waits[stream] for stream in self.primary], return_when=asyncio.FIRST_COMPLETED)
            _, late = await asyncio.wait(waits.values(), timeout=SETTLE_SECONDS)
        finally:
            for wait in waits.values():
                wait.cancel()
        if late:
            names = ", ".join(str(stream) for stream, wait in waits.items() if wait in late)
            log.warning("reconciling although streams are not in sync", extra={"streams": names})

    # --- own writes ---------------------------------------------------------------------------------------------------

    def begin_write(self, kind: Kind, key: Key, *, owner: Key) -> None:
        """The reconcile of `owner` is about to write to `key`."""
        if self._stream_showing(kind, key, owner=owner) is not None:
            self._writes_of(owner).begin()

    def end_write(self, kind: Kind, key: Key, version: str | None, *, owner: Key) -> None:
        """The write to `key` made `version`, or failed (None)."""
        stream = self._stream_showing(kind, key, owner=owner)
        if stream is None:
            return
        writes = self._writes_of(owner)
        before = writes.awaited.get(stream)
        for reason in writes.end(stream, version, at=stream.version):
            self._enqueue(owner, reason)
        after = writes.awaited.get(stream)
        if after is not None and after != before:
            self._await_no_longer(stream, before, owner)
            insort(self._awaited[stream], (after, owner))
        self._release(owner)

    def begin_deletion(self, kind: Kind, key: Key, uid: str, *, owner: Key) -> None:
        """The reconcile of `owner` is about to delete `key`; the owner waits until the stream shows that."""
        stream = self._stream_showing(kind, key, owner=owner)
        shown = None if stream is None else stream.store.get(key)
        if stream is not None and shown is not None and shown.meta.uid == uid:
            self._writes_of(owner).deletions[stream, key] = uid
            self._followers.setdefault((stream, key), set()).add(owner)

    def cancel_deletion(self, kind: Kind, key: Key, *, owner: Key) -> None:
        """The deletion failed, or its outcome is unknown."""
        stream = self._stream_showing(kind, key, owner=owner)
        if stream is not None and self._writes_of(owner).deletions.pop((stream, key), None) is not None:
            self._unfollow((stream, key), owner)

    def park(self, key: Key, *, now: float) -> bool:
        """Give `key` back to the queue if a stream has not shown the writes of its last reconcile; returns whether.

        After `BARRIER_SECONDS` the key goes on with the stores as they are. Its writes then count as foreign when they
        are shown, so that it looks at them once more.
        """
        record = self.records.get(key)
        if record is None or (writes := record.writes) is None:
            return False
        if not writes.waits:
            self._forget_writes(key)
            return False
        if writes.parked_since is None:
            writes.parked_since = now
            self.barrier_waits += 1
        until = writes.parked_since + BARRIER_SECONDS
        if now < until:
            self.queue.park(key, until=until)
            return True
        self.barriers_missed += 1
        self._forget_writes(key)
        return False

    def contest(self, names: Iterable[tuple[Kind, Key]], *, owner: Key) -> None:
        """These foreign objects have names that `owner` wants: a change of one queues the owner.

        Replaces the owner's earlier contests, so a name that it no longer wants is forgotten.
        """
        wanted = frozenset((stream, key) for kind, key in names if (stream := self.stream_of(kind, key)) is not None)
        record = self.records.of(owner)
        given_up, record.contested = record.contested - wanted, wanted
        for name in given_up:
            self._unfollow(name, owner)
        for name in wanted:
            self._followers.setdefault(name, set()).add(owner)

    def forget(self, key: Key) -> None:
        """No object of this name exists any more, and its deletion is handled: drop everything known of it."""
        self._forget_writes(key)
        self.contest((), owner=key)
        self.records.forget(key)
        self._unsure.discard(key)
        self.queue.cancel_timer(key)

    def _writes_of(self, owner: Key) -> OwnWrites[Stream]:
        record = self.records.of(owner)
        record.writes = record.writes or OwnWrites()
        return record.writes

    def _await_no_longer(self, stream: Stream, version: int | None, key: Key) -> None:
        if version is not None:
            waiting = self._awaited[stream]
            del waiting[bisect_left(waiting, (version, key))]

    def _unfollow(self, name: Name, key: Key) -> None:
        """`key` has one reason less to follow this object."""
        record = self.records.of(key)
        if name not in record.contested and (record.writes is None or name not in record.writes.deletions):
            self._followers[name].discard(key)
            if not self._followers[name]:
                del self._followers[name]

    def _release(self, key: Key) -> None:
        """A write of `key` was answered or shown: let it go on if it waits for nothing else."""
        record = self.records.of(key)
        writes = record.writes
        if writes is not None and not writes.waits and writes.parked_since is not None:
            self.queue.unpark(key, now=time.monotonic())
            self.wake()
        if writes is not None and writes.over:
            record.writes = None

    def _forget_writes(self, key: Key) -> None:
        """`key` waits for nothing any more. A write that outlives its reconcile stays known until it is answered."""
        record = self.records.get(key)
        if record is None or (writes := record.writes) is None:
            return
        for stream, version in writes.awaited.items():
            self._await_no_longer(stream, version, key)
        deleted = list(writes.deletions)
        writes.forget_versions()
        for name in deleted:
            self._unfollow(name, key)
        if writes.over:
            record.writes = None

    async def requeue_all(self) -> None:
        """Let each object count as not yet reconciled, and queue it."""
        self.records.forget_reconciles()
        keys: list[Key] = []
        for stream in self.primary:
            keys += stream.store.keys()
        for number, key in enumerate(keys):
            if number % QUEUED_AT_ONCE == 0:
                await asyncio.sleep(0)
            self._enqueue(key, Reason.ADDED, priority=Priority.LOW)

    def remove_tombstones(self, *, before: float) -> None:
        """For a standby: the leader handles the deletions before this moment (monotonic seconds)."""
        for key in self.records.remove_tombstones_before(before):
            if self.item(key) is None:
                self.forget(key)
                self.queue.discard(key)

    def _stream_showing(self, kind: Kind, key: Key, *, owner: Key) -> Stream | None:
        """The stream that shows a write: the primary one for the handled object, else that of the owned kind.

        A controller may own objects of the kind that it handles. There, the first event of a child is a new object to
        reconcile, and not the echo of a write.
        """
        primary = self.primary_stream(key)
        own = key == owner and primary.kind.gvk == kind.gvk
        return primary if own else self.stream_of(kind, key)

    # --- for streams --------------------------------------------------------------------------------------------------

    def seen(self, stream: Stream, delta: Delta) -> None:
        """Queue the keys that a difference concerns."""
        deleters = self._deleters(stream, delta) if (stream, delta.key) in self._followers else set()
        # Changes that a first list shows wait behind live ones.
        priority = Priority.LIVE if delta.live or stream.synced else Priority.LOW
        if stream in self.primary:
            self._seen_primary(stream, delta, priority, own=delta.live and delta.key in deleters)
        if stream in self.owned_streams:
            self._seen_child(stream, delta, priority, deleters if delta.live else set())
        for kind, other in self._related:
            if other is stream:
                self._seen_related(kind, delta, priority)

    def advanced(self, stream: Stream) -> None:
        """The stream reached a newer version: release the keys that waited for it."""
        if stream in self.restoring:
            self.restoring.discard(stream)
            self.records.begin_epoch()
        waiting = self._awaited[stream]
        if waiting and waiting[0][0] <= stream.version:
            number = bisect_right(waiting, stream.version, key=itemgetter(0))
            shown, self._awaited[stream] = waiting[:number], waiting[number:]
            for _, key in shown:
                self._writes_of(key).passed(stream)
                self._release(key)

    def restored(self, stream: Stream) -> None:
        """The server's versions went backwards: forget what is remembered by version, and queue what is listed."""
        for key, record in self.records.items():
            if record.writes is not None:
                self._forget_writes(key)
        self.records.forget_versions()
        self.restoring.add(stream)

    def _deleters(self, stream: Stream, delta: Delta) -> set[Key]:
        """The keys that deleted the object, if this shows the deletion; they wait for it no longer."""
        name, deleters = (stream, delta.key), set()
        for key in list(self._followers[name]):
            writes = self.records.of(key).writes
            if writes is not None and writes.is_deletion(stream, delta.key, delta.old, delta.new):
                deleters.add(key)
                del writes.deletions[name]
                self._unfollow(name, key)
                self._release(key)
        return deleters

    def _seen_primary(self, stream: Stream, delta: Delta, priority: Priority, *, own: bool) -> None:
        old, new = delta.old, delta.new
        if old is not None and (new is None or new.meta.uid != old.meta.uid):
            self.records.add_tombstone(delta.key, old, now=time.monotonic())
            self._enqueue(delta.key, Reason.DELETED)
        if new is None or own:
            return
        if old is None:
            self._enqueue(delta.key, Reason.ADDED, priority=priority)
        elif stream in self.restoring:
            # A reconcile since the list began saw the object as it was before the restore.
            self.records.of(delta.key).handled = None
            self._enqueue(delta.key, Reason.CHANGED)
        elif not delta.live and self._rewritten(stream, delta):
            # A reason that counts even if a running reconcile marks this generation as handled.
            self.records.of(delta.key).handled = None
            self._enqueue(delta.key, Reason.CHILD)
        elif not self._is_own(delta.key, stream, delta, Reason.CHANGED) and self._differs(stream, old, new):
            self._enqueue(delta.key, Reason.CHANGED)

    def _is_own(self, key: Key, stream: Stream, delta: Delta, reason: Reason) -> bool:
        """Whether the event is that of a write of `key`; while it writes, that is known at its end."""
        if not delta.live or delta.new is None:
            return False  # a list can hide a foreign change in front of an own write
        record = self.records.get(key)
        if record is None or record.writes is None:
            return False
        return record.writes.is_own(stream, delta.new.meta.resource_version, reason)

    def _differs(self, stream: Stream, old: Item, new: Item) -> bool:
        """Whether a reconcile is needed: a status write by others must not cut a failing key's backoff short."""
        options = {"with_status": self._on_status, "metadata_only": stream.kind.metadata_only}
        return handled_state(old, **options) != handled_state(new, **options)

    def _rewritten(self, stream: Stream, delta: Delta) -> bool:
        """Whether a list shows different content under an equal generation, as after a restore from a backup."""
        old, new = delta.old, delta.new
        if old is None or new is None or old.meta.uid != new.meta.uid or stream.kind.metadata_only:
            return False
        before, after = (handled_state(item, with_status=False, trust_generation=False) for item in (old, new))
        return 0 < old.meta.generation == new.meta.generation and before.content != after.content

    def _seen_child(self, stream: Stream, delta: Delta, priority: Priority, deleters: set[Key]) -> None:
        # A name that became free concerns who wants it: one owner may prune a child that another wants.
        concerned = self._owners(delta) | self._followers.get((stream, delta.key), set())
        for key in concerned - deleters:
            if not self._is_own(key, stream, delta, Reason.CHILD):
                self._enqueue(key, Reason.CHILD, priority=priority)

    def _seen_related(self, kind: Related, delta: Delta, priority: Priority) -> None:
        concerned: set[Key] = set()
        if kind.keys is not None:
            namespaced = self.primary[0].kind.namespaced
            for item in filter(None, (delta.old, delta.new)):
                concerned.update(_keys(kind, kind.keys, item, namespaced=namespaced))
        else:
            for primary in self.primary:
                concerned |= primary.store.lookup(kind, str(delta.key))
        for key in concerned:
            if self.item(key) is not None:
                self._enqueue(key, Reason.RELATED, priority=priority)

    def _owners(self, delta: Delta) -> set[Key]:
        """The keys of handled objects that the child named as owners, before or after the change."""
        uids = {uid for item in (delta.old, delta.new) if item is not None for uid in _owner_uids(item)}
        return {key for uid in uids for stream in self.primary for key in stream.store.lookup(UID_INDEX, uid)}

    def _enqueue(self, key: Key, reason: Reason, *, priority: Priority = Priority.LIVE) -> None:
        self.queue.add(key, reason, now=time.monotonic(), priority=priority)
        self.wake()


def _owner_uids(item: Item) -> Iterable[str]:
    return [*_label(OWNER_UID, item), *(reference.uid for reference in item.meta.owner_references)]


def _label(label: str, item: Item) -> Iterable[str]:
    value = (item.meta.labels or {}).get(label)
    return () if value is None else (value,)


def _values(kind: Related, index: IndexFunction, item: Item) -> Iterable[str]:
    """The values of a related object in an index of a user."""
    try:
        returned = index(item.decode())
        values = list(returned)
        if isinstance(returned, str) or not all(isinstance(value, str) for value in values):
            raise OptionError("it returned something else than a list of strings")
    except BaseException:
        log.exception("a function of Related failed", extra={"kind": kind.resource, "object": str(item.key)})
        return ()
    return values


def _named_by(kind: Related, names: Callable[[Resource], ObjectNames], item: Item) -> Iterable[str]:
    return [str(key) for key in _keys(kind, names, item, namespaced=kind.namespaced)]


def _keys(kind: Related, names: Callable[[Resource], ObjectNames], item: Item, *, namespaced: bool) -> set[Key]:
    """The keys that a user's function returns for an object; a bare name is in the namespace of the object.

    Its errors are logged: they must not affect other objects or other controllers on the stream.
    """
    try:
        result = names(item.decode())
        if isinstance(result, str):
            raise OptionError("it returned a string: return a list of names")
        keys = {Key(item.meta.namespace, name) if isinstance(name, str) else Key(*name) for name in result}
        if not all(isinstance(part, str) for key in keys for part in key):
            raise OptionError("it returned something else than strings: return names, or pairs of namespace and name")
        return keys if namespaced else {Key("", key.name) for key in keys}
    except BaseException:
        log.exception("a function of Related failed", extra={"kind": kind.resource, "object": str(item.key)})
        return set()
