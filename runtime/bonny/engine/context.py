"""ReconcileContext: what one reconcile may use of the running operator; steps see it as `axn.context`.

It is the router as seen by one owner: which of its children are shown, which of its writes are under way.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from ..client.api import Client
from ..core.fights import Fights
from ..core.objects import Item
from ..core.records import AppliedRecord
from ..errors import OptionError
from ..events import Event
from ..kinds import Kind, Owned
from ..resource import Key, Resource, gvk_of, identify, key_of
from .router import Router


@dataclass(frozen=True, slots=True)
class Observation:
    """A live object as its stream shows it. `synced` is False while the kind is not watched or its stream fails."""

    synced: bool
    item: Item | None


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

    record: Callable[[Resource, Event], object]
    """Hand an event to the recorder, which sends it when it can. From any thread."""

    apply_descendants: Callable[..., Awaitable[None]]
    """Implements `Axn.apply_descendants`. A field, because steps are a layer above."""

    apply_status: Callable[..., Awaitable[None]]
    """Implements `Axn.apply_status` and `Axn.safe_apply_status`."""

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

    def observe(self, kind: Kind, key: Key) -> Observation:
        """An owned object as its stream shows it."""
        stream = self.router.stream_of(kind, key)
        if stream is None:
            return Observation(synced=False, item=None)
        return Observation(synced=stream.synced and stream.error is None, item=stream.store.get(key))

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
                        return {**item.decode(), "apiVersion": kind.api_version, "kind": kind.kind}
                return None
        raise OptionError(
            f"{identify(descendant)} cannot be observed: name its kind in the controller's `owns` or `related`"
        )

    def children(self, owner_uid: str) -> list[tuple[Owned, Item]] | None:
        """The objects with the label of that owner UID; None while a stream of an owned kind is not in sync: then the
        owner is queued again once all are."""
        return self.router.children(owner_uid, owner=self.key)

    def contested(self, kind: Kind, key: Key) -> None:
        """The name is taken by a foreign object: when that one changes, the owner is queued again."""
        self._foreign.add((kind, key))
        self.router.contest(self._foreign, owner=self.key)

    @contextmanager
    def writing(self, kind: Kind, key: Key) -> Iterator[Callable[[str], None]]:
        """Surrounds a write to an object; call what it yields with the version that the write made.

        The router then recognises the event of this write, and the owner waits until its stream has shown it.
        """
        self.router.begin_write(kind, key, owner=self.key)
        versions: list[str] = []
        try:
            yield versions.append
        finally:
            self.wrote = self.wrote or bool(versions)
            self.router.end_write(kind, key, versions[-1] if versions else None, owner=self.key)

    @contextmanager
    def deleting(self, kind: Kind, key: Key, uid: str) -> Iterator[None]:
        """Surrounds the deletion of an object: the router recognises its event, and the owner waits for it."""
        self.router.begin_deletion(kind, key, uid, owner=self.key)
        try:
            yield
        except BaseException:
            self.router.cancel_deletion(kind, key, owner=self.key)
            raise
        self.wrote = True
