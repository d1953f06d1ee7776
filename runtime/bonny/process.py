"""Process: one run of an operator.

Start order: probes, streams, the lease, work. A standby is everything but work: its caches are warm and it is ready, so
that taking over is a matter of the lease alone. Stop order: intake, running handlers within the grace period, events,
the lease, streams, probes.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import time
from collections.abc import Coroutine, Sequence
from dataclasses import replace
from typing import Any, Final, Protocol

from . import health, metrics
from .axn import Action
from .client.api import Client
from .client.config import Cluster
from .config import Config
from .controller import Controller, Restart
from .core.queue import QueueOptions
from .events import EventRecorder
from .kinds import Kind, Owned
from .operator import Operator
from .pipeline import Pipeline
from .resource import MANAGED_BY
from .servers.intake import Intake
from .servers.orphans import find_orphans
from .servers.periodic import PeriodicTasks
from .servers.reflector import Reflector
from .servers.server import EVERYWHERE, Server
from .servers.worker import Worker
from .web.probes import Probes, Report

__all__ = ["Process"]

# So much of a list is few enough objects to be scanned for cycles without harm.
FREEZE_SECONDS: Final = 0.25
# 100,000 objects are handled in half of that; a queue that is never empty must not go on for ever.
FIRST_WAVE_SECONDS: Final = 60.0
# The last events of a process are not worth more of a pod's 30 s.
EVENTS_SECONDS: Final = 2.0
ORPHANS_NAMED: Final = 5

log = logging.getLogger("bonny.process")


class Part(Protocol):
    """Something that runs by itself."""

    async def run(self) -> None: ...


class Process:
    """One run of an operator: start it, wait, stop it."""

    def __init__(self, operator: Operator, config: Config, cluster: Cluster) -> None:
        self.operator = operator
        self.config = config
        self.cluster = cluster
        self.workers: list[Worker] = []
        self.servers: list[Server] = []
        self.reflectors: dict[tuple[str, str, str | None, str, str, bool], Reflector] = {}
        """By API version, plural, namespace, selectors, and whether only metadata is followed."""

        self.probes = Probes(
            host=config.http_host,
            port=config.http_port,
            health=self.health,
            readiness=self.readiness,
            metrics=self.metrics,
        )
        self._started = False
        self.abandoned = False
        """After the stop: whether a handler still runs that would not be cancelled."""

        self._parts: list[asyncio.Task[None]] = []
        """What goes on until the stop."""

        self._once: list[asyncio.Task[None]] = []
        self._dropped: list[str] = []
        """What failed and is not to be started again."""

    async def run(self, stop: asyncio.Event) -> None:
        """Serve until `stop` is set, then stop in order.

        Raises: `UsageError` when the credentials cannot be read or the probes' port is taken.
        """
        client = Client(self.cluster, user_agent=self.operator.user_agent)
        try:
            await client.connection()
            await self.probes.start()
            try:
                self._assemble(client)
                self._start()
                self._begin_work()
                await stop.wait()
                await self._stop()
            finally:
                # After an error or a cancellation nothing may go on with a client that is closed.
                await self._cancel()
                await self.probes.stop()
        finally:
            await client.close()
        log.info("stopped")

    # --- assembling ---------------------------------------------------------------------------------------------------

    def _assemble(self, client: Client) -> None:
        operator, pipeline = self.operator, Pipeline(self.operator.steps)
        reporter = f"{operator.group}/{operator.name}"
        self.recorder = EventRecorder(client, controller=reporter, instance=self.config.pod_name)
        self.tasks = PeriodicTasks(client, operator.tasks)
        self.tasks.leading = False
        for controller_class in operator.controllers:
            controller = controller_class()
            _warn(controller_class, operator.group)
            for kind in controller_class.kinds(operator.group):
                intake = Intake(
                    primary=self._followed(client, kind),
                    owned={owned: self._followed(client, self._ours(owned)) for owned in controller_class.owns},
                    related={related: self._followed(client, related) for related in controller_class.related},
                    options=QueueOptions(),
                    on_status=controller_class.on_status,
                )
                worker = Worker(
                    operator=operator.name,
                    group=operator.group,
                    controller=controller,
                    kind=kind,
                    client=client,
                    recorder=self.recorder,
                    tasks=self.tasks,
                    intake=intake,
                    pipeline=pipeline,
                )
                self.workers.append(worker)
        namespaces = self.config.watch_namespaces or EVERYWHERE
        self.servers = [server(client, namespaces=namespaces, tasks=self.tasks) for server in operator.servers]

    def _followed(self, client: Client, kind: Kind) -> list[Reflector]:
        """The streams of a kind: one, or one for each watched namespace; shared by all who ask for the same."""
        namespaces: Sequence[str | None] = self.config.watch_namespaces or (None,)
        if not kind.namespaced or kind.namespace is not None:
            namespaces = (kind.namespace,)
        return [self._reflector(client, kind, namespace) for namespace in namespaces]

    def _reflector(self, client: Client, kind: Kind, namespace: str | None) -> Reflector:
        name = (kind.api_version, kind.plural, namespace, kind.label_selector, kind.field_selector, kind.metadata_only)
        if name not in self.reflectors:
            self.reflectors[name] = Reflector(client, kind, namespace=namespace, options=self.operator.watch_options)
        return self.reflectors[name]

    def _ours(self, owned: Owned) -> Owned:
        """Only what this operator manages: the cluster's other Secrets stay out of its memory."""
        ours = f"{MANAGED_BY}={self.operator.name}"
        return replace(owned, label_selector=f"{owned.label_selector},{ours}" if owned.label_selector else ours)

    # --- running ------------------------------------------------------------------------------------------------------

    def _start(self) -> None:
        """Everything that a standby does, too."""
        log.info(
            "started",
            extra={
                "operator": self.operator.name,
                "cluster": self.cluster.source,
                "watches": self.config.watched,
                "controllers": ",".join(worker.name for worker in self.workers) or "none",
                "port": self.probes.port,
            },
        )
        standby: list[Part] = [*self.reflectors.values(), self.recorder, self.tasks]
        for part in standby:
            self._run(part)
        self._once.append(asyncio.create_task(self._after_first_sync(time.monotonic()), name="the first sync"))
        self._started = True  # told apart from having parts: an operator without controllers is ready, too

    def _begin_work(self) -> None:
        """What only the leader does."""
        self.tasks.leading = True
        for worker in self.workers:
            self._run(worker, restart=worker.restart)
        for server in self.servers:
            self._run(server)

    def _run(self, part: Part, *, restart: Restart = Restart.PERMANENT) -> None:
        self._parts.append(asyncio.create_task(self._forever(part, restart), name=str(part)))

    async def _forever(self, part: Part, restart: Restart) -> None:
        """Run a part that never ends by itself; an error outside of handlers is reported, and it goes on."""
        while True:
            try:
                return await part.run()
            except Exception:
                log.exception("a part of the operator failed: please report this", extra={"part": str(part)})
            if restart is Restart.TEMPORARY:
                self._dropped.append(f"{part}: failed, and is not started again")
                # It has not ended, for the probes: that is what `temporary` asks for.
                await asyncio.Event().wait()
            # A pause, so that an error which comes at once does not fill the log.
            await asyncio.sleep(1.0)

    async def _after_first_sync(self, began: float) -> None:
        """Once every stream is in sync, or waits for a person: say so, and report what was left behind."""
        streams = self.reflectors.values()
        settled = asyncio.gather(*(stream.settled() for stream in streams))
        try:
            while not settled.done():
                await asyncio.wait({settled}, timeout=FREEZE_SECONDS)
                # What is listed lives long; looking for cycles in 100,000 objects would hold the loop for 130 ms.
                gc.freeze()
        finally:
            settled.cancel()
        figures = {
            "objects": sum(len(stream.store) for stream in streams),
            "seconds": round(time.monotonic() - began, 3),
        }
        log.info("in sync", extra={**figures, "blocked": sum(stream.blocked for stream in streams)})
        orphans = await find_orphans([worker.intake for worker in self.workers])
        if orphans:
            named = ", ".join(orphan.child for orphan in orphans[:ORPHANS_NAMED])
            left = sum(not orphan.collected for orphan in orphans)
            extra = {"count": len(orphans), "without_owner_reference": left, "examples": named}
            log.warning("children whose owner is gone", extra=extra)
        # So does what is remembered of having handled all that.
        ends = time.monotonic() + FIRST_WAVE_SECONDS
        while time.monotonic() < ends and any(worker.intake.queue.ready for worker in self.workers):
            await asyncio.sleep(FREEZE_SECONDS)
            gc.freeze()

    async def _stop(self) -> None:
        log.info("stopping", extra={"grace_seconds": self.config.grace})
        ends = time.monotonic() + self.config.grace
        self.tasks.stop()
        for worker in self.workers:
            worker.stop()
        for server in self.servers:
            server.stop()
        drained = await asyncio.gather(
            *(worker.drain(seconds=max(ends - time.monotonic(), 0.0)) for worker in self.workers),
            *(self._ended(str(part), by=ends) for part in (*self.servers, self.tasks)),
        )
        await self.recorder.drain(seconds=EVENTS_SECONDS)
        self.abandoned = any(worker.abandoned for worker in self.workers)
        if not all(drained):
            log.warning("handlers were cancelled: the grace period was over")
        await self._cancel()

    async def _ended(self, name: str, *, by: float) -> bool:
        """Wait for what was told to stop; cancel it when its time is over. Returns: whether it ended by itself."""
        running = [part for part in self._parts if part.get_name() == name]
        if not running:
            return True
        _, pending = await asyncio.wait(running, timeout=max(by - time.monotonic(), 0.0))
        for part in pending:
            part.cancel()
        return not pending

    async def _cancel(self) -> None:
        tasks = [*self._parts, *self._once]
        for task in tasks:
            task.cancel()
        draining: list[Coroutine[Any, Any, bool]] = [worker.drain(seconds=0.0) for worker in self.workers]
        await asyncio.gather(*tasks, *draining, return_exceptions=True)

    # --- probes -------------------------------------------------------------------------------------------------------

    def health(self) -> Report:
        """What /healthz answers."""
        options = self.operator.watch_options
        return health.liveness(options, self.reflectors.values(), self.workers, self._parts)

    def readiness(self) -> Report:
        """What /readyz answers."""
        return health.readiness(self.reflectors.values(), started=self._started, also=self._dropped)

    def metrics(self) -> str:
        """What /metrics answers."""
        if not self._started:
            return ""
        parts = (list(self.reflectors.values()), self.servers, self.recorder, self.tasks, self.tasks.client.requests)
        return metrics.text(metrics.Parts(self.operator.name, self.workers, *parts))


def _warn(controller: type[Controller[Any]], group: str) -> None:
    """Say what a controller's own definition keeps it from doing."""
    name = {"controller": controller.__name__}
    if not controller.finalizes():
        if controller.handles(Action.DELETE):
            missed = "objects that vanish while no process runs get no `delete`: define `finalize` to miss none"
            log.warning("delete without finalize", extra={**name, "because": missed})
        if any(kind.namespaced for kind in controller.kinds(group)):
            for owned in controller.owns:
                if not owned.namespaced:
                    told = {**name, "kind": owned.resource, "then": "define `finalize`, which deletes them"}
                    log.warning("cluster-scoped children stay when their owner is deleted", extra=told)
    if controller.owns and not controller.prunes():
        because = "add or modify is defined, which may register others than reconcile does"
        log.info("children that are no longer registered are not pruned", extra={**name, "because": because})
