"""Streams: the streams and routers of an operator whose namespaces change while it runs.

The work for one event, and for one reconcile, does not grow with the number of namespaces: where the core reads all
streams, one index is read here.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ..client.api import Client
from ..controller import Controller
from ..core.objects import Item
from ..core.queue import Priority, Reason
from ..core.store import Delta
from ..core.watch import Begin, Command, Sweep, WatchInput
from ..engine.router import OWNER_INDEX, QUEUED_AT_ONCE, SETTLE_SECONDS, Indexes, Router
from ..engine.stream import Stream
from ..kinds import Kind, Owned, Related
from ..resource import OWNER_UID, Key
from ..run.streams import Streams

if TYPE_CHECKING:
    from ..operator import Operator

NOWHERE: Final = "(none)"


class Nowhere(Stream):
    """Stands for the stream of a namespace that is not watched. It shows nothing, and is never run."""

    @property
    def narrowed(self) -> bool:
        """An object can leave it without being deleted: its namespace left."""
        return True


class JoinedStream(Stream):
    """The stream of a kind in one namespace that joined."""

    def __init__(self, *args: Any, behind: set[Stream], **named: Any) -> None:
        """`behind`: where it enters itself whenever it may not be up to date."""
        super().__init__(*args, **named)
        self._behind = behind

    async def _follow(self) -> None:
        self._behind.add(self)
        await super()._follow()

    async def _step(self, event: WatchInput) -> Command:
        command = await super()._step(event)
        (self._behind.discard if self.current else self._behind.add)(self)
        return command


class StreamList(list[Stream]):
    """A list of streams, whose `in` takes the same time for a thousand of them. It never changes."""

    def __init__(self, streams: Iterable[Stream]) -> None:
        super().__init__(streams)
        self._members = set(self)

    def __contains__(self, stream: object) -> bool:
        return stream in self._members


class Followed(NamedTuple):
    """The streams of one namespace that one router follows."""

    primary: Sequence[Stream]
    owned: Mapping[Owned, Sequence[Stream]]
    related: Mapping[Related, Sequence[Stream]]

    @property
    def streams(self) -> list[Stream]:
        """All of them, each once."""
        lists = (self.primary, *self.owned.values(), *self.related.values())
        return list(dict.fromkeys(stream for streams in lists for stream in streams))


NOTHING: Final = Followed((), {}, {})


class NamespaceRouter(Router):
    """The router of a controller and kind, which follows more or fewer namespaces from time to time."""

    def __init__(
        self, controller: type[Controller[Any]], kind: Kind, first: Followed, nowhere: Followed, behind: set[Stream]
    ) -> None:
        """`first`: the streams that do not depend on the namespaces. `nowhere` stands for the others, and shares the
        indexes of all primary ones. `behind`: streams of namespaces that may not be up to date."""
        primary = first.primary or nowhere.primary
        super().__init__(primary=primary, owned=first.owned, related=first.related, on_status=controller.on_status)
        Indexes(primary, _pairs(nowhere.owned), _pairs(nowhere.related))
        self.controller, self.kind = controller, kind
        self._behind = behind
        self._fixed = [stream for stream in self.streams if not isinstance(stream, Nowhere)]
        self._fixed_owned, self._fixed_related = list(self._owned), list(self._related)
        self._fixed_owned_streams = list(self.owned_streams)
        # The indexes have their own list of primary streams: the index of `nowhere` has the keys of all namespaces.
        self.primary, self.owned_streams = StreamList(self.primary), StreamList(self.owned_streams)
        self._owned_kinds: defaultdict[Stream, list[Owned]] = defaultdict(list)
        """The owned kinds of streams of namespaces."""

        self._kinds_related: defaultdict[Stream, list[Related]] = defaultdict(list)
        for related, stream in self._related:
            self._kinds_related[stream].append(related)
        self._joined: dict[str, Followed] = {}
        self._with_children: dict[str, tuple[tuple[Owned, Stream], ...]] = {}
        """By the UID of an owner: the streams of namespaces that have children of it."""

        self._homes: dict[str, Stream] = {}
        self._leaving: dict[str, set[Key]] = {}
        """The keys of namespaces that leave."""

    def primary_stream(self, key: Key) -> Stream:
        """The primary stream that `key` belongs to; `Nowhere` if its namespace is not watched."""
        return self._homes.get(key.namespace, self.primary[0])

    def item(self, key: Key) -> Item | None:
        """The object in the store; None while its namespace leaves."""
        return None if key.namespace in self._leaving else super().item(key)

    def streams_of(self, kind: Kind, key: Key) -> Iterator[Stream]:
        """The streams that can show the object `key` of an owned or related kind; owned kinds first."""
        joined = self._joined.get(key.namespace, NOTHING)
        pairs = (*self._fixed_owned, *_pairs(joined.owned), *self._fixed_related, *_pairs(joined.related))
        for other, stream in pairs:
            if other.gvk == kind.gvk and stream.namespace in (None, key.namespace):
                yield stream

    def children_of(self, owner_uid: str) -> list[tuple[Owned, Item]]:
        """The objects with the label of this owner, as the streams show them."""
        pairs = sorted((*self._fixed_owned, *self._with_children.get(owner_uid, ())), key=self._rank)
        return [(kind, item) for kind, stream in pairs for item in stream.store.items(OWNER_INDEX, owner_uid)]

    def _rank(self, pair: tuple[Owned, Stream]) -> int:
        return self.owns.index(pair[0])

    @property
    def _in_sync(self) -> bool:
        late = (stream for stream in self._behind if stream in self.owned_streams)
        return not any(not stream.current for stream in (*self._fixed_owned_streams, *late))

    def seen(self, stream: Stream, delta: Delta) -> None:
        """Queue the keys that a difference concerns."""
        for kind in self._owned_kinds.get(stream, ()):
            self._note_owners(kind, stream, filter(None, (delta.old, delta.new)))
        super().seen(stream, delta)

    def _relating(self, stream: Stream) -> Iterable[Related]:
        return self._kinds_related.get(stream, ())

    def _note_owners(self, kind: Owned, stream: Stream, items: Iterable[Item], *, closed: bool = False) -> None:
        """Note whether the owners of `items` have children in the stream."""
        for uid in filter(None, {(item.meta.labels or {}).get(OWNER_UID) for item in items}):
            others = tuple(pair for pair in self._with_children.pop(uid, ()) if pair[1] is not stream)
            shown = not closed and stream.store.lookup(OWNER_INDEX, uid)
            if pairs := (*others, (kind, stream)) if shown else others:
                self._with_children[uid] = pairs

    async def wait_until_synced(self) -> None:
        """Wait for the streams that do not depend on the namespaces; each namespace waits for its own."""
        if waits := [asyncio.ensure_future(stream.wait_until_synced()) for stream in self._fixed]:
            _, late = await asyncio.wait(waits, timeout=SETTLE_SECONDS)
            for wait in late:
                wait.cancel()

    def prepare(self, followed: Followed) -> None:
        """Before the streams run: keep indexes of their objects."""
        Indexes(followed.primary, _pairs(followed.owned), _pairs(followed.related))

    async def join(self, namespace: str, followed: Followed) -> None:
        """Follow the streams of `namespace`, which are in sync; queue the keys they concern behind live changes."""
        owned, related = _pairs(followed.owned), _pairs(followed.related)
        self._joined[namespace] = followed
        for kind, stream in owned:
            self._owned_kinds[stream].append(kind)
            self._note_owners(kind, stream, stream.store)
        for kind, stream in related:
            self._kinds_related[stream].append(kind)
        self._owned += owned
        self.owned_streams = StreamList([*self.owned_streams, *(stream for _, stream in owned)])
        self._related += related
        for stream in followed.streams:
            stream.subscribe(self)
        # Owners elsewhere; owners of this namespace are queued once, below.
        for stream in dict.fromkeys(stream for _, stream in owned):
            await self._queue_all(Reason.CHILD, stream, lambda delta: filter(self.item, self.indexes.owners(delta)))
        for kind, stream in related:
            await self._queue_all(Reason.RELATED, stream, partial(self._concerned, kind))
        self.primary = StreamList([*self.primary, *followed.primary])
        for home in followed.primary:
            self._homes[namespace] = home
            await self._queue_all(Reason.ADDED, home, lambda delta: (delta.key,))

    def _concerned(self, kind: Related, delta: Delta) -> Iterable[Key]:
        return filter(self.item, self.indexes.concerned(kind, delta))

    async def _queue_all(self, reason: Reason, stream: Stream, keys: Callable[[Delta], Iterable[Key]]) -> None:
        """Queue the `keys` of everything that the stream shows now, behind live changes."""
        for number, item in enumerate(stream.store.items()):
            if number % QUEUED_AT_ONCE == 0:
                await asyncio.sleep(0)
            for key in keys(Delta(item.key, None, item, live=False)):
                self._enqueue(key, reason, priority=Priority.LOW)

    def hide(self, namespace: str) -> None:
        """Hand out none of its keys; running reconciles continue, with all streams."""
        if (home := self._homes.get(namespace)) is not None:
            known = {key for key in self.records if key.namespace == namespace}
            self._leaving[namespace] = known.union(home.store.keys())

    def is_working(self, namespace: str) -> bool:
        """Whether an object of `namespace`, which is hidden, is being reconciled."""
        return any(self.queue.is_working(key) for key in self._leaving.get(namespace, ()))

    def leave(self, namespace: str, followed: Followed, *, deleted: bool) -> None:
        """Forget the streams, which are closed, and the keys of `namespace`. Objects that were `deleted` with it
        get their `delete`, like all whose deletion was seen before."""
        streams, home = set(followed.streams), self._homes.pop(namespace, None)
        for kind, stream in _pairs(followed.owned):
            self._note_owners(kind, stream, stream.store, closed=True)
        self.primary = StreamList(stream for stream in self.primary if stream not in streams)
        self.owned_streams = StreamList(stream for stream in self.owned_streams if stream not in streams)
        self._owned[:] = [each for each in self._owned if each[1] not in streams]
        self._related[:] = [each for each in self._related if each[1] not in streams]
        self._joined.pop(namespace, None)
        for stream in streams:
            self._owned_kinds.pop(stream, None)
            self._kinds_related.pop(stream, None)
            self.own_writes.close(stream)
            self.restoring.discard(stream)
        for item in list(home.store) if home is not None and deleted else ():
            self.records.add_tombstone(item.key, item, now=time.monotonic())
            self._enqueue(item.key, Reason.DELETED)
        hidden = self._leaving.pop(namespace, set())
        for key in hidden.union(home.store.keys()) if home is not None else ():
            if not self.records.tombstones(key):
                self.queue.discard(key)
            self.forget(key)


class NamespaceStreams(Streams):
    """The streams that do not depend on the namespaces, and all routers."""

    def __init__(self, operator: Operator, namespaces: Any, on_restore: Callable[[Stream], None]) -> None:
        super().__init__(operator, namespaces, on_restore)
        self.routers: list[NamespaceRouter] = []
        self.names: list[str] = namespaces
        """The namespaces that take part; reconcilers list them in each run."""

        self._behind: set[Stream] = set()
        """Streams of namespaces that were not up to date at their last event."""

        self._nowhere: Joined | None = None

    def router(self, controller: type[Controller[Any]], kind: Kind) -> Router:
        """A router for a kind of a controller, which namespaces join later."""
        owned = {owned: self._watched(self._ours(owned)) for owned in controller.owns}
        related = {related: self._watched(related) for related in controller.related}
        first = Followed(self._watched(kind), owned, related)
        made = NamespaceRouter(controller, kind, first, self.nowhere.followed_by(controller, kind), self._behind)
        self.routers.append(made)
        return made

    def _watched(self, kind: Kind) -> list[Stream]:
        return [] if is_everywhere(kind) else super()._watched(kind)

    @property
    def nowhere(self) -> Joined:
        """Stands for a namespace that is not watched."""
        if self._nowhere is None:
            self._nowhere = self._joined(NOWHERE, Nowhere)
        return self._nowhere

    def within(self, namespace: str) -> Joined:
        """The streams of one namespace."""
        return self._joined(namespace, self._made)

    def close(self, joined: Joined) -> None:
        """These streams have ended: take their objects out of the common indexes."""
        for stream in joined:
            self._behind.discard(stream)
            stream.store.apply(Begin(0, restored=False))
            list(stream.store.apply(Sweep()))

    def _joined(self, namespace: str, make: Callable[..., Stream]) -> Joined:
        joined = Joined(self._operator, [namespace], self._on_restore)
        joined.client, joined.make = self.client, make
        return joined

    def _made(self, client: Client, kind: Kind, **named: Any) -> Stream:
        stream, nowhere = JoinedStream(client, kind, behind=self._behind, **named), self.nowhere.of(kind, NOWHERE)
        if any(router.primary[0] is nowhere for router in self.routers):
            stream.store.indexes = nowhere.store.indexes
        return stream


class Joined(Streams):
    """The streams of one namespace that is selected."""

    def followed(self, router: NamespaceRouter) -> Followed:
        """The streams that a router follows in this namespace."""
        return self.followed_by(router.controller, router.kind)

    def followed_by(self, controller: type[Controller[Any]], kind: Kind) -> Followed:
        """The streams that the router of a controller and kind follows in this namespace."""
        return Followed(
            self._watched(kind),
            {owned: self._watched(self._ours(owned)) for owned in controller.owns},
            {related: self._watched(related) for related in controller.related},
        )

    def _watched(self, kind: Kind) -> list[Stream]:
        return super()._watched(kind) if is_everywhere(kind) else []


def is_everywhere(kind: Kind) -> bool:
    """Whether the kind has objects in each namespace that the operator watches."""
    return kind.namespaced and kind.namespace is None


def _pairs(kinds: Mapping[Any, Sequence[Stream]]) -> list[tuple[Any, Stream]]:
    return [(kind, stream) for kind, streams in kinds.items() for stream in streams]
