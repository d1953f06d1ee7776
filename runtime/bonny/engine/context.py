"""Workplace: what the handling of one object may use of the running operator; what steps see as `axn.workplace`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from ..axn import Axn, Observation, Tasks
from ..client.api import Client
from ..core.ledger import AppliedRecord
from ..core.objects import Item
from ..errors import OptionError
from ..events import Event
from ..kinds import Kind, Owned
from ..resource import Key, Resource, identify, key_of
from ..steps.apply_descendants import ApplyDescendants
from ..steps.apply_status import write_status
from .router import Router

__all__ = ["Desk", "Identity", "NullRecorder", "Recorder"]


class Recorder(Protocol):
    """Sends events when it can; `bonny.events.EventRecorder` is one."""

    def record(self, regarding: Resource, event: Event) -> None: ...


class NullRecorder:
    """A recorder for those who only look on: they leave nothing on the objects, and no events about them either."""

    def record(self, regarding: Resource, event: Event) -> None:
        """Forget it."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Under which names one controller of an operator works; each is explained at `axn.Workplace`."""

    operator: str
    manager: str
    finalizer: str


class Desk:
    """The workplace for one key of one controller."""

    def __init__(
        self,
        *,
        identity: Identity,
        client: Client,
        recorder: Recorder,
        router: Router,
        key: Key,
        tasks: Tasks | None = None,
    ) -> None:
        self.operator = identity.operator
        self.manager = identity.manager
        self.finalizer = identity.finalizer
        self.client = client
        self._recorder = recorder
        self._tasks = tasks
        self._loop = asyncio.get_running_loop()
        self.owns: Sequence[Owned] = router.owns
        self.applied_records: dict[tuple[Kind, Key], AppliedRecord] = router.ledger.applied_records.setdefault(key, {})
        self.fights = router.fights
        self.wrote = False
        """Whether anything was written so far, as far as it is known here."""

        self._router = router
        self._key = key
        self._contested: set[tuple[Kind, Key]] = set()

    def observe(self, kind: Kind, key: Key) -> Observation:
        """What the stores know of an owned object; "not known" while its stream is not in sync."""
        stream = self._router.stream_of(kind, key)
        if stream is None:
            return Observation(known=False, item=None)
        return Observation(known=stream.synced and stream.error is None, item=stream.store.get(key))

    def observed(self, descendant: Mapping[str, Any]) -> Resource | None:
        """The live object of the kind and name of `descendant`, which is one of `owns` or `related`.

        Raises: `OptionError` when it is of another kind.
        """
        for kind in (*self.owns, *self._router.related):
            name = key_of(descendant)
            same = (kind.api_version, kind.kind) == (descendant["apiVersion"], descendant["kind"])
            if same and kind.namespace in (None, name.namespace):
                key = name if kind.namespaced else Key("", name.name)
                shown = [stream.store.get(key) for stream in self._router.streams_of(kind, key)]
                item = next((item for item in shown if item is not None), None)
                return None if item is None else {**item.decode(), "apiVersion": kind.api_version, "kind": kind.kind}
        raise OptionError(
            f"{identify(descendant)} cannot be observed: name its kind in the controller's `owns` or `related`"
        )

    def children(self, owner_uid: str) -> list[tuple[Owned, Item]] | None:
        """What carries the label of that owner; None while a stream of an owned kind is not in sync."""
        return self._router.children(owner_uid, owner=self._key)

    @property
    def up_to_date(self) -> bool:
        """Whether the stream of the handled object shows what the server shows."""
        return self._router.primary_stream(self._key).current

    def contested(self, kind: Kind, key: Key) -> None:
        """The name is taken by an object that is not ours: when that changes, the handled object is run again."""
        self._contested.add((kind, key))
        self._router.contest(self._contested, owner=self._key)

    @property
    def tasks(self) -> Tasks:
        """The operator's periodic tasks. Raises: `OptionError` where there are none, as in a watcher."""
        if self._tasks is None:
            raise OptionError("no periodic tasks run here: register them in a controller of an operator")
        return self._tasks

    def record(self, regarding: Resource, event: Event) -> None:
        """Hand an event to the recorder, which sends it when it can. From any thread."""
        self._loop.call_soon_threadsafe(self._recorder.record, regarding, event)

    async def apply_descendants(self, axn: Axn[Any], *, create_events: bool) -> None:
        """What `Axn.apply_descendants` does."""
        await ApplyDescendants(create_events=create_events)(axn)

    async def apply_status(self, axn: Axn[Any], *, strict: bool) -> None:
        """What `Axn.apply_status` and `Axn.safe_apply_status` do."""
        if axn.status:
            await write_status(axn, strict=strict, early=True)

    @contextmanager
    def writing(self, kind: Kind, key: Key) -> Iterator[Callable[[str], None]]:
        """Lets the router recognise the event of this write, and the key wait until it was seen."""
        self._router.begin_write(kind, key, owner=self._key)
        made: list[str] = []
        try:
            yield made.append
        finally:
            self.wrote = self.wrote or bool(made)
            self._router.end_write(kind, key, made[-1] if made else None, owner=self._key)

    @contextmanager
    def deleting(self, kind: Kind, key: Key, uid: str) -> Iterator[None]:
        """Lets the router recognise the end of this object, and the handled one wait until it was seen."""
        self._router.begin_end(kind, key, uid, owner=self._key)
        try:
            yield
        except BaseException:
            self._router.cancel_end(kind, key, owner=self._key)
            raise
        self.wrote = True
