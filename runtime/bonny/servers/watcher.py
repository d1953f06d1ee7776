"""Watcher: tells of every object of a kind that is added, changed or gone, its status included.

    class PodLifecycleLogger(Watcher):
        operation = List("v1", "Pod")

        async def add(self, pod: Resource) -> None: ...
        async def modify(self, pod: Resource) -> None: ...
        async def delete(self, pod: Resource) -> None: ...

You need it to look on: logs, audits, mirrors outside of the cluster.
You do not need it to own children or to write a status: `Controller`.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any, ClassVar

from ..axn import Action, Axn
from ..calling import call
from ..client.api import Client
from ..controller import Controller
from ..core.queue import QueueOptions
from ..core.watch import WatchOptions
from ..engine.context import Mute
from ..engine.router import Intake
from ..engine.stream import Reflector
from ..engine.worker import Worker
from ..errors import Retry
from ..pipeline import Pipeline
from ..resource import Resource
from ..telemetry import execute
from .periodic import PeriodicTasks
from .server import EVERYWHERE, Namespaces, Server

__all__ = ["Watcher"]


class _Shown(Controller[Any]):
    """What a worker asks its controller for; the handlers are called by the one step of the pipeline."""

    on_status = True

    async def delete(self, axn: Axn[Any]) -> None:
        """There is one: deletions are waited for and shown."""


class Watcher(Server):
    """Calls `add`, `modify` and `delete` with the objects of its `operation`; those that are not defined do nothing.

    Guarantees: the last state of each object is shown, and its end; states in between may be left out, and an object
    that came and went meanwhile is only shown to `delete`. Calls for one name come one after the other, in order, the
    end of an object before another one of its name. What raised is called again as a controller's handlers are
    (`Retry` and `Terminal` included). A change of nothing but managedFields and resourceVersion is none.
    Does not: remember. After a restart everything is added anew, and what went meanwhile is not shown.
    RBAC: get, list and watch of the kind; what handlers ask for is added to `rules`.
    """

    watch_options: ClassVar[WatchOptions] = WatchOptions()
    """How the kind is followed. Default: as an operator's kinds are."""

    verbs = ("get", "list", "watch")

    def __init__(
        self, client: Client, *, namespaces: Namespaces = EVERYWHERE, tasks: PeriodicTasks | None = None
    ) -> None:
        super().__init__(client, namespaces=namespaces, tasks=tasks)
        kind, options = self.kind(), self.watch_options
        self.reflectors = [Reflector(client, kind, namespace=name, options=options) for name in self.namespaces]
        """Its streams, for the probes."""

        self.worker = Worker(
            operator=str(self),
            group="watchers",
            controller=self._as_controller(),
            kind=kind,
            client=client,
            recorder=Mute(),
            intake=Intake(primary=self.reflectors, owned={}, options=QueueOptions(), on_status=True),
            pipeline=Pipeline((self._show,)),
        )
        """What calls the handlers, for the probes."""

    # --- what users define --------------------------------------------------------------------------------------------

    def add(self, resource: Resource, /) -> object:
        """The object is new, or new to this process; `async def`, or `def` in a thread."""

    def modify(self, resource: Resource, /) -> object:
        """The object changed, be it only its status."""

    def delete(self, resource: Resource, /) -> object:
        """The object is gone; `resource` is its last known state."""

    # --- running ------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Watch and call handlers until cancelled, or until the running handlers have ended after `stop`."""
        async with asyncio.TaskGroup() as group:
            streams = [group.create_task(stream.run(), name=str(stream)) for stream in self.reflectors]
            await self.worker.run()
            for stream in streams:
                stream.cancel()

    def stop(self) -> None:
        """Call no further handler."""
        self.worker.stop()

    @property
    def stuck(self) -> bool:
        """Whether every slot is held by a handler that should have ended long ago."""
        return self.worker.stuck

    def _as_controller(self) -> Controller[Any]:
        """Of a class with our name, which goes into the logs of the worker."""
        settings = {"resource": self.kind(), "max_concurrent": self.max_concurrent, "timeout": self.timeout}
        made: type[Controller[Any]] = type(str(self), (_Shown,), settings)
        return made()

    async def _show(self, axn: Axn[Any]) -> None:
        """The step: call the handler for the action, where one is defined."""
        handlers = {Action.ADD: self.add, Action.MODIFY: self.modify, Action.DELETE: self.delete}
        handler = handlers.get(axn.action)
        if handler is None or getattr(handler, "__func__", None) is getattr(Watcher, axn.action.value):
            return
        told, began = {"watcher": str(self), "object": str(axn.key), "action": axn.action.value}, time.monotonic()
        try:
            await call(handler, axn.resource, seconds=self.timeout)
            execute("bonny.watcher.handle.succeeded", {"duration": time.monotonic() - began}, told)
        except Exception as error:
            if not isinstance(error, Retry):
                figures = {"duration": time.monotonic() - began}
                execute("bonny.watcher.handle.failed", figures, {**told, "error": error})
            raise
