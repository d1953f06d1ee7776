"""Router: turns what the streams of one controller and kind show into queued keys.

It decides which key is queued (the object's own, or that of the owner of a changed child) and with which priority
(first adds of a list wait behind live changes), and recognises the events of the controller's own writes. A worker then
decides what to do about a key from the store and the ledger, never from the event.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Final

from ..core.fights import Fights
from ..core.ledger import Barriers, Ends, Ledger, OwnWrites, handled_state
from ..core.objects import Item, version_number
from ..core.queue import Priority, Queue, QueueOptions, Reason
from ..core.store import Delta
from ..errors import OptionError
from ..kinds import Kind, ObjectNames, Owned, Related
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
UID_INDEX: Final = "uid"
OWNER_INDEX: Final = "owner"

log = logging.getLogger("bonny.engine.router")


@dataclass(slots=True)
class _StreamMemory:
    """Own writes and deletions that one stream has to show."""

    writes: OwnWrites = field(default_factory=OwnWrites)
    barriers: Barriers = field(default_factory=Barriers)
    ends: Ends = field(default_factory=Ends)
    late: Barriers = field(default_factory=Barriers)
    """Keys that stopped waiting before the stream showed their writes: queued again once it does, because the event of
    an own write queues no key."""


class Router:
    """Queue, ledger and streams of one controller for one kind."""

    def __init__(
        self,
        *,
        primary: Sequence[Stream],
        owned: Mapping[Owned, Sequence[Stream]],
        related: Mapping[Related, Sequence[Stream]] = MappingProxyType({}),
        options: QueueOptions,
        on_status: bool,
    ) -> None:
        """`on_status`: whether a change of only the status queues the object."""
        self.queue: Queue[Key] = Queue(options)
        self.ledger = Ledger()
        self.fights = Fights()
        self.wake = asyncio.Event()
        """Set whenever a key may have become ready."""
        self.barrier_waits = 0
        """Times a key waited for its own write to appear in a stream."""

        self.barriers_missed = 0
        """Times a key gave up waiting for its own write to appear in a stream."""

        self._on_status = on_status
        self._primary = list(primary)
        self._owned = {kind: list(streams) for kind, streams in owned.items()}
        self._related = {kind: list(streams) for kind, streams in related.items()}
        self._contested: dict[tuple[Stream, Key], set[Key]] = {}
        """The keys that want the name of a foreign object, by stream and key of that object."""

        self._contests: dict[Key, set[tuple[Stream, Key]]] = {}
        """The reverse: the foreign objects whose names a key wants."""

        self._parked: dict[Key, float] = {}
        """When a key began to wait for a stream to show its writes (monotonic seconds)."""

        others = [stream for streams in self._related.values() for stream in streams]
        self.streams = list(dict.fromkeys([*self._primary, *self.owned_streams, *others]))
        """Every stream, each once."""

        self._memory = {stream: _StreamMemory() for stream in self.streams}
        self._unsure: set[Key] = set()
        """Keys whose children were unknown because a stream of children was not in sync."""

        self._restoring: set[Stream] = set()
        """Streams of a restored server, until their next list is complete."""

        if self._owned:
            for stream in self._primary:
                stream.store.add_index(UID_INDEX, lambda item: (item.meta.uid,))
        for stream in self.owned_streams:
            stream.store.add_index(OWNER_INDEX, _labelled_owner)
        for kind in self._related:
            if kind.named_by is not None:
                for stream in self._primary:
                    stream.store.add_index(_index_of(kind), partial(_named_by, kind, kind.named_by))
        for stream in self.streams:
            stream.subscribe(self)

    @property
    def owns(self) -> Sequence[Owned]:
        return list(self._owned)

    @property
    def primary(self) -> Sequence[Stream]:
        """The streams of the handled objects."""
        return self._primary

    @property
    def owned_streams(self) -> list[Stream]:
        """The streams of children."""
        return [stream for streams in self._owned.values() for stream in streams]

    @property
    def related(self) -> Sequence[Related]:
        return list(self._related)

    # --- for workers --------------------------------------------------------------------------------------------------

    def primary_stream(self, key: Key) -> Stream:
        """The primary stream that `key` belongs to."""
        return _for_namespace(self._primary, key) or self._primary[0]

    def item(self, key: Key) -> Item | None:
        return self.primary_stream(key).store.get(key)

    def streams_of(self, kind: Kind, key: Key) -> Iterator[Stream]:
        """The streams that can show the object `key` of an owned or related kind; owned kinds first."""
        for other, streams in (*self._owned.items(), *self._related.items()):
            if other.gvk == kind.gvk:
                stream = _for_namespace(streams, key)
                if stream is not None:
                    yield stream

    def stream_of(self, kind: Kind, key: Key) -> Stream | None:
        """The first stream of `streams_of`."""
        return next(self.streams_of(kind, key), None)

    def children(self, owner_uid: str, *, owner: Key) -> list[tuple[Owned, Item]] | None:
        """The objects with the label of this owner; None while a stream of an owned kind is not in sync.

        In that case `owner` is queued again once all are.
        """
        if not self._in_sync:
            if not self._unsure:
                self._ask_later()
            self._unsure.add(owner)
            return None
        return [
            (kind, item)
            for kind, streams in self._owned.items()
            for stream in streams
            for item in map(stream.store.get, stream.store.lookup(OWNER_INDEX, owner_uid))
            if item is not None
        ]

    @property
    def _in_sync(self) -> bool:
        return all(stream.current for stream in self.owned_streams)

    def _ask_later(self) -> None:
        asyncio.get_running_loop().call_later(IN_SYNC_SECONDS, self._asked)

    def _asked(self) -> None:
        """Queue the keys that asked for their children, once those are known."""
        if not self._in_sync:
            self._ask_later()
            return
        for key in self._unsure:
            self._enqueue(key, Reason.CHILD, priority=Priority.LOW)
        self._unsure.clear()

    @property
    def restoring(self) -> bool:
        """Whether a stream's server was restored, and its list is not complete yet."""
        return bool(self._restoring)

    async def wait_until_synced(self) -> None:
        """Return once every stream is in sync or blocked, or `SETTLE_SECONDS` after the first primary stream is.

        So a failing API does not delay the objects of working ones for longer.
        """
        waits = {stream: asyncio.ensure_future(stream.wait_until_synced()) for stream in self.streams}
        try:
            await asyncio.wait([waits[stream] for stream in self._primary], return_when=asyncio.FIRST_COMPLETED)
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
        stream = self._stream_showing(kind, key, owner=owner)
        if stream is not None:
            self._memory[stream].writes.begin(key)

    def end_write(self, kind: Kind, key: Key, version: str | None, *, owner: Key) -> None:
        """The write to `key` made `version`, or failed (None)."""
        stream = self._stream_showing(kind, key, owner=owner)
        if stream is None:
            return
        if self._memory[stream].writes.end(key, version):
            self._enqueue(owner, Reason.CHANGED if stream in self._primary else Reason.CHILD)
        number = version_number(version or "")
        if number > stream.version:
            self._memory[stream].barriers.require(owner, number)

    def begin_end(self, kind: Kind, key: Key, uid: str, *, owner: Key) -> None:
        """The reconcile of `owner` is about to delete `key`; the owner waits until the stream shows that."""
        stream = self._stream_showing(kind, key, owner=owner)
        shown = None if stream is None else stream.store.get(key)
        if stream is not None and shown is not None and shown.meta.uid == uid:
            self._memory[stream].ends.expect(key, uid, owner=owner)

    def cancel_end(self, kind: Kind, key: Key, *, owner: Key) -> None:
        """The deletion failed, or its outcome is unknown."""
        stream = self._stream_showing(kind, key, owner=owner)
        if stream is not None:
            self._memory[stream].ends.cancel(key)

    def park(self, key: Key, *, now: float) -> bool:
        """Give `key` back to the queue if a stream has not shown the writes of its last reconcile; returns whether.

        After `BARRIER_SECONDS` the key goes on with the stores as they are.
        """
        if not self._waits(key):
            self._parked.pop(key, None)
            return False
        if key not in self._parked:
            self.barrier_waits += 1
        until = self._parked.setdefault(key, now) + BARRIER_SECONDS
        if now < until:
            self.queue.park(key, until=until)
            return True
        self.barriers_missed += 1
        del self._parked[key]
        for memory in self._memory.values():
            memory.late.require(key, memory.barriers.drop(key))
            memory.ends.drop(key)
        return False

    def _waits(self, key: Key) -> bool:
        return any(
            memory.barriers.blocks(key, at=stream.version) or memory.ends.blocks(key)
            for stream, memory in self._memory.items()
        )

    def contest(self, names: Iterable[tuple[Kind, Key]], *, owner: Key) -> None:
        """These foreign objects have names that `owner` wants: a change of one queues the owner.

        Replaces the owner's earlier contests, so a name that it no longer wants is forgotten.
        """
        wanted = {(stream, key) for kind, key in names if (stream := self.stream_of(kind, key)) is not None}
        for name in self._contests.pop(owner, set()) - wanted:
            self._contested[name].discard(owner)
            if not self._contested[name]:
                del self._contested[name]
        for name in wanted:
            self._contested.setdefault(name, set()).add(owner)
        if wanted:
            self._contests[owner] = wanted

    def forget(self, key: Key) -> None:
        """No object of this name exists any more, and its deletion is handled: drop everything known of it."""
        for kind, child in self.ledger.applied_records.get(key, ()):
            if (stream := self.stream_of(kind, child)) is not None:
                self._memory[stream].writes.drop(child)
        for memory in self._memory.values():
            memory.late.drop(key)
        self.ledger.drop(key)
        self._unsure.discard(key)
        self.contest((), owner=key)

    async def requeue_all(self) -> None:
        """Forget handled states and applied records, and queue every object."""
        self.ledger.handled.clear()
        self.ledger.applied_records.clear()
        keys: list[Key] = []
        for stream in self._primary:
            keys += stream.store.keys()
        for number, key in enumerate(keys):
            if number % QUEUED_AT_ONCE == 0:
                await asyncio.sleep(0)
            self._enqueue(key, Reason.ADDED, priority=Priority.LOW)

    def remove_tombstones(self, *, before: float) -> None:
        """For a standby: the leader handles the deletions before this moment (monotonic seconds)."""
        for key in self.ledger.remove_tombstones_before(before):
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
        memory, new = self._memory[stream], delta.new
        own = delta.live and new is not None and memory.writes.is_own(delta.key, new.meta.resource_version)
        if memory.ends.is_end(delta.key, delta.old, new):
            own = own or delta.live
            self._unpark(memory.ends.cancel(delta.key))
        if new is None:
            memory.writes.drop(delta.key)
        if stream in self._primary:
            self._seen_primary(stream, delta, own=own)
        if any(stream in streams for streams in self._owned.values()):
            self._seen_child(stream, delta, own=own)
        for kind, streams in self._related.items():
            if stream in streams:
                self._seen_related(stream, kind, delta)

    def advanced(self, stream: Stream) -> None:
        """The stream reached a newer version: release the keys that waited for it."""
        if stream in self._restoring:
            self._restoring.discard(stream)
            self.ledger.epoch += 1
        self._memory[stream].writes.passed(at=stream.version)
        for key in self._memory[stream].barriers.met(at=stream.version):
            self._unpark(key)
        for key in self._memory[stream].late.met(at=stream.version):
            self._enqueue(key, Reason.CHILD, priority=Priority.LOW)

    def _unpark(self, key: Key | None) -> None:
        """Release `key` from the queue's parking if it waits for nothing else."""
        if key is not None and not self._waits(key):
            self.queue.unpark(key, now=time.monotonic())
            self.wake.set()

    def restored(self, stream: Stream) -> None:
        """The server's versions went backwards: forget what is remembered by version, and queue what is listed."""
        self._memory[stream].writes.forget_versions()
        self._memory[stream] = _StreamMemory(self._memory[stream].writes)
        self.ledger.forget_versions()
        self._restoring.add(stream)

    def _seen_primary(self, stream: Stream, delta: Delta, *, own: bool) -> None:
        old, new = delta.old, delta.new
        if old is not None and (new is None or new.meta.uid != old.meta.uid):
            self.ledger.add_tombstone(delta.key, old, now=time.monotonic())
            self._enqueue(delta.key, Reason.DELETED)
        if new is None or own:
            return
        if old is None:
            first = not delta.live and not stream.synced
            self._enqueue(delta.key, Reason.ADDED, priority=Priority.LOW if first else Priority.LIVE)
        elif stream in self._restoring:
            # A reconcile since the list began saw the object as it was before the restore.
            self.ledger.handled.pop(delta.key, None)
            self._enqueue(delta.key, Reason.CHANGED)
        elif self._rewritten(stream, delta):
            # A reason that counts even if a running reconcile marks this generation as handled.
            self.ledger.handled.pop(delta.key, None)
            self._enqueue(delta.key, Reason.CHILD)
        elif self._differs(stream, old, new):
            self._enqueue(delta.key, Reason.CHANGED)

    def _differs(self, stream: Stream, old: Item, new: Item) -> bool:
        """Whether a reconcile is needed: a status write by others must not cut a failing key's backoff short."""
        before, after = (
            handled_state(item, with_status=self._on_status, metadata_only=stream.kind.metadata_only)
            for item in (old, new)
        )
        return before != after

    def _rewritten(self, stream: Stream, delta: Delta) -> bool:
        """Whether a list shows different content under an equal generation, as after a restore from a backup."""
        old, new = delta.old, delta.new
        if delta.live or old is None or new is None or old.meta.uid != new.meta.uid or stream.kind.metadata_only:
            return False
        before, after = (handled_state(item, with_status=False, trust_generation=False) for item in (old, new))
        return 0 < old.meta.generation == new.meta.generation and before.content != after.content

    def _seen_child(self, stream: Stream, delta: Delta, *, own: bool) -> None:
        # Children in a first list are reconciled with their owners, which are all new then, too.
        first = not delta.live and not stream.synced
        concerned = set() if own else self._owners(delta)
        if delta.new is None or not own:
            # The name is free, whichever client deleted the object: one owner may prune a child that another wants.
            concerned |= self._contested.get((stream, delta.key), set())
        for key in concerned:
            self._enqueue(key, Reason.CHILD, priority=Priority.LOW if first else Priority.LIVE)

    def _seen_related(self, stream: Stream, kind: Related, delta: Delta) -> None:
        first = not delta.live and not stream.synced
        concerned: set[Key] = set()
        if kind.keys is not None:
            namespaced = self._primary[0].kind.namespaced
            for item in filter(None, (delta.old, delta.new)):
                concerned.update(_keys(kind, kind.keys, item, namespaced=namespaced))
        else:
            for primary in self._primary:
                concerned |= primary.store.lookup(_index_of(kind), str(delta.key))
        for key in concerned:
            if self.item(key) is not None:
                self._enqueue(key, Reason.RELATED, priority=Priority.LOW if first else Priority.LIVE)

    def _owners(self, delta: Delta) -> set[Key]:
        """The keys of handled objects that the child named as owners, before or after the change."""
        uids = {uid for item in (delta.old, delta.new) if item is not None for uid in _owner_uids(item)}
        return {key for uid in uids for stream in self._primary for key in stream.store.lookup(UID_INDEX, uid)}

    def _enqueue(self, key: Key, reason: Reason, *, priority: Priority = Priority.LIVE) -> None:
        self.queue.add(key, reason, now=time.monotonic(), priority=priority)
        self.wake.set()


def _owner_uids(item: Item) -> Iterable[str]:
    label = (item.meta.labels or {}).get(OWNER_UID)
    references = [reference.uid for reference in item.meta.owner_references]
    return references if label is None else [label, *references]


def _labelled_owner(item: Item) -> Iterable[str]:
    label = (item.meta.labels or {}).get(OWNER_UID)
    return () if label is None else (label,)


def _index_of(kind: Related) -> str:
    """The name of the index of handled objects by the related objects that they name."""
    return f"{kind.resource} by {id(kind.named_by)}"


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


def _for_namespace(streams: Sequence[Stream], key: Key) -> Stream | None:
    """The stream whose namespace includes `key`."""
    return next((stream for stream in streams if stream.namespace in (None, key.namespace)), None)
