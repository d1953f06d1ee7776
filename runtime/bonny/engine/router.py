"""Router: turns what the streams of one controller and kind show into queued keys.

It decides which key is queued (the object's own, or that of the owner of a changed child) and with which priority
(first adds of a list wait behind live changes). A worker decides from the store and the record, never from the event.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Final

from ..core.backoff import Backoff
from ..core.fights import Fights
from ..core.handled import handled_state, is_rewritten
from ..core.objects import Item
from ..core.own_writes import OwnWrites
from ..core.queue import QUEUE_BACKOFF, Priority, Queue, Reason
from ..core.records import Records
from ..core.store import Delta
from ..errors import OptionError
from ..kinds import IndexFunction, Kind, ObjectNames, Owned, Related
from ..resource import OWNER_UID, Key, Resource
from .stream import Stream

# How often to check whether the streams are in sync again.
IN_SYNC_SECONDS: Final = 2.0
# As controller-runtime's CacheSyncTimeout. Then reconciles begin; objects of streams that are not in sync count as
# unknown: nothing is pruned, and a creation asks the server first.
SETTLE_SECONDS: Final = 120.0
# Yield to the event loop after this many keys.
QUEUED_AT_ONCE: Final = 1_000
# Names of indexes; indexes of related objects are called by what makes them.
UID_INDEX: Final = ("uid",)
OWNER_INDEX: Final = OWNER_UID

log = logging.getLogger("bonny.engine.router")


def no_worker() -> None:
    """Stands for the worker while none takes keys."""


class Router:
    """Queue, records and streams of one controller for one kind."""

    def __init__(
        self,
        *,
        primary: Sequence[Stream],
        owned: Mapping[Owned, Sequence[Stream]],
        related: Mapping[Related, Sequence[Stream]] = MappingProxyType({}),
        on_status: bool,
        backoff: Backoff = QUEUE_BACKOFF,
    ) -> None:
        """`on_status`: whether a change of only the status queues the object. `backoff`: waits after failures."""
        self.queue: Queue[Key] = Queue(backoff)
        self.records = Records()
        # The worker sets `wake` later.
        self.own_writes = OwnWrites(self.queue, self._stream_showing, self._enqueue, lambda: self.wake())  # noqa: PLW0108
        self.fights = Fights()
        self.wake: Callable[[], None] = no_worker
        """Set by the worker: called whenever a key may have become ready."""

        self._on_status = on_status
        self.primary = list(primary)
        """The streams of the handled objects."""
        self._owned = [(kind, stream) for kind, streams in owned.items() for stream in streams]
        self.owns = list(owned)
        self.owned_streams = [stream for _, stream in self._owned]
        """The streams of children."""
        self._related = [(kind, stream) for kind, streams in related.items() for stream in streams]
        self.related = list(related)

        self.streams = list(dict.fromkeys([*self.primary, *(stream for _, stream in (*self._owned, *self._related))]))
        """Every stream, each once."""

        self._keys_waiting_for_sync: set[Key] = set()
        """Keys whose children were unknown because a stream of children was not in sync."""

        self.restoring: set[Stream] = set()
        """Streams of a restored server, until their next list is complete."""

        self.indexes = Indexes(self.primary, self._owned, self._related)
        for stream in self.streams:
            stream.subscribe(self)

    # --- for workers ---

    def primary_stream(self, key: Key) -> Stream:
        """The primary stream that `key` belongs to."""
        for stream in self.primary:
            if stream.namespace in (None, key.namespace):
                return stream
        return self.primary[0]

    def item(self, key: Key) -> Item | None:
        """The object in the store."""
        return self.primary_stream(key).store.get(key)

    def streams_of(self, kind: Kind, key: Key) -> Iterator[Stream]:
        """The streams that can show the object `key` of an owned or related kind; owned kinds first."""
        for other, stream in (*self._owned, *self._related):
            if other.gvk == kind.gvk and stream.namespace in (None, key.namespace):
                yield stream

    def stream_of(self, kind: Kind, key: Key) -> Stream | None:
        """The first stream of `streams_of`."""
        return next(self.streams_of(kind, key), None)

    def children(self, owner_uid: str, *, owner: Key) -> list[tuple[Owned, Item]] | None:
        """The objects with the label of this owner; None while a stream of an owned kind is not in sync.

        In that case `owner` is queued again once all are.
        """
        if not self._in_sync:
            if not self._keys_waiting_for_sync:
                self._requeue_when_synced()
            self._keys_waiting_for_sync.add(owner)
            return None
        return self.children_of(owner_uid)

    def children_of(self, owner_uid: str) -> list[tuple[Owned, Item]]:
        """The objects with the label of this owner, as the streams show them."""
        return [(kind, item) for kind, stream in self._owned for item in stream.store.items(OWNER_INDEX, owner_uid)]

    @property
    def _in_sync(self) -> bool:
        return all(stream.current for stream in self.owned_streams)

    def _requeue_when_synced(self) -> None:
        """Queue the keys that asked for their children, once those are known."""
        if not self._in_sync:
            asyncio.get_running_loop().call_later(IN_SYNC_SECONDS, self._requeue_when_synced)
            return
        for key in self._keys_waiting_for_sync:
            self._enqueue(key, Reason.CHILD, priority=Priority.LOW)
        self._keys_waiting_for_sync.clear()

    async def wait_until_synced(self) -> None:
        """Return once children and related objects are in sync or blocked and the others have a page, at most
        `SETTLE_SECONDS` after the first primary stream."""
        known = {stream for _, stream in (*self._owned, *self._related)}
        waits = {of: asyncio.ensure_future(of.wait_until_synced(first_page=of not in known)) for of in self.streams}
        try:
            await asyncio.wait([waits[stream] for stream in self.primary], return_when=asyncio.FIRST_COMPLETED)
            _, late = await asyncio.wait(waits.values(), timeout=SETTLE_SECONDS)
        finally:
            for wait in waits.values():
                wait.cancel()
        if late:
            names = ", ".join(str(stream) for stream, wait in waits.items() if wait in late)
            log.warning("reconciling although streams are not in sync", extra={"streams": names})

    def forget(self, key: Key) -> None:
        """No object of this name exists any more, and its deletion is handled: drop everything known of it."""
        self.own_writes.forget(key)
        self.records.forget(key)
        self._keys_waiting_for_sync.discard(key)
        self.queue.cancel_timer(key)

    async def requeue_all(self) -> None:
        """Let each object count as not yet reconciled, and queue it."""
        self.records.forget_reconciles()
        keys = [item.key for stream in self.primary for item in stream.store]
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

    def _stream_showing(self, kind: Kind, key: Key, owner: Key) -> Stream | None:
        """The stream that shows a write: the primary one for the handled object, else that of the owned kind.

        A controller may own objects of the kind that it handles. There, the first event of a child is a new object to
        reconcile, and not the echo of a write.
        """
        primary = self.primary_stream(key)
        own = key == owner and primary.kind.gvk == kind.gvk
        return primary if own else self.stream_of(kind, key)

    # --- for streams ---

    def seen(self, stream: Stream, delta: Delta) -> None:
        """Queue the keys that a difference concerns."""
        # Changes that a first list shows wait behind live ones.
        priority = Priority.LIVE if delta.live or stream.synced else Priority.LOW
        if stream in self.primary:
            self._seen_primary(stream, delta, priority)
        if stream in self.owned_streams:
            # A name that became free concerns who wants it: one owner may prune a child that another wants.
            for key in self.indexes.owners(delta) | self.own_writes.followers(stream, delta):
                if not self.own_writes.is_own(key, stream, delta, Reason.CHILD):
                    self._enqueue(key, Reason.CHILD, priority=priority)
        for kind in self._relating(stream):
            for key in filter(self.item, self.indexes.concerned(kind, delta)):
                self._enqueue(key, Reason.RELATED, priority=priority)

    def _relating(self, stream: Stream) -> Iterable[Related]:
        return [kind for kind, other in self._related if other is stream]

    def _seen_primary(self, stream: Stream, delta: Delta, priority: Priority) -> None:
        key, old, new, live = delta
        own = old is not None and self.own_writes.is_own(key, stream, delta, Reason.CHANGED)
        if old is not None and (new is None or new.meta.uid != old.meta.uid):
            self.records.add_tombstone(key, old, now=time.monotonic())
            self._enqueue(key, Reason.DELETED)
        if new is None or own:
            return
        if old is None:
            self._enqueue(key, Reason.ADDED, priority=priority)
        elif stream in self.restoring:
            # A reconcile since the list began saw the object as it was before the restore.
            self.records.of(key).handled = None
            self._enqueue(key, Reason.CHANGED)
        elif not live and not stream.kind.metadata_only and is_rewritten(old, new):
            # A reason that counts even if a running reconcile marks this generation as handled.
            self.records.of(key).handled = None
            self._enqueue(key, Reason.CHILD)
        elif self._differs(stream, old, new):
            self._enqueue(key, Reason.CHANGED)

    def _differs(self, stream: Stream, old: Item, new: Item) -> bool:
        """Whether a reconcile is needed: a status write by others must not cut a failing key's backoff short."""
        options = {"with_status": self._on_status, "metadata_only": stream.kind.metadata_only}
        return handled_state(old, **options) != handled_state(new, **options)

    def advanced(self, stream: Stream) -> None:
        """The stream reached a newer version: release the keys that waited for it."""
        if stream in self.restoring:
            self.restoring.discard(stream)
            self.records.begin_epoch()
        self.own_writes.advanced(stream)

    def restored(self, stream: Stream) -> None:
        """The server's versions went backwards: forget what is remembered by version, and queue what is listed."""
        self.own_writes.forget_all_writes()
        self.records.forget_versions()
        self.restoring.add(stream)

    def _enqueue(self, key: Key, reason: Reason, *, priority: Priority = Priority.LIVE) -> None:
        self.queue.add(key, reason, now=time.monotonic(), priority=priority)
        self.wake()


class Indexes:
    """Indexes of the streams of one router, which find the handled objects that another object concerns."""

    def __init__(
        self,
        primary: Sequence[Stream],
        owned: Sequence[tuple[Owned, Stream]],
        related: Sequence[tuple[Related, Stream]],
    ) -> None:
        self._primary, self._owned, self._related = primary, owned, related
        for stream in primary:
            if owned:
                stream.store.add_index(UID_INDEX, lambda item: (item.meta.uid,))
            for kind, _ in related:
                if kind.named_by is not None:
                    stream.store.add_index(kind, partial(_named_by, kind, kind.named_by))
        for _, stream in owned:
            stream.store.add_index(OWNER_INDEX, partial(_label, OWNER_UID))
        for kind, stream in related:
            for index in kind.indexes.values():
                function = partial(_label, index) if isinstance(index, str) else partial(_values, kind, index)
                stream.store.add_index(index, function)

    def named(self, gvk: tuple[str, str], name: str) -> dict[Stream, Hashable]:
        """The streams of an owned or related kind that have the index `name` (empty: all of them), each with the name
        of this index in its store; None for no index."""
        if not name:
            return {stream: None for kind, stream in (*self._owned, *self._related) if kind.gvk == gvk}
        related = [(kind, stream) for kind, stream in self._related if kind.gvk == gvk]
        return {stream: kind.indexes[name] for kind, stream in related if name in kind.indexes}

    def owners(self, delta: Delta) -> set[Key]:
        """The keys of handled objects that the child named as owners, before or after the change."""
        uids = {uid for item in (delta.old, delta.new) if item is not None for uid in _owner_uids(item)}
        return {key for uid in uids for stream in self._primary for key in stream.store.lookup(UID_INDEX, uid)}

    def concerned(self, kind: Related, delta: Delta) -> set[Key]:
        """The keys that the functions of a related kind return for the object, before or after the change."""
        if kind.keys is None:
            return {key for stream in self._primary for key in stream.store.lookup(kind, str(delta.key))}
        namespaced, items = self._primary[0].kind.namespaced, filter(None, (delta.old, delta.new))
        return {key for item in items for key in _keys(kind, kind.keys, item, namespaced=namespaced)}


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
