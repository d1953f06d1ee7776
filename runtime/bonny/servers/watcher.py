"""Watcher: calls a handler for every object of a kind that is added, changed or deleted.

    class PodLifecycleLogger(Watcher):
        operation = List("v1", "Pod")

        async def add(self, pod: Resource) -> None: ...
        async def modify(self, pod: Resource) -> None: ...
        async def delete(self, pod: Resource) -> None: ...

You need it to observe: logs, audits, mirrors outside of the cluster; not to own children or to write a status.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any, ClassVar

from ..axn import Axn
from ..calling import call
from ..client.api import Client
from ..controller import Controller
from ..core.records import Action
from ..core.watch import WatchOptions
from ..engine.router import Router
from ..engine.stream import Stream
from ..engine.worker import Worker
from ..errors import Retry, Wait
from ..pipeline import Pipeline
from ..resource import Resource
from ..telemetry import execute
from .periodic import PeriodicTasks
from .visitor import Namespaces, ObjectVisitor, V


class _Shown(Controller[Any]):
    """The controller of the worker; the only step of the pipeline calls the handlers."""

    on_status = True

    async def delete(self, axn: Axn[Any]) -> None:
        """Defined, so the worker processes deletions."""


class Watcher(ObjectVisitor[V]):
    """Calls `add`, `modify` and `delete` with the objects of its `operation`; undefined methods do nothing.

    Guarantees: handlers get the last state of each object, and its deletion; states in between may be left out, and an
    object that existed for a moment may reach only `delete`. Calls for one name come one after the other, in order, the
    deletion before a new object of the same name. A handler that raises is called again, as in a controller; `Retry`,
    `Wait` and `Terminal` work, too. A change of only managedFields or resourceVersion is ignored.
    Does not: remember. After a restart every object is added again, and deletions in between are not noticed.
    RBAC: get, list and watch of the kind; add the permissions of your handlers to `rules`.
    """

    watch_options: ClassVar[WatchOptions] = WatchOptions()
    """How the kind is listed and watched."""

    verbs = ("get", "list", "watch")

    def __init__(self, client: Client, *, namespaces: Namespaces = (None,), tasks: PeriodicTasks | None = None) -> None:
        super().__init__(client, namespaces=namespaces, tasks=tasks)
        kind, options = self._kind, self.watch_options
        self._stopping = False
        self.streams = [Stream(client, kind, namespace=name, options=options) for name in self.namespaces]

        self.worker = Worker(
            operator=str(self),
            group="watchers",
            controller=self._as_controller(),
            kind=kind,
            client=client,
            recorder=None,  # a watcher leaves nothing on the objects that it shows
            router=Router(primary=self.streams, owned={}, on_status=True),
            pipeline=Pipeline((self._show,)),
        )

    # --- your methods ---

    def add(self, resource: Resource, /) -> object:
        """The object is new, or new to this process. `async def`, or `def` in a thread."""

    def modify(self, resource: Resource, /) -> object:
        """The object or its status changed."""

    def delete(self, resource: Resource, /) -> object:
        """The object was deleted; `resource` is its last known state."""

    # --- called by the runtime ---

    async def run(self) -> None:
        """Watch and call handlers until cancelled, or until the running handlers have ended after `stop`."""
        async with asyncio.TaskGroup() as group:
            streams = [group.create_task(stream.run(), name=str(stream)) for stream in self.streams]
            if not self._stopping:
                await self.worker.run()
            for stream in streams:
                stream.cancel()

    def stop(self) -> None:
        """Call no further handler."""
        self._stopping = True
        self.worker.stop()

    @property
    def stuck(self) -> bool:
        """Whether every slot is held by a handler that should have ended long ago."""
        return self.worker.stuck

    def _as_controller(self) -> Controller[Any]:
        """A controller whose class has the name of the watcher, for the logs of the worker."""
        settings = {"resource": self._kind, "max_concurrent": self.max_concurrent, "timeout": self.timeout}
        made: type[Controller[Any]] = type(str(self), (_Shown,), settings)
        return made()

    async def _show(self, axn: Axn[Any]) -> None:
        """The step: call the handler of the action, if it is defined."""
        handlers = {Action.ADD: self.add, Action.MODIFY: self.modify, Action.DELETE: self.delete}
        handler = handlers.get(axn.action)
        if handler is None or getattr(handler, "__func__", None) is getattr(Watcher, axn.action.value):
            return
        metadata = {"watcher": str(self), "object": str(axn.key), "action": axn.action.value}
        began = time.monotonic()
        try:
            await call(handler, axn.resource, seconds=self.timeout)
            execute("bonny.watcher.handle.succeeded", {"duration": time.monotonic() - began}, metadata)
        except Exception as error:
            if not isinstance(error, Retry | Wait):
                measurements = {"duration": time.monotonic() - began}
                execute("bonny.watcher.handle.failed", measurements, {**metadata, "error": error})
            raise
