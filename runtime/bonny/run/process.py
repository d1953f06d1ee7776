"""Process: one run of an operator.

Start order: probes, lifespans, streams, the lease, work. A standby does everything but the work: its caches are warm
and it is ready, so taking over depends on the lease alone. A replica that loses the lease stops its work and stands by
again. Stop order: new work, running handlers within the grace period, events and lifespans, the lease, streams, probes.
Extras serve from before the first list until work has ended, and may delay the stop until what they serve is drained.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any, Final

from ..carried import load
from ..client.api import Client
from ..client.config import Cluster, own_namespace
from ..controller import Controller, Restart
from ..core.records import Action
from ..engine.stream import Stream
from ..engine.worker import Worker
from ..events import EventRecorder
from ..extras import ExtraRun, NamespaceChoice, of_operator
from ..operator import Operator
from ..pipeline import Pipeline
from ..servers.periodic import PeriodicTasks
from ..servers.visitor import Namespaces, ObjectVisitor
from . import health
from .config import Config
from .event_loop import LoopMonitor, create_task
from .leader import Leadership, own_identity
from .lifespans import Lifespans
from .probes import Pages, Probes, Report
from .streams import Streams, expire_tombstones, report_first_sync
from .supervisor import CANCEL_SECONDS, Runnable, Stoppable, Supervised, Term, cancelled, first_of

# The manifest adds this to the handlers' time in the pod's grace period.
EVENTS_SECONDS: Final = 2.0
# How often to look for the end of handler threads, which send no notification.
THREAD_SECONDS: Final = 0.05

log = logging.getLogger("bonny.run.process")


class Process:
    """One run of an operator: start it, wait, stop it."""

    def __init__(self, operator: Operator, config: Config, cluster: Cluster) -> None:
        self.operator = operator
        self.config = config
        self.cluster = cluster
        self.workers: list[Worker] = []
        self.servers: list[ObjectVisitor] = []
        self.extras: list[ExtraRun] = []
        self._pages = Pages({"/healthz": self.health, "/readyz": self.readiness}, self.exposition)
        self.probes = Probes(self._pages, config.http_host, config.http_port)
        self.monitor = LoopMonitor()
        opened = load("lifespan", what="a lifespan").Lifespans if operator.opened else Lifespans
        self.lifespans: Lifespans = opened()
        self.term = Term()
        self.own_namespace: str = config.pod_namespace or own_namespace()
        self._namespaces: Namespaces = (None,) if config.watch_namespaces is None else [*config.watch_namespaces]
        made = Streams if self._namespaces else config.of(NamespaceChoice).streams
        self.streams = made(operator, self._namespaces, self._restored)
        self._started = False
        self._worker: Callable[..., Worker] = Worker
        self._recorder = EventRecorder
        self._lasting: dict[Runnable, Supervised] = {}
        """Parts that run until the process stops, streams among them."""

        self._once: list[asyncio.Task[None]] = []
        self._leadership: Leadership | None = None

    async def run(self, stop: asyncio.Event) -> None:
        """Serve until `stop` is set, then stop in order.

        Raises: `UsageError` when the credentials cannot be read, a port is taken, or an extra cannot start.
        """
        self.lifespans.stop = stop
        async with AsyncExitStack() as closing:
            asyncio.get_running_loop().set_task_factory(create_task)
            closing.enter_context(self.monitor)
            fence = None
            if self.config.leader_election:
                # A client of its own: what the lease needs must not wait behind anything else.
                voter = await closing.enter_async_context(self.connected())
                self._leadership, fence = self._candidate(voter)
            client = await closing.enter_async_context(self.connected(fence))
            # A plugin that makes credentials may wait for a person.
            await first_of(client.connection(), stop.wait())
            if stop.is_set():
                return
            self._assemble(client)
            await self.probes.start()
            closing.push_async_callback(self.probes.stop)
            closing.push_async_callback(self.lifespans.leave)
            # After an error or a cancellation nothing may go on with a closed client.
            closing.push_async_callback(self._cancel)
            of_extras = (part for extra in self.extras for part in extra.lifespans)
            await self.lifespans.enter([*self._controllers, *self.servers, *of_extras])
            if stop.is_set():
                return
            for extra in self.extras:
                await closing.enter_async_context(extra.serving())
            drained = asyncio.Event()
            self._once.append(asyncio.create_task(_drain(self.extras, stop, drained), name="the drain"))
            self._start()
            await self._serve(drained)
        log.info("stopped")

    def connected(self, fence: Callable[[], float] | None = None) -> Client:
        """A client of its own, to be entered; it starts no write unless `fence` returns more than 0 seconds."""
        operator = self.operator
        return Client(self.cluster, user_agent=operator.user_agent, fence=fence, group=operator.group)

    def _candidate(self, voter: Client) -> tuple[Leadership, Callable[[], float]]:
        operator, own = self.operator, {"namespace": self.own_namespace, "identity": own_identity()}
        leadership = Leadership(voter, name=operator.name, timing=operator.lease, **own)
        return leadership, leadership.remaining

    async def _serve(self, stop: asyncio.Event) -> None:
        """Work until `stop` is set, as long as this replica leads; then stop in order."""
        leadership = self._leadership
        if leadership is None:
            self._begin_term()
            await stop.wait()
            await self._finish()
            return
        self._lasting[leadership] = Supervised(leadership, restart=Restart.TRANSIENT)
        routers, kept = [worker.router for worker in self.workers], 2.0 * self.operator.lease.lease_duration
        while not stop.is_set():
            standing_by = asyncio.create_task(expire_tombstones(routers, seconds=kept))
            await first_of(stop.wait(), leadership.acquired())
            standing_by.cancel()
            if stop.is_set():
                break
            await self._list_again()
            self._begin_term()
            await first_of(stop.wait(), leadership.lost.wait())
            if stop.is_set():
                break
            # Work that still runs when the lease expires ends the process (the watchdog of `bonny.run.leader`).
            await self._end_term(grace=0.0)
            while self.term.working and not stop.is_set():  # noqa: ASYNC110  threads send no notification
                await asyncio.sleep(THREAD_SECONDS)
            if not self.term.working:
                await self._renew_servers()
                leadership.stood_down()
        if not (self.tasks.leading or self.term.working):
            # A standby must not take the lease while its last tasks end.
            await leadership.release()
        await self._finish()
        await leadership.release()

    # --- assembling ---

    def _assemble(self, client: Client) -> None:
        operator = self.operator
        self.client = self.streams.client = client
        reporter = f"{operator.group}/{operator.name}"
        self.recorder = self._recorder(client, controller=reporter, instance=self.config.pod_name)
        self.tasks = PeriodicTasks(client, operator.tasks)
        self.tasks.leading = False
        shared: dict[str, Any] = {"operator": operator.name, "group": operator.group, "client": client}
        shared |= {"recorder": self.recorder, "tasks": self.tasks, "pipeline": Pipeline(operator.steps)}
        self._controllers = [controller_class() for controller_class in operator.controllers]
        for controller in self._controllers:
            controller_class = type(controller)
            _warn(controller_class, operator.group)
            for kind in controller_class.kinds(operator.group):
                router = self.streams.router(controller_class, kind)
                self.workers.append(self._worker(controller=controller, kind=kind, router=router, **shared))

        self.servers = self._new_servers()
        self.extras = [run for extra in of_operator(operator) if (run := extra.run(self)) is not None]
        if any(extra.replaces_metrics for extra in self.extras):
            self._pages.metrics = None

    async def _renew_servers(self) -> None:
        """Make the servers of the next term, each with its lifespan."""
        await self.lifespans.leave(self.servers)
        self.servers = self._new_servers()
        await self.lifespans.enter(self.servers)

    def _new_servers(self) -> list[ObjectVisitor]:
        """Servers for one term; a server that was stopped cannot run again."""
        servers = [
            server(self.tasks.client, namespaces=self._namespaces, tasks=self.tasks) for server in self.operator.servers
        ]
        for stream in (stream for server in servers for stream in server.streams):
            stream.on_restore = self._restored
        return servers

    # --- running ---

    def _start(self) -> None:
        """Start the parts that a standby runs, too."""
        log.info(
            "started",
            extra={
                "operator": self.operator.name,
                "cluster": self.cluster.source,
                "watches": self.config.watched,
                "controllers": ",".join(worker.name for worker in self.workers) or "none",
                "port": self.probes.port,
                **{name: value for extra in self.extras for name, value in extra.started().items()},
            },
        )
        others = (self.recorder, *(part for extra in self.extras for part in extra.lasting))
        self._lasting = {part: Supervised(part) for part in (*self.streams, *others)}
        self._lasting[self.tasks] = Supervised(self.tasks, restart=Restart.TRANSIENT)
        first_sync = report_first_sync(list(self.streams))
        self._once.append(asyncio.create_task(first_sync, name="the first sync"))
        self._started = True

    def _begin_term(self) -> None:
        """Start the parts that only the leader runs."""
        self.term.begin(self._singles() | {worker: worker.restart for worker in self.workers})

    def _singles(self) -> dict[Stoppable, Restart]:
        self.tasks.leading = True
        servers: list[Stoppable] = [*self.servers, *(part for extra in self.extras for part in extra.term())]
        return dict.fromkeys(servers, Restart.PERMANENT)

    async def _list_again(self) -> None:
        """List what extras rely on: a standby's streams may have fallen silent without notice.

        All other writes name the version or the UID that a stream showed, or read the object first.
        """
        for stream in [stream for extra in self.extras for stream in extra.relisted()]:
            await cancelled([self._lasting[stream].task])
            stream.prepare_relist()
            self._lasting[stream] = Supervised(stream)

    def _restored(self, noticed: Stream) -> None:
        """The server was restored from a backup, as one stream noticed.

        The others may be watching from a version that the restored server has passed already, or has not reached yet:
        they would show the old history, in silence.
        """
        for stream in self._all_streams():
            if stream is not noticed:
                stream.distrust()

    async def _finish(self) -> None:
        """End the last term, or a standby."""
        self.tasks.stop()
        await self._end_term(grace=self.config.grace)
        await asyncio.gather(self.recorder.drain(seconds=EVENTS_SECONDS), self.lifespans.leave())

    async def _end_term(self, *, grace: float) -> None:
        log.info("stopping", extra={"grace_seconds": grace})
        self.tasks.leading = False
        await self.term.end(self.tasks.ending, grace=grace)

    async def _cancel(self) -> None:
        running = (*self._lasting.values(), *self.term.parts.values())
        await cancelled([*(part.task for part in running), *self._once], seconds=CANCEL_SECONDS)

    # --- probes ---

    def health(self) -> Report:
        """The answer of /healthz."""
        running = (*self._lasting.values(), *self.term.parts.values())
        tasks = [part.task for part in running if not part.final]
        slots = [part for part in self.term.parts if isinstance(part, Worker | ObjectVisitor)]
        return health.liveness(self.operator.watch_options, self._all_streams(), slots, tasks)

    def readiness(self) -> Report:
        """The answer of /readyz."""
        notes = [] if self._leadership is None else ["leading" if self._leadership.remaining() else "standing by"]
        notes += [f"{name}: its lifespan is not entered" for name in self.lifespans.waiting()]
        if self._started:
            # Without the error, which may hold secrets: anyone who reaches the port may ask.
            notes += [f"task {name}: halted by an error, see the log" for name in list(self.tasks.halted)]
        dropped = [f"{part}: failed, and is not started again" for part, task in self.term.parts.items() if task.failed]
        for extra in self.extras:
            noted, failing = extra.problems()
            notes += noted
            dropped += failing
        return health.readiness(self._all_streams(), started=self._started, notes=notes, dropped=dropped)

    def _all_streams(self) -> list[Stream]:
        running = (part for part in self.term.parts if isinstance(part, ObjectVisitor))
        of_extras = (stream for extra in self.extras for stream in extra.streams)
        return [*self.streams, *of_extras, *(stream for server in running for stream in server.streams)]

    def exposition(self, accept: str = "") -> tuple[bytes, str]:
        """Answer /metrics: the text and its content type."""
        # prometheus-client is not needed before the first scrape.
        from ..telemetry.prometheus import exposition  # noqa: PLC0415
        from .metrics import families  # noqa: PLC0415

        return exposition(families(self) if self._started else (), accept)


async def _drain(extras: list[ExtraRun], stop: asyncio.Event, drained: asyncio.Event) -> None:
    """After `stop`, wait until no client is sent to this replica; then set `drained`."""
    await stop.wait()
    await asyncio.gather(*(extra.drain() for extra in extras))
    drained.set()


def _warn(controller: type[Controller[Any]], group: str) -> None:
    """Log what the definition of a controller prevents."""
    name = {"controller": controller.__name__}
    if not controller.finalizes():
        if controller.handles(Action.DELETE):
            missed = "`delete` is not called for objects that vanish while no process runs: define `finalize` as well"
            log.warning("delete without finalize", extra={**name, "because": missed})
        if any(kind.namespaced for kind in controller.kinds(group)):
            for owned in controller.owns:
                if not owned.namespaced:
                    extra = {**name, "kind": owned.resource, "then": "define `finalize`, which deletes them"}
                    log.warning("cluster-scoped children stay when their owner is deleted", extra=extra)
    if controller.owns and not controller.prunes():
        because = "add or modify is defined and may register other children than reconcile"
        log.info("children that are no longer registered are not pruned", extra={**name, "because": because})
