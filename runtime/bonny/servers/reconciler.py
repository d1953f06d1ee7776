"""Reconciler: calls a handler for every object of a kind at an interval, whether the object changed or not.

    class PodPrinter(Reconciler):
        frequency = 15.0
        operation = List("v1", "Pod", namespace="default")

        async def reconcile(self, pod: Resource) -> None:
            print(pod["metadata"]["name"])

You need it for work that is due by time: chaos, reports, clean-ups. It keeps no objects in memory.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from typing import Any, ClassVar

from ..calling import HandlerTimeout, call, report, stopping
from ..client.api import Client
from ..client.pages import pages
from ..engine.worker import STUCK_SECONDS
from ..errors import InvalidObject, OptionError
from ..resource import Key, Resource, key_of
from ..telemetry import execute, lifetime
from ..telemetry.logging import about
from .periodic import PeriodicTasks
from .ticks import IntervalTicks, cron_ticks
from .visitor import Namespaces, ObjectVisitor, V

log = logging.getLogger("bonny.servers.reconciler")


class Reconciler(ObjectVisitor[V]):
    """Calls `reconcile` for every object of its `operation`, at once and then every `frequency` seconds, or at the
    times of `cron`.

    Guarantees: runs do not overlap; a tick during a run is skipped, and later ticks are on time. A handler that fails,
    hangs or calls sys.exit affects its own object only, which is tried again in the next run.
    RBAC: list of the kind; add the permissions of `reconcile` to `rules`.
    """

    frequency: ClassVar[float] = 30.0
    """Seconds from the start of one run to the start of the next. Default 30."""

    cron: ClassVar[str] = ""
    """Run at these times only, instead of `frequency`, as in a CronJob: `*/5 * * * *`. Needs the extra `cron`. Default:
    none."""

    timezone: ClassVar[str] = "UTC"
    """The time zone of `cron`: `Europe/Berlin`. Default UTC."""

    def __init__(self, client: Client, *, namespaces: Namespaces = (None,), tasks: PeriodicTasks | None = None) -> None:
        super().__init__(client, namespaces=namespaces, tasks=tasks)
        self._name = {"reconciler": str(self)}
        self._slots = asyncio.Semaphore(self.max_concurrent)
        self._held: dict[Key, float] = {}
        """Start times of running handlers, including threads that exceeded their timeout in an earlier run."""

        self._listed = self._failed = 0
        self._wake = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping = False

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if cls.cron:
            cron_ticks(cls.cron, cls.timezone, name=cls.__name__)
            if cls.frequency != Reconciler.frequency:
                raise OptionError(f"{cls.__name__} has cron and frequency: leave out either")

    # --- your methods ---

    def reconcile(self, resource: Resource, /) -> object:
        """The handler: `async def`, or `def` in a thread. An error is logged; any result means success."""
        raise NotImplementedError

    async def reconcilable_resources(self) -> AsyncIterator[Resource]:
        """The objects of one run, as an async generator. Default: all objects of `operation`, page by page."""
        kind = self._kind
        for namespace in tuple(self.namespaces):
            async for page in pages(self.client, kind, namespace=namespace):
                for item in page.items:
                    try:
                        yield {**item.decode(), "apiVersion": kind.api_version, "kind": kind.kind}
                    except InvalidObject as error:
                        report(log.warning, "an object was left out", error, self._name)

    def schedule(self, seconds: float = 0.0) -> None:
        """Add a run in `seconds`, between the ticks. Thread-safe; without effect before `run`."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._loop.call_later, seconds, self._wake.set)

    # --- called by the runtime ---

    async def run(self) -> None:
        """Run at each tick until cancelled, or until the running handlers have ended after `stop`."""
        self._loop = asyncio.get_running_loop()
        cron = cron_ticks(self.cron, self.timezone, name=str(self)) if self.cron else None
        ticks = cron or IntervalTicks(self.frequency)
        with lifetime("bonny.reconciler", self._name):
            if cron:
                await cron.wait(wake=self._wake)
            while not self._stopping:
                self._wake.clear()
                await self.run_once()
                await ticks.wait(wake=self._wake)

    async def run_once(self) -> None:
        """Call the handler for every object once. Errors are logged, not raised."""
        execute("bonny.reconciler.run.started", {}, self._name)
        began, run = time.monotonic(), asyncio.current_task()
        self._listed = self._failed = 0
        stopping.set(lambda: run is not None and run.cancelling() > 0)
        async with asyncio.TaskGroup() as group:
            # In a task of its own: user code that cancels its task does not end the run.
            group.create_task(self._fetch(group))
        measurements = {"duration": time.monotonic() - began, "resources": self._listed, "failed": self._failed}
        execute("bonny.reconciler.run.finished", measurements, self._name)

    async def _fetch(self, group: asyncio.TaskGroup) -> None:
        """List the objects, and reconcile each in a task of `group`."""
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

    def stop(self) -> None:
        """Call no further handler."""
        self._stopping = True
        self._wake.set()

    @property
    def stuck(self) -> bool:
        """Whether every slot is held by a handler that should have ended long ago."""
        full = len(self._held) >= self.max_concurrent
        return full and time.monotonic() - max(self._held.values()) > self.timeout + STUCK_SECONDS

    async def _reconcile_one(self, key: Key, resource: Resource) -> None:
        metadata, began = {**self._name, "object": str(key)}, time.monotonic()
        about(**metadata)
        thread = None
        try:
            await call(self.reconcile, resource, seconds=self.timeout)
            execute("bonny.reconciler.reconcile.succeeded", {"duration": time.monotonic() - began}, metadata)
        except Exception as error:  # noqa: BLE001  it affects this object alone
            self._failed += 1
            thread = error.thread if isinstance(error, HandlerTimeout) else None
            measurements = {"duration": time.monotonic() - began}
            execute("bonny.reconciler.reconcile.failed", measurements, {**metadata, "error": error})
            report(log.warning, "reconciler failed for an object", error, metadata)
        finally:
            # A thread cannot be stopped: its object and its slot stay taken until it returns.
            if thread is None:
                self._release(key)
            else:
                thread.add_done_callback(lambda _: self._release(key))

    def _release(self, key: Key) -> None:
        del self._held[key]
        self._slots.release()
