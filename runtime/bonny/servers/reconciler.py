"""Reconciler: looks at all objects of a kind again and again, every so many seconds, whether they changed or not.

    class PodPrinter(Reconciler):
        frequency = 15.0
        operation = List("v1", "Pod", namespace="default")

        async def reconcile(self, pod: Resource) -> None:
            print(pod["metadata"]["name"])

You need it where time is the reason to look: chaos, reports, clean-ups. It keeps no objects in memory.
You do not need it to react to changes: `Controller`, or `Watcher`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from typing import ClassVar

from ..calling import HandlerTimeout, call, report, stopping
from ..client.api import Client
from ..client.pages import pages
from ..engine.worker import STUCK_SECONDS
from ..errors import InvalidObject
from ..resource import Key, Resource, key_of
from ..telemetry import execute, lifetime
from ..telemetry.logging import about
from .periodic import PeriodicTasks, next_tick, pause
from .server import EVERYWHERE, Namespaces, Server

__all__ = ["Reconciler"]

log = logging.getLogger("bonny.servers.reconciler")


class Reconciler(Server):
    """Calls `reconcile` for every object of its `operation`, at once and then every `frequency` seconds.

    Guarantees: runs do not overlap; a tick that comes while one is under way is left out, and the others stay on time.
    An object that fails, hangs or exits holds up no other, and comes again with the next run.
    RBAC: list of the kind; what `reconcile` asks for is added to `rules`.
    """

    frequency: ClassVar[float] = 30.0
    """Seconds from the beginning of one run to that of the next. Default 30."""

    def __init__(
        self, client: Client, *, namespaces: Namespaces = EVERYWHERE, tasks: PeriodicTasks | None = None
    ) -> None:
        super().__init__(client, namespaces=namespaces, tasks=tasks)
        self._name = {"reconciler": str(self)}
        self._slots = asyncio.Semaphore(self.max_concurrent)
        self._held: dict[Key, float] = {}
        """What is being handled, also by threads of earlier runs whose time is over, and since when."""

        self._listed = self._failed = 0
        self._wake = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping = False

    # --- what users define --------------------------------------------------------------------------------------------

    def reconcile(self, resource: Resource, /) -> object:
        """Look at one object; `async def`, or `def` in a thread. An error is reported, any result means success."""
        raise NotImplementedError

    async def reconcilable_resources(self) -> AsyncIterator[Resource]:
        """The objects of one run, as an async generator. Default: all of `operation`, page by page."""
        kind = self.kind()
        for namespace in self.namespaces:
            async for page in pages(self.client, kind, namespace=namespace):
                for item in page.items:
                    try:
                        yield {**item.decode(), "apiVersion": kind.api_version, "kind": kind.kind}
                    except InvalidObject as error:
                        report(log.warning, "an object was left out", error, self._name)

    # --- running ------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Run at each tick until cancelled, or until what is being handled has ended after `stop`."""
        self._loop = asyncio.get_running_loop()
        start = time.monotonic()
        with lifetime("bonny.reconciler", self._name):
            while not self._stopping:
                self._wake.clear()
                await self.run_once()
                await pause(next_tick(start, self.frequency, after=time.monotonic()), wake=self._wake)

    async def run_once(self) -> None:
        """Look at every object once; what goes wrong on the way is reported, not raised."""
        execute("bonny.reconciler.run.started", {}, self._name)
        began, run = time.monotonic(), asyncio.current_task()
        self._listed = self._failed = 0
        stopping.set(lambda: run is not None and run.cancelling() > 0)
        async with asyncio.TaskGroup() as group:
            # In a task of its own, which user code may cancel without an end of the run.
            group.create_task(self._fetch(group))
        measurements = {"duration": time.monotonic() - began, "resources": self._listed, "failed": self._failed}
        execute("bonny.reconciler.run.finished", measurements, self._name)

    async def _fetch(self, group: asyncio.TaskGroup) -> None:
        """Let each resource be reconciled, in a task of `group`."""
        began, failure = time.monotonic(), None
        try:
            await call(self._begin_all, group)
        except Exception as error:  # noqa: BLE001  the next run fetches again
            failure = error
            report(log.warning, "cannot list the objects to reconcile", error, self._name)
        measurements = {"duration": time.monotonic() - began, "resources": self._listed}
        if failure is None:
            execute("bonny.reconciler.fetch.succeeded", measurements, self._name)
        else:
            execute("bonny.reconciler.fetch.failed", measurements, {**self._name, "error": failure})

    async def _begin_all(self, group: asyncio.TaskGroup) -> None:
        async for resource in self.reconcilable_resources():
            if self._stopping:
                break
            self._listed += 1
            key = key_of(resource)
            if key not in self._held:
                await self._slots.acquire()
                self._held[key] = time.monotonic()
                group.create_task(self._reconcile_one(key, resource))

    def schedule(self, seconds: float = 0.0) -> None:
        """Run once more in so many seconds, between the ticks. From any thread; without effect before `run`."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._loop.call_later, seconds, self._wake.set)

    def stop(self) -> None:
        """Take up no further object and no further run; what is being handled goes on to its end."""
        self._stopping = True
        self._wake.set()

    @property
    def stuck(self) -> bool:
        """Whether every slot is held by a handler that should have ended long ago: no run ends any more."""
        full = len(self._held) >= self.max_concurrent
        return full and time.monotonic() - max(self._held.values()) > self.timeout + STUCK_SECONDS

    async def _reconcile_one(self, key: Key, resource: Resource) -> None:
        metadata, began = {**self._name, "object": str(key)}, time.monotonic()
        about(**metadata)
        thread = None
        try:
            await call(self.reconcile, resource, seconds=self.timeout)
            execute("bonny.reconciler.reconcile.succeeded", {"duration": time.monotonic() - began}, metadata)
        except Exception as error:  # noqa: BLE001  whatever it is, it is this object's alone
            self._failed += 1
            thread = error.thread if isinstance(error, HandlerTimeout) else None
            measurements = {"duration": time.monotonic() - began}
            execute("bonny.reconciler.reconcile.failed", measurements, {**metadata, "error": error})
            report(log.warning, "reconcile failed", error, metadata)
        finally:
            # A thread cannot be stopped: its object and its slot stay taken until it returns.
            if thread is None:
                self._release(key)
            else:
                thread.add_done_callback(lambda _: self._release(key))

    def _release(self, key: Key) -> None:
        del self._held[key]
        self._slots.release()
