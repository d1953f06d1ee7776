"""ReconcileContext: what one reconcile may use of the running operator; steps see it as `axn.context`.

It is the router as seen by one owner.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Protocol

from ..client.api import Client
from ..core.fights import Fights
from ..core.objects import Item, Objects, version_number
from ..core.records import AppliedRecord
from ..core.selector import Selector, hold, requirements_of
from ..errors import OptionError, Retry
from ..events import Event
from ..kinds import Kind, Owned
from ..resource import MANAGED_BY, OWNER_UID, Key, Resource, gvk_of, identify, key_of
from .router import OWNER_INDEX, Router
from .stream import Stream


class Tasks(Protocol):
    """Where periodic tasks are registered: `bonny.servers.periodic`, a layer above."""

    def register(self, task: Any, /) -> bool:
        """Run a `PeriodicTask` from now on; returns whether its id was new."""

    def unregister(self, id: str, /) -> bool:  # noqa: A002  the name of the field
        """Stop it; returns whether there was one."""


@dataclass(slots=True, kw_only=True)
class ReconcileContext:
    """One owner's view of the router, with the names and the client of its controller."""

    operator: str
    """The operator's name; its descendants carry it as app.kubernetes.io/managed-by."""

    manager: str
    """The field manager of all writes: `<operator>/<controller>`."""

    finalizer: str
    """The finalizer of the controller's own `finalize`."""

    client: Client
    """Requests as the operator's identity."""

    router: Router
    key: Key
    """The owner: the object that is reconciled."""

    emit: Callable[[Resource, Event], object]
    """Hand an event to the recorder, which sends it when it can. From any thread."""

    offline: bool = False
    """Whether nothing is sent, as in the test of a handler."""

    periodic_tasks: Tasks | None = None
    wrote: bool = False
    """Whether this reconcile changed anything in the cluster so far."""

    applied_records: dict[tuple[Kind, Key], AppliedRecord] = field(init=False)
    """Applied records of the owner, by kind and key of the descendant."""

    _foreign: set[tuple[Kind, Key]] = field(default_factory=set)

    def __post_init__(self) -> None:
        # Looked up once: what is applied after a restore of the server was decided on what it showed before.
        record = self.router.records.of(self.key)
        if record.applied is None:
            record.applied = {}
        self.applied_records = record.applied

    @property
    def owns(self) -> Sequence[Owned]:
        """The kinds of children."""
        return self.router.owns

    @property
    def fights(self) -> Fights:
        """Corrections of this controller that other writers undo."""
        return self.router.fights

    @property
    def tasks(self) -> Tasks:
        """The operator's periodic tasks. Raises: `OptionError` where there are none, as in a watcher."""
        if self.periodic_tasks is None:
            raise OptionError("no periodic tasks run here: register them in a controller of an operator")
        return self.periodic_tasks

    @property
    def up_to_date(self) -> bool:
        """Whether the owner's stream shows what the server shows."""
        return self.router.primary_stream(self.key).current

    def labels(self, owner_uid: str) -> dict[str, str]:
        """The labels of the descendants of that owner."""
        return {MANAGED_BY: self.operator, OWNER_UID: owner_uid}

    def observe(self, kind: Kind, key: Key) -> tuple[Item | None, bool]:
        """An owned object as its stream shows it, and whether the stream is to be believed: it is synced and works."""
        stream = self.router.stream_of(kind, key)
        return (None, False) if stream is None else (stream.store.get(key), stream.synced and stream.error is None)

    def observed(self, descendant: Mapping[str, Any]) -> Resource | None:
        """The live object of the kind and name of `descendant`, which is one of `owns` or `related`.

        Raises: `OptionError` when it is of another kind.
        """
        name = key_of(descendant)
        for kind in (*self.owns, *self.router.related):
            if kind.gvk == gvk_of(descendant) and kind.namespace in (None, name.namespace):
                key = name if kind.namespaced else Key("", name.name)
                for stream in self.router.streams_of(kind, key):
                    item = stream.store.get(key)
                    if item is not None:
                        return Objects(kind.gvk, [item])[0]
                return None
        raise OptionError(
            f"{identify(descendant)} cannot be observed: add Owned{gvk_of(descendant)} to the controller's `owns`, or "
            "name its kind in `related`"
        )

    def children(self, owner_uid: str) -> list[tuple[Owned, Item]] | None:
        """As `Router.children`, for this owner."""
        return self.router.children(owner_uid, owner=self.key)

    def children_of(self, gvk: tuple[str, str], owner_uid: str, *, selector: Selector) -> Objects:
        """The children of one kind, by namespace and name. From any thread.

        Raises: `OptionError` for a kind that is not owned; `Retry` while a stream of the kind is not in sync, or has
        yet to show what this operator wrote.
        """
        streams = self._streams_of_children(gvk)
        if not streams:
            raise OptionError(f"{gvk[1]} ({gvk[0]}) cannot be a child: add Owned{gvk} to the controller's `owns`")
        shown = all(self.is_shown(kind, key) for kind, key in self.applied_records if kind.gvk == gvk)
        if not shown or not all(stream.current for stream in streams):
            raise Retry(f"the children of kind {gvk[1]} are unknown: the watch is not up to date")
        return _selected(gvk, selector, (stream.store.items(OWNER_INDEX, owner_uid) for stream in streams))

    def keys_of_children(self, gvk: tuple[str, str], owner_uid: str) -> frozenset[Key]:
        """The keys of the children of one kind, as the streams show them now. From any thread."""
        streams = self._streams_of_children(gvk)
        return frozenset(chain.from_iterable(stream.store.lookup(OWNER_INDEX, owner_uid) for stream in streams))

    def _streams_of_children(self, gvk: tuple[str, str]) -> list[Stream]:
        return [stream for stream in self.router.owned_streams if stream.kind.gvk == gvk]

    def related_to(
        self, gvk: tuple[str, str], *, selector: Selector, namespace: str, index: tuple[str, str] | None
    ) -> Objects:
        """The objects of an owned or related kind in a namespace (empty: in all), by namespace and name. With `index`,
        the objects that have its value in the index of that name. From any thread.

        Raises: `OptionError` for a kind, a namespace or an index that is not watched; `Retry` before the first list is
        complete.
        """
        name, value = index or ("", "")
        indexes = self.router.indexes.named(gvk, name)
        streams = [stream for stream in indexes if not namespace or stream.namespace in (None, namespace)]
        if not streams:
            asked = f"index {name[:60]!r}" if index else f"namespace {namespace[:60] or '*'!r}"
            raise OptionError(
                f"{gvk[1]} ({gvk[0]}) is not watched with the {asked}: declare that in the controller's `related`"
            )
        if not all(stream.synced for stream in streams):
            raise Retry(f"the objects of kind {gvk[1]} are unknown: their first list is not complete")
        items = (stream.store.items(indexes[stream], value) for stream in streams)
        return _selected(gvk, selector, items, namespace=namespace if streams[0].kind.namespaced else "")

    def is_shown(self, kind: Kind, key: Key) -> bool:
        """Whether the stream of a descendant shows the last apply of this owner to it."""
        record, stream = self.applied_records.get((kind, key)), self.router.stream_of(kind, key)
        return record is None or stream is None or version_number(record.version) <= stream.version

    def wait_for_name(self, kind: Kind, key: Key) -> None:
        """The name is taken by a foreign object: when that one changes, the owner is queued again."""
        self._foreign.add((kind, key))
        self.router.own_writes.want(self._foreign, owner=self.key)

    @contextmanager
    def writing(self, kind: Kind, key: Key) -> Iterator[Callable[[str], None]]:
        """Surrounds a write to an object; call what it yields with the version that the write made.

        The event of this write is then recognised, and the owner waits until its stream has shown it.
        """
        own_writes = self.router.own_writes
        versions: list[str] = []
        own_writes.begin_write(owner=self.key)
        try:
            yield versions.append
        finally:
            self.wrote = self.wrote or bool(versions)
            own_writes.end_write(kind, key, versions[-1] if versions else None, owner=self.key)

    @contextmanager
    def deleting(self, kind: Kind, key: Key, uid: str) -> Iterator[None]:
        """Surrounds the deletion of an object: its event is recognised, and the owner waits for it."""
        self.router.own_writes.begin_deletion(kind, key, uid, owner=self.key)
        try:
            yield
        except BaseException:
            self.router.own_writes.cancel_deletion(kind, key, uid, owner=self.key)
            raise
        self.wrote = True


def _selected(
    gvk: tuple[str, str], selector: Selector, items: Iterable[Iterable[Item]], *, namespace: str = ""
) -> Objects:
    wanted = requirements_of(selector)
    found = {
        item.key: item
        for item in chain.from_iterable(items)
        if namespace in ("", item.key.namespace) and hold(wanted, item.meta.labels or {})
    }
    return Objects(gvk, [found[key] for key in sorted(found)])
