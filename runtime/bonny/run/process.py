"""Process: one run of an operator.

Start order: probes, lifespans, streams, the lease, work. A standby does everything but the work: its caches are warm
and it is ready, so taking over depends on the lease alone. A replica that loses the lease stops its work and stands by
again. Stop order: new work, running handlers within the grace period, events and lifespans, the lease, streams, probes.
Extras serve from before the first list until work has ended, and may delay the stop until what they serve is drained.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any, Final

from ..calling import HANDLER_THREAD
from ..client.api import Client
from ..client.config import Cluster, own_namespace
from ..controller import Controller, Restart
from ..core.records import Action
from ..engine.router import Router
from ..engine.stream import Stream
from ..engine.worker import Worker
from ..events import EventRecorder
from ..extras import ExtraRun, of_operator
from ..kinds import Kind, Owned
from ..lifespan import HasLifespan, Lifespan
from ..operator import Operator
from ..pipeline import Pipeline
from ..resource import MANAGED_BY
from ..servers.periodic import PeriodicTasks
from ..servers.visitor import Namespaces, ObjectVisitor
from . import health
from .config import Config
from .event_loop import LoopMonitor, create_task
from .http_server import PROBES, HttpServer
from .leader import Leadership, own_identity
from .orphans import find_orphans
from .probes import Pages, Report
from .supervisor import CANCEL_SECONDS, Stoppable, Supervised, cancelled, ended, first_of

# The last events are worth at most this part of the pod's grace period; the manifest adds it to the handlers' time.
EVENTS_SECONDS: Final = 2.0
# Closing a connection takes milliseconds. It is done while the last events are sent.
LEAVE_SECONDS: Final = EVENTS_SECONDS
# Poll this often for the end of handler threads, which send no notification; the lease may be lost by seconds.
THREAD_SECONDS: Final = 0.05
ORPHAN_EXAMPLES: Final = 5

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
        self.streams: dict[tuple[str, str, str | None, str, str, bool], Stream] = {}
        """By API version, plural, namespace, selectors, and whether only metadata is followed."""

        self._pages = Pages({"/healthz": self.health, "/readyz": self.readiness}, self.exposition)
        self.probes = HttpServer(self._pages, config.http_host, config.http_port, PROBES)
        self.monitor = LoopMonitor()
        self._started = False
        self._lifespans: list[Lifespan] = []
        self.own_namespace: str = config.pod_namespace or own_namespace()
        self._namespaces: Namespaces = config.watch_namespaces or (None,)
        self._streams: dict[Stream, Supervised] = {}
        self._lasting: list[Supervised] = []
        """Other parts that run until the process stops."""

        self._term: dict[Stoppable, Supervised] = {}
        """Parts that run while this replica leads."""

        self._late: set[asyncio.Task[Any]] = set()
        """Tasks of the leader that were cancelled; a task that is not done ignores it."""

        self._once: list[asyncio.Task[None]] = []
        self._leadership: Leadership | None = None

    async def run(self, stop: asyncio.Event) -> None:
        """Serve until `stop` is set, then stop in order.

        Raises: `UsageError` when the credentials cannot be read, a port is taken, or an extra cannot start.
        """
        operator = self.operator
        async with AsyncExitStack() as closing:
            asyncio.get_running_loop().set_task_factory(create_task)
            closing.enter_context(self.monitor)
            fence = None
            if self.config.leader_election:
                # A client of its own: what the lease needs must not wait behind anything else.
                voter = await closing.enter_async_context(self.connected())
                self._leadership = Leadership(
                    voter,
                    namespace=self.own_namespace,
                    name=operator.name,
                    identity=own_identity(),
                    timing=operator.lease,
                )
                fence = self._leadership.remaining
            client = await closing.enter_async_context(self.connected(fence))
            # A plugin that makes credentials may wait for a person.
            await first_of(client.connection(), stop.wait())
            if stop.is_set():
                return
            self._assemble(client)
            await self.probes.start()
            closing.push_async_callback(self.probes.stop)
            closing.push_async_callback(self._leave)
            # After an error or a cancellation nothing may go on with a closed client.
            closing.push_async_callback(self._cancel)
            self._stop = stop
            of_extras = (part for extra in self.extras for part in extra.lifespans)
            await self._enter([*self._controllers, *self.servers, *of_extras])
            if stop.is_set():
                return
            for extra in self.extras:
                await closing.enter_async_context(extra.serving())
            drained = asyncio.Event()
            self._once.append(asyncio.create_task(self._drain(stop, drained), name="the drain"))
            self._start()
            await self._serve(drained)
        log.info("stopped")

    async def _drain(self, stop: asyncio.Event, drained: asyncio.Event) -> None:
        """After `stop`, wait until no client is sent to this replica any more; then set `drained`."""
        await stop.wait()
        await asyncio.gather(*(extra.drain() for extra in self.extras))
        drained.set()

    def connected(self, fence: Callable[[], float] | None = None) -> Client:
        """A client of its own, to be entered; it starts no write unless `fence` returns more than 0 seconds."""
        operator = self.operator
        return Client(self.cluster, user_agent=operator.user_agent, fence=fence, group=operator.group)

    async def _serve(self, stop: asyncio.Event) -> None:
        """Work until `stop` is set, as long as this replica leads; then stop in order."""
        leadership = self._leadership
        if leadership is None:
            self._begin_term()
            await stop.wait()
            await self._finish()
            return
        self._lasting.append(Supervised(leadership, restart=Restart.TRANSIENT))
        while not stop.is_set():
            standing_by = asyncio.create_task(self._forget_deletions())
            await first_of(stop.wait(), leadership.acquired())
            standing_by.cancel()
            if stop.is_set():
                break
            await self._list_again()
            self._begin_term()
            await first_of(stop.wait(), leadership.lost.wait())
            if stop.is_set():
                break
            # No other replica acts before the lease expires, and no write is sent any more. Work that still runs when
            # it expires ends the process (the watchdog of `bonny.run.leader`).
            await self._end_term(grace=0.0)
            while self._still_working and not stop.is_set():  # noqa: ASYNC110  threads send no notification
                await asyncio.sleep(THREAD_SECONDS)
            if not self._still_working:
                await self._renew_servers()
                self._late.clear()
                leadership.stood_down()
        if not (self.tasks.leading or self._still_working):
            # A standby must not take the lease while its last tasks end.
            await leadership.release()
        await self._finish()
        await leadership.release()

    @property
    def failed(self) -> bool:
        """Whether a lifespan failed."""
        return any(each.failed for each in self._lifespans)

    async def _enter(self, parts: Iterable[HasLifespan]) -> None:
        """Enter the lifespans of `parts`; return when they are, or at a stop. A failure is one."""
        begun = [Lifespan(each, self._stop) for each in parts if type(each).lifespan is not HasLifespan.lifespan]
        self._lifespans += begun
        for each in begun:
            await first_of(self._stop.wait(), each.entered.wait())

    async def _leave(self, parts: Iterable[HasLifespan] | None = None) -> None:
        """Leave the lifespans of `parts`; None for all."""
        ending = [each.leave() for each in self._lifespans if parts is None or each.part in parts]
        await ended(ending, seconds=LEAVE_SECONDS)

    # --- assembling ---------------------------------------------------------------------------------------------------

    def _assemble(self, client: Client) -> None:
        operator, pipeline = self.operator, Pipeline(self.operator.steps)
        self.client = client
        reporter = f"{operator.group}/{operator.name}"
        self.recorder = EventRecorder(client, controller=reporter, instance=self.config.pod_name)
        self.tasks = PeriodicTasks(client, operator.tasks)
        self.tasks.leading = False
        self._controllers = [controller_class() for controller_class in operator.controllers]
        for controller in self._controllers:
            controller_class = type(controller)
            _warn(controller_class, operator.group)
            for kind in controller_class.kinds(operator.group):
                router = Router(
                    primary=self._streams_of(kind),
                    owned={owned: self._streams_of(self._ours(owned)) for owned in controller_class.owns},
                    related={related: self._streams_of(related) for related in controller_class.related},
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
                    router=router,
                    pipeline=pipeline,
                )
                self.workers.append(worker)

        self.servers = self._new_servers()
        self.extras = [run for extra in of_operator(operator) if (run := extra.run(self)) is not None]
        if any(extra.replaces_metrics for extra in self.extras):
            self._pages.metrics = None

    async def _renew_servers(self) -> None:
        """Make the servers of the next term, each with its lifespan."""
        await self._leave(self.servers)
        self._lifespans = [each for each in self._lifespans if each.part not in self.servers]
        self.servers = self._new_servers()
        await self._enter(self.servers)

    def _new_servers(self) -> list[ObjectVisitor]:
        """Servers for one term; a server that was stopped cannot run again."""
        servers = [
            server(self.tasks.client, namespaces=self._namespaces, tasks=self.tasks) for server in self.operator.servers
        ]
        for stream in (stream for server in servers for stream in server.streams):
            stream.on_restore = self._restored
        return servers

    def _streams_of(self, kind: Kind) -> list[Stream]:
        """The streams of a kind: one, or one for each watched namespace."""
        everywhere = kind.namespaced and kind.namespace is None
        namespaces = self._namespaces if everywhere else (kind.namespace,)
        return [self.stream(kind, namespace) for namespace in namespaces]

    def stream(self, kind: Kind, namespace: str | None) -> Stream:
        """The stream of a kind in a namespace, None for all; equal streams are shared."""
        name = (kind.api_version, kind.plural, namespace, kind.label_selector, kind.field_selector, kind.metadata_only)
        if name not in self.streams:
            stream = Stream(self.client, kind, namespace=namespace, options=self.operator.watch_options)
            stream.on_restore = self._restored
            self.streams[name] = stream
        return self.streams[name]

    def _ours(self, owned: Owned) -> Owned:
        """Select the objects that this operator manages: the cluster's other Secrets stay out of its memory."""
        ours = f"{MANAGED_BY}={self.operator.name}"
        return replace(owned, label_selector=f"{owned.label_selector},{ours}" if owned.label_selector else ours)

    # --- running ------------------------------------------------------------------------------------------------------

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
        self._streams = {stream: Supervised(stream) for stream in self.streams.values()}
        self._lasting = [Supervised(self.recorder), Supervised(self.tasks, restart=Restart.TRANSIENT)]
        self._lasting += [Supervised(part) for extra in self.extras for part in extra.lasting]
        self._once.append(asyncio.create_task(self._report_first_sync(time.monotonic()), name="the first sync"))
        self._started = True

    def _begin_term(self) -> None:
        """Start the parts that only the leader runs."""
        self.tasks.leading = True
        servers: list[Stoppable] = [*self.servers, *(part for extra in self.extras for part in extra.term())]
        self._term = {server: Supervised(server) for server in servers}
        self._term |= {worker: Supervised(worker, restart=worker.restart) for worker in self.workers}

    async def _list_again(self) -> None:
        """List what extras rely on: a standby's streams may have fallen silent without notice.

        All other writes name the version or the UID that a stream showed, or read the object first.
        """
        for stream in [stream for extra in self.extras for stream in extra.relisted()]:
            await cancelled([self._streams[stream].task])
            stream.prepare_relist()
            self._streams[stream] = Supervised(stream)

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
        await asyncio.gather(self.recorder.drain(seconds=EVENTS_SECONDS), self._leave())

    async def _end_term(self, *, grace: float) -> None:
        """Take no new work, give the work in progress `grace` seconds to end, and cancel the rest."""
        log.info("stopping", extra={"grace_seconds": grace})
        self.tasks.leading = False
        for part, supervised in self._term.items():
            supervised.final = True
            part.stop()
        runs = self.tasks.ending
        late = await ended([*runs, *(supervised.task for supervised in self._term.values())], seconds=grace)
        if runs & late:
            log.warning("cancelled running handlers: grace period exceeded", extra={"count": len(runs & late)})
        self._late |= late
        self._term.clear()

    @property
    def abandoned(self) -> bool:
        """After a term, or the stop: whether work goes on that ignores its cancellation."""
        return any(not task.done() for task in self._late)

    @property
    def _still_working(self) -> bool:
        """After a term: whether its work goes on, on the loop or in a thread."""
        return self.abandoned or any(thread.name == HANDLER_THREAD for thread in threading.enumerate())

    async def _report_first_sync(self, began: float) -> None:
        """Wait until every stream is in sync or blocked, then log that, and children that are left without an owner."""
        streams = self.streams.values()
        await asyncio.gather(*(stream.wait_until_synced() for stream in streams))
        seconds = round(time.monotonic() - began, 3)
        objects, blocked = sum(len(stream.store) for stream in streams), sum(stream.blocked for stream in streams)
        log.info("in sync", extra={"objects": objects, "seconds": seconds, "blocked": blocked})
        orphans = await find_orphans([worker.router for worker in self.workers])
        if orphans:
            stay = sum(not orphan.collected for orphan in orphans)
            examples = ", ".join(orphan.child for orphan in orphans[:ORPHAN_EXAMPLES])
            extra = {"count": len(orphans), "without_owner_reference": stay, "examples": examples}
            log.warning("orphaned children found", extra=extra)

    async def _forget_deletions(self) -> None:
        """On a standby: keep deletions for as long as it may take to become the leader, and no longer."""
        kept = 2.0 * self.operator.lease.lease_duration
        while True:
            await asyncio.sleep(kept / 2)
            for worker in self.workers:
                worker.router.remove_tombstones(before=time.monotonic() - kept)

    async def _cancel(self) -> None:
        await cancelled([*(part.task for part in self._supervised()), *self._once], seconds=CANCEL_SECONDS)

    def _supervised(self) -> list[Supervised]:
        return [*self._streams.values(), *self._lasting, *self._term.values()]

    # --- probes -------------------------------------------------------------------------------------------------------

    def health(self) -> Report:
        """The answer of /healthz."""
        tasks = [part.task for part in self._supervised() if not part.final]
        slots: list[Worker | ObjectVisitor] = [*self.workers, *self._running_servers()]
        return health.liveness(self.operator.watch_options, self._all_streams(), slots, tasks)

    def readiness(self) -> Report:
        """The answer of /readyz."""
        notes = [] if self._leadership is None else ["leading" if self._leadership.remaining() else "standing by"]
        notes += [f"{each.name}: its lifespan is not entered" for each in self._lifespans if not each.entered.is_set()]
        if self._started:
            # Without the error, which may hold secrets: anyone who reaches the port may ask.
            notes += [f"task {name}: halted by an error, see the log" for name in list(self.tasks.halted)]
        dropped = [f"{part}: failed, and is not started again" for part, task in self._term.items() if task.failed]
        for extra in self.extras:
            noted, failing = extra.problems()
            notes += noted
            dropped += failing
        return health.readiness(self._all_streams(), started=self._started, notes=notes, dropped=dropped)

    def _all_streams(self) -> list[Stream]:
        return [*self.streams.values(), *(stream for each in self._running_servers() for stream in each.streams)]

    def _running_servers(self) -> list[ObjectVisitor]:
        return self.servers if self._term else []

    def exposition(self, accept: str = "") -> tuple[bytes, str]:
        """Answer /metrics: the text and its content type."""
        # Imported by the first scrape: prometheus-client is not needed before.
        from ..telemetry.prometheus import exposition  # noqa: PLC0415
        from .metrics import families  # noqa: PLC0415

        return exposition(families(self) if self._started else (), accept)


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
