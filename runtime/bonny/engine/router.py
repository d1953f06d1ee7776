"""Intake: turns what the streams of one controller and kind show into queued keys.

It decides who has to look (the object itself, or the owner of a changed child), how soon (first adds of a list wait
behind live changes), and recognises the events of the controller's own writes. What a worker then does about a key is
decided from the store and the ledger, never from the event.
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
from .stream import Reflector

__all__ = ["Intake"]

# The store shows an own write within milliseconds. A stream that does not must not hold its keys for longer than this.
BARRIER_SECONDS: Final = 5.0
# A stream is in sync again a second after it came back; how long it takes to come back nobody knows.
IN_SYNC_SECONDS: Final = 2.0
# As long as controller-runtime waits for a cache (CacheSyncTimeout); it gives the controller up then. What such streams
# show counts as not known: nothing is pruned, and a first creation asks the server.
SETTLE_SECONDS: Final = 120.0
# After so many keys others get their turn on the loop.
QUEUED_AT_ONCE: Final = 1_000
UID_INDEX: Final = "uid"
OWNER_INDEX: Final = "owner"

log = logging.getLogger("bonny.engine.router")


@dataclass(slots=True)
class _Memory:
    """What is remembered of the writes that one stream shows."""

    writes: OwnWrites = field(default_factory=OwnWrites)
    barriers: Barriers = field(default_factory=Barriers)
    ends: Ends = field(default_factory=Ends)
    late: Barriers = field(default_factory=Barriers)
    """Keys that went on although the stream did not show what they wrote: they look again once it does, as that is an
    own write, whose event wakes nobody."""


class Intake:
    """Queue, ledger and streams of one controller for one kind."""

    def __init__(
        self,
        *,
        primary: Sequence[Reflector],
        owned: Mapping[Owned, Sequence[Reflector]],
        related: Mapping[Related, Sequence[Reflector]] = MappingProxyType({}),
        options: QueueOptions,
        on_status: bool,
    ) -> None:
        """`on_status` says whether a change of nothing but the status counts as one."""
        self.queue: Queue[Key] = Queue(options)
        self.ledger = Ledger()
        self.fights = Fights()
        self.wake = asyncio.Event()
        """Set whenever a key may have become ready."""
        self.barrier_waits = 0
        """How often a key had to wait for a stream to show an own write."""

        self.barriers_missed = 0
        """How often a key went on because a stream did not show an own write in time."""

        self._on_status = on_status
        self._primary = list(primary)
        self._owned = {kind: list(sources) for kind, sources in owned.items()}
        self._related = {kind: list(sources) for kind, sources in related.items()}
        self._contested: dict[tuple[Reflector, Key], set[Key]] = {}
        """By stream and key of an object that is not ours: the keys that want its name."""

        self._contests: dict[Key, set[tuple[Reflector, Key]]] = {}
        """The same by key that wants a name."""

        self._parked: dict[Key, float] = {}
        """Since when a key waits for a stream to show its writes."""

        others = [source for sources in self._related.values() for source in sources]
        self.sources = list(dict.fromkeys([*self._primary, *self.owned_sources, *others]))
        """Every stream, each once."""

        self._memory = {source: _Memory() for source in self.sources}
        self._unsure: set[Key] = set()
        """Keys that asked for their children while a stream of children was not in sync."""

        self._restoring: set[Reflector] = set()
        """Streams whose server was restored, until their first complete list after that."""

        if self._owned:
            for source in self._primary:
                source.store.add_index(UID_INDEX, lambda item: (item.meta.uid,))
        for source in self.owned_sources:
            source.store.add_index(OWNER_INDEX, _labelled_owner)
        for kind in self._related:
            if kind.named_by is not None:
                for source in self._primary:
                    source.store.add_index(_index_of(kind), partial(_named_by, kind, kind.named_by))
        for source in self.sources:
            source.subscribe(self)

    @property
    def owns(self) -> Sequence[Owned]:
        return list(self._owned)

    @property
    def primary(self) -> Sequence[Reflector]:
        """The streams of what is handled."""
        return self._primary

    @property
    def owned_sources(self) -> list[Reflector]:
        """The streams of children."""
        return [source for sources in self._owned.values() for source in sources]

    @property
    def related(self) -> Sequence[Related]:
        return list(self._related)

    # --- what workers ask ---------------------------------------------------------------------------------------------

    def home(self, key: Key) -> Reflector:
        """The primary stream that `key` belongs to."""
        return _for_namespace(self._primary, key) or self._primary[0]

    def item(self, key: Key) -> Item | None:
        return self.home(key).store.get(key)

    def sources_of(self, kind: Kind, key: Key) -> Iterator[Reflector]:
        """The streams that can show the object `key` of an owned or related kind: those of owned ones first."""
        for known, sources in (*self._owned.items(), *self._related.items()):
            if (known.api_version, known.kind) == (kind.api_version, kind.kind):
                found = _for_namespace(sources, key)
                if found is not None:
                    yield found

    def source(self, kind: Kind, key: Key) -> Reflector | None:
        """The first of these."""
        return next(self.sources_of(kind, key), None)

    def children(self, owner_uid: str, *, owner: Key) -> list[tuple[Owned, Item]] | None:
        """What carries the label of that owner; None while a stream of an owned kind is not in sync: then `owner` is
        queued again once all are."""
        if not self._in_sync:
            if not self._unsure:
                self._ask_later()
            self._unsure.add(owner)
            return None
        return [
            (kind, item)
            for kind, sources in self._owned.items()
            for source in sources
            for item in map(source.store.get, source.store.lookup(OWNER_INDEX, owner_uid))
            if item is not None
        ]

    @property
    def _in_sync(self) -> bool:
        return all(source.current for source in self.owned_sources)

    def _ask_later(self) -> None:
        asyncio.get_running_loop().call_later(IN_SYNC_SECONDS, self._asked)

    def _asked(self) -> None:
        """Queue who asked for children, if they are known by now."""
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

    async def settled(self) -> None:
        """Return once every stream is in sync, or waits for a person; or `SETTLE_SECONDS` after the first of what is
        handled is: an API that fails holds up no objects of others."""
        waits = {source: asyncio.ensure_future(source.settled()) for source in self.sources}
        try:
            await asyncio.wait([waits[source] for source in self._primary], return_when=asyncio.FIRST_COMPLETED)
            _, late = await asyncio.wait(waits.values(), timeout=SETTLE_SECONDS)
        finally:
            for wait in waits.values():
                wait.cancel()
        if late:
            names = ", ".join(str(source) for source, wait in waits.items() if wait in late)
            log.warning("objects are reconciled although streams are not in sync", extra={"streams": names})

    # --- own writes ---------------------------------------------------------------------------------------------------

    def begin_write(self, kind: Kind, key: Key, *, owner: Key) -> None:
        """The handling of `owner` is about to write to `key`."""
        source = self._stream_of(kind, key, owner=owner)
        if source is not None:
            self._memory[source].writes.begin(key)

    def end_write(self, kind: Kind, key: Key, version: str | None, *, owner: Key) -> None:
        """The write to `key` that the handling of `owner` made was answered, or failed (None)."""
        source = self._stream_of(kind, key, owner=owner)
        if source is None:
            return
        if self._memory[source].writes.end(key, version):
            self._enqueue(owner, Reason.CHANGED if source in self._primary else Reason.CHILD)
        number = version_number(version or "")
        if number > source.version:
            self._memory[source].barriers.require(owner, number)

    def begin_end(self, kind: Kind, key: Key, uid: str, *, owner: Key) -> None:
        """The handling of `owner` is about to delete `key`: it waits until the stream shows it, which wakes nobody."""
        source = self._stream_of(kind, key, owner=owner)
        shown = None if source is None else source.store.get(key)
        if source is not None and shown is not None and shown.meta.uid == uid:
            self._memory[source].ends.expect(key, uid, owner=owner)

    def cancel_end(self, kind: Kind, key: Key, *, owner: Key) -> None:
        """It was not deleted, or nobody knows."""
        source = self._stream_of(kind, key, owner=owner)
        if source is not None:
            self._memory[source].ends.forget(key)

    def park(self, key: Key, *, now: float) -> bool:
        """Give `key` back to the queue if a stream has yet to show what its last handling wrote; returns whether.

        A stream that does not show it in time does not hold the key any longer: the stores are taken as they are.
        """
        if not self._waits(key):
            self._parked.pop(key, None)
            return False
        self.barrier_waits += key not in self._parked
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
            memory.barriers.blocks(key, at=source.version) or memory.ends.blocks(key)
            for source, memory in self._memory.items()
        )

    def contest(self, names: Iterable[tuple[Kind, Key]], *, owner: Key) -> None:
        """These objects are not ours but have names that `owner` wants: a change of one queues the owner.

        Replaces what the owner contested before, so a name that it no longer wants is not remembered.
        """
        wanted = {(source, key) for kind, key in names if (source := self.source(kind, key)) is not None}
        for name in self._contests.pop(owner, set()) - wanted:
            self._contested[name].discard(owner)
            if not self._contested[name]:
                del self._contested[name]
        for name in wanted:
            self._contested.setdefault(name, set()).add(owner)
        if wanted:
            self._contests[owner] = wanted

    def forget(self, key: Key) -> None:
        """Nothing of this name exists any more, and its deletion is settled."""
        for kind, child in self.ledger.witnesses.get(key, ()):
            if (source := self.source(kind, child)) is not None:
                self._memory[source].writes.drop(child)
        for memory in self._memory.values():
            memory.late.drop(key)
        self.ledger.forget(key)
        self._unsure.discard(key)
        self.contest((), owner=key)

    async def begin_anew(self) -> None:
        """Forget what was handled and applied, and queue every object."""
        self.ledger.handled.clear()
        self.ledger.witnesses.clear()
        keys: list[Key] = []
        for source in self._primary:
            keys += source.store.keys()
        for number, key in enumerate(keys):
            if number % QUEUED_AT_ONCE == 0:
                await asyncio.sleep(0)
            self._enqueue(key, Reason.ADDED, priority=Priority.LOW)

    def forget_ends(self, *, before: float) -> None:
        """For a standby: what was gone before that moment (monotonic seconds) was the leader's to see to."""
        for key in self.ledger.lift_before(before):
            if self.item(key) is None:
                self.forget(key)
                self.queue.forget(key)

    def _stream_of(self, kind: Kind, key: Key, *, owner: Key) -> Reflector | None:
        """Where a write shows: on the primary stream if it is the handled object, else on that of the owned kind.

        A controller may own objects of the kind that it handles; a child's first event there is no echo, but an object
        to handle.
        """
        home = self.home(key)
        own = key == owner and (home.kind.api_version, home.kind.kind) == (kind.api_version, kind.kind)
        return home if own else self.source(kind, key)

    # --- what streams tell --------------------------------------------------------------------------------------------

    def seen(self, source: Reflector, delta: Delta) -> None:
        """A difference: queue whom it concerns."""
        own = delta.live and delta.new is not None and self._is_own(source, delta.key, delta.new)
        if self._memory[source].ends.is_end(delta.key, delta.old, delta.new):
            own = own or delta.live
            self._unpark(self._memory[source].ends.forget(delta.key))
        if delta.new is None:
            self._memory[source].writes.drop(delta.key)
        if source in self._primary:
            self._seen_primary(source, delta, own=own)
        if any(source in sources for sources in self._owned.values()):
            self._seen_child(source, delta, own=own)
        for kind, sources in self._related.items():
            if source in sources:
                self._seen_related(source, kind, delta)

    def advanced(self, source: Reflector) -> None:
        """The stream reached a newer version: keys that waited for it go on."""
        if source in self._restoring:
            self._restoring.discard(source)
            self.ledger.epoch += 1
        self._memory[source].writes.passed(at=source.version)
        for key in self._memory[source].barriers.met(at=source.version):
            self._unpark(key)
        for key in self._memory[source].late.met(at=source.version):
            self._enqueue(key, Reason.CHILD, priority=Priority.LOW)

    def _unpark(self, key: Key | None) -> None:
        """Something that `key` waited for is there."""
        if key is not None and not self._waits(key):
            self.queue.unpark(key, now=time.monotonic())
            self.wake.set()

    def restored(self, source: Reflector) -> None:
        """The server's versions fell: forget what is remembered by version, and look at all that the list shows."""
        self._memory[source].writes.forget()
        self._memory[source] = _Memory(self._memory[source].writes)
        self.ledger.forget_writes()
        self._restoring.add(source)

    def _is_own(self, source: Reflector, key: Key, item: Item) -> bool:
        return self._memory[source].writes.is_own(key, item.meta.resource_version)

    def _seen_primary(self, source: Reflector, delta: Delta, *, own: bool) -> None:
        old, new = delta.old, delta.new
        if old is not None and (new is None or new.meta.uid != old.meta.uid):
            self.ledger.bury(delta.key, old, now=time.monotonic())
            self._enqueue(delta.key, Reason.DELETED)
        if new is None or own:
            return
        if old is None:
            first = not delta.live and not source.synced
            self._enqueue(delta.key, Reason.ADDED, priority=Priority.LOW if first else Priority.LIVE)
        elif source in self._restoring:
            # What was handled since the list began was handled as it stood before.
            self.ledger.handled.pop(delta.key, None)
            self._enqueue(delta.key, Reason.CHANGED)
        elif self._rewritten(source, delta):
            # A reason that counts although a handling under way may call this generation handled.
            self.ledger.handled.pop(delta.key, None)
            self._enqueue(delta.key, Reason.CHILD)
        elif self._differs(source, old, new):
            self._enqueue(delta.key, Reason.CHANGED)

    def _differs(self, source: Reflector, old: Item, new: Item) -> bool:
        """Whether there is anything to handle: somebody's status must not cut short a failing key's wait."""
        before, after = (
            handled_state(item, with_status=self._on_status, metadata_only=source.kind.metadata_only)
            for item in (old, new)
        )
        return before != after

    def _rewritten(self, source: Reflector, delta: Delta) -> bool:
        """Whether a list shows another content under an equal generation, as after a restore from a backup."""
        old, new = delta.old, delta.new
        if delta.live or old is None or new is None or old.meta.uid != new.meta.uid or source.kind.metadata_only:
            return False
        before, after = (handled_state(item, with_status=False, trust_generation=False) for item in (old, new))
        return 0 < old.meta.generation == new.meta.generation and before.content != after.content

    def _seen_child(self, source: Reflector, delta: Delta, *, own: bool) -> None:
        # The children of a first list are looked at with their owners, which are all new then, too.
        first = not delta.live and not source.synced
        concerned = set() if own else self._owners(delta)
        if delta.new is None or not own:
            # A name is free whoever deleted the object; one handled object may have pruned what another one wants.
            concerned |= self._contested.get((source, delta.key), set())
        for key in concerned:
            self._enqueue(key, Reason.CHILD, priority=Priority.LOW if first else Priority.LIVE)

    def _seen_related(self, source: Reflector, kind: Related, delta: Delta) -> None:
        first = not delta.live and not source.synced
        concerned: set[Key] = set()
        if kind.keys is not None:
            namespaced = self._primary[0].kind.namespaced
            for item in filter(None, (delta.old, delta.new)):
                concerned.update(_keys(kind, kind.keys, item, namespaced=namespaced))
        else:
            for home in self._primary:
                concerned |= home.store.lookup(_index_of(kind), str(delta.key))
        for key in concerned:
            if self.item(key) is not None:
                self._enqueue(key, Reason.RELATED, priority=Priority.LOW if first else Priority.LIVE)

    def _owners(self, delta: Delta) -> set[Key]:
        """The keys of our objects that the child named as its owners, before or after the change."""
        uids = {uid for item in (delta.old, delta.new) if item is not None for uid in _owner_uids(item)}
        return {key for uid in uids for source in self._primary for key in source.store.lookup(UID_INDEX, uid)}

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
    """The index of handled objects by the related ones that they name."""
    return f"{kind.resource} by {id(kind.named_by)}"


def _named_by(kind: Related, names: Callable[[Resource], ObjectNames], item: Item) -> Iterable[str]:
    return [str(key) for key in _keys(kind, names, item, namespaced=kind.namespaced)]


def _keys(kind: Related, names: Callable[[Resource], ObjectNames], item: Item, *, namespaced: bool) -> set[Key]:
    """The keys that a user's function names for an object: names alone are in its namespace, if they are in any.

    What it raises is logged: neither other objects nor other controllers on the stream suffer from it.
    """
    try:
        named = names(item.decode())
        if isinstance(named, str):
            raise OptionError("it returned one text: return a list of names")
        keys = {Key(item.meta.namespace, name) if isinstance(name, str) else Key(*name) for name in named}
        if not all(isinstance(part, str) for key in keys for part in key):
            raise OptionError("it returned what is no text: return names, or pairs of namespace and name")
        return keys if namespaced else {Key("", key.name) for key in keys}
    except BaseException:
        log.exception("a function of Related failed", extra={"kind": kind.resource, "object": str(item.key)})
        return set()


def _for_namespace(sources: Sequence[Reflector], key: Key) -> Reflector | None:
    """Of streams that differ in their namespace, the one that shows `key`."""
    return next((source for source in sources if source.namespace in (None, key.namespace)), None)
