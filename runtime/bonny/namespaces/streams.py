"""Streams: the streams and routers of an operator whose namespaces change while it runs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ..controller import Controller
from ..core.objects import Item
from ..core.queue import Priority, Reason
from ..core.store import Delta
from ..engine.router import QUEUED_AT_ONCE, SETTLE_SECONDS, Indexes, Router
from ..engine.stream import Stream
from ..kinds import Kind, Owned, Related
from ..resource import Key
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


class NamespaceRouter(Router):
    """The router of a controller and kind, which follows more or fewer namespaces from time to time."""

    def __init__(self, controller: type[Controller[Any]], kind: Kind, first: Followed) -> None:
        """`first`: the streams that do not depend on the namespaces. Without a primary one, its namespaces join."""
        super().__init__(**first._asdict(), on_status=controller.on_status)
        self.controller, self.kind = controller, kind
        self._fixed = [stream for stream in self.streams if not isinstance(stream, Nowhere)]
        self._homes: dict[str, Stream] = {}
        self._leaving: set[str] = set()

    def primary_stream(self, key: Key) -> Stream:
        """The primary stream that `key` belongs to; `Nowhere` if its namespace is not watched."""
        return self._homes.get(key.namespace, self.primary[0])

    def item(self, key: Key) -> Item | None:
        """The object in the store; None while its namespace leaves."""
        return None if key.namespace in self._leaving else super().item(key)

    async def wait_until_synced(self) -> None:
        """Wait for the streams that do not depend on the namespaces; each namespace waits for its own."""
        if waits := [asyncio.ensure_future(stream.wait_until_synced()) for stream in self._fixed]:
            _, late = await asyncio.wait(waits, timeout=SETTLE_SECONDS)
            for wait in late:
                wait.cancel()

    def prepare(self, followed: Followed) -> None:
        """Before the streams run: keep indexes of their objects."""
        # Where the owner is found by its child: in all primary streams.
        Indexes([*self.primary, *followed.primary], _pairs(followed.owned), _pairs(followed.related))

    async def join(self, namespace: str, followed: Followed) -> None:
        """Follow the streams of `namespace`, which are in sync; queue the keys they concern behind live changes."""
        owned, related = _pairs(followed.owned), _pairs(followed.related)
        self._owned += owned
        self.owned_streams += [stream for _, stream in owned]
        self._related += related
        for stream in followed.streams:
            stream.subscribe(self)
        # Owners elsewhere; those of this namespace are queued once, below.
        for stream in dict.fromkeys(stream for _, stream in owned):
            await self._queue_all(Reason.CHILD, stream, self.indexes.owners)
        for kind, stream in related:
            await self._queue_all(Reason.RELATED, stream, partial(self._concerned, kind))
        self.primary += followed.primary
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
        if namespace in self._homes:
            self._leaving.add(namespace)

    def is_working(self, namespace: str) -> bool:
        """Whether an object of `namespace` is being reconciled."""
        return any(self.queue.is_working(key) for key in self._keys(namespace))

    def leave(self, namespace: str, followed: Followed, *, deleted: bool) -> None:
        """Forget the streams, which are closed, and the keys of `namespace`. Objects that were `deleted` with it
        get their `delete`, like all whose deletion was seen before."""
        streams, home, keys = followed.streams, self._homes.pop(namespace, None), self._keys(namespace)
        self.primary[:] = [stream for stream in self.primary if stream not in followed.primary]
        self.owned_streams[:] = [stream for stream in self.owned_streams if stream not in streams]
        self._owned[:] = [each for each in self._owned if each[1] not in streams]
        self._related[:] = [each for each in self._related if each[1] not in streams]
        for stream in streams:
            self.own_writes.close(stream)
            self.restoring.discard(stream)
        for item in list(home.store) if home is not None and deleted else ():
            self.records.add_tombstone(item.key, item, now=time.monotonic())
            self._enqueue(item.key, Reason.DELETED)
        for key in keys if home is not None else ():
            if not self.records.tombstones(key):
                self.queue.discard(key)
            self.forget(key)
        self._leaving.discard(namespace)

    def _keys(self, namespace: str) -> set[Key]:
        home = self._homes.get(namespace)
        known = {key for key in self.records if key.namespace == namespace}
        return known if home is None else known.union(home.store.keys())


class NamespaceStreams(Streams):
    """The streams that do not depend on the namespaces, and all routers."""

    def __init__(self, operator: Operator, namespaces: Any, on_restore: Callable[[Stream], None]) -> None:
        super().__init__(operator, namespaces, on_restore)
        self.routers: list[NamespaceRouter] = []
        self.names: list[str] = namespaces
        """The namespaces that take part; reconcilers list them in each run."""

    def router(self, controller: type[Controller[Any]], kind: Kind) -> Router:
        """A router for a kind of a controller, which namespaces join later."""
        primary = self._watched(kind)
        if not primary:
            primary = [Nowhere(self.client, kind, namespace=NOWHERE, options=self._operator.watch_options)]
        owned = {owned: self._watched(self._ours(owned)) for owned in controller.owns}
        related = {related: self._watched(related) for related in controller.related}
        made = NamespaceRouter(controller, kind, Followed(primary, owned, related))
        self.routers.append(made)
        return made

    def _watched(self, kind: Kind) -> list[Stream]:
        return [] if is_everywhere(kind) else super()._watched(kind)

    def within(self, namespace: str) -> Joined:
        """The streams of one namespace."""
        joined = Joined(self._operator, [namespace], self._on_restore)
        joined.client, joined.namespace = self.client, namespace
        return joined


class Joined(Streams):
    """The streams of one namespace that is selected."""

    namespace: str

    def followed(self, router: NamespaceRouter) -> Followed:
        """The streams that a router follows in this namespace."""
        controller = router.controller
        return Followed(
            self._watched(router.kind),
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
