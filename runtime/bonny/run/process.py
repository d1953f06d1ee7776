"""Process: one run of an operator.

Start order: probes, streams, the lease, work. A standby is everything but work: its caches are warm and it is ready, so
that taking over is a matter of the lease alone. Who loses the lease stops its work and stands by again. Stop order:
no new keys, running handlers within the grace period, events, the lease, streams, probes.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
import time
from collections.abc import Callable, Collection, Coroutine, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from ..axn import Action
from ..calling import HANDLER_THREAD
from ..client.api import Client
from ..client.config import Cluster, own_namespace
from ..controller import Controller, Restart
from ..core.queue import QueueOptions
from ..engine.router import Router
from ..engine.stream import Stream
from ..engine.worker import Worker
from ..events import EventRecorder
from ..kinds import Kind, Owned
from ..operator import Operator
from ..pipeline import Pipeline
from ..resource import MANAGED_BY
from ..servers.periodic import CANCEL_SECONDS, PeriodicTasks
from ..servers.reconciler import Reconciler
from ..servers.server import EVERYWHERE, Server
from ..servers.watcher import Watcher
from ..telemetry import tracing
from ..telemetry.prometheus import END, Format
from . import health, metrics
from .config import Config
from .event_loop import LoopMonitor, create_task
from .leader import Leadership, own_identity
from .orphans import find_orphans
from .permissions import PermissionCheck
from .probes import Probes, Report

if TYPE_CHECKING:
    from ..scheduler.server import SchedulerServer

__all__ = ["Process"]

# So much of a list is few enough objects to be scanned for cycles without harm.
FREEZE_SECONDS: Final = 0.25
# 100,000 objects are handled in half of that; a queue that is never empty must not go on for ever.
FIRST_WAVE_SECONDS: Final = 60.0
# The last events of a process are not worth more of a pod's grace period (manifest.deployment counts on it).
EVENTS_SECONDS: Final = 2.0
# How often it is asked whether the last handler has returned; a second of a lease is long.
THREAD_SECONDS: Final = 0.05
ORPHANS_NAMED: Final = 5

log = logging.getLogger("bonny.run.process")


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
        self.schedulers: list[SchedulerServer] = []
        self.streams: dict[tuple[str, str, str | None, str, str, bool], Stream] = {}
        """By API version, plural, namespace, selectors, and whether only metadata is followed."""

        self.probes = Probes(
            host=config.http_host,
            port=config.http_port,
            health=self.health,
            readiness=self.readiness,
            metrics=self.exposition,
        )
        self.monitor = LoopMonitor()
        self._started = False
        self._following: dict[Stream, asyncio.Task[None]] = {}
        self._shown_to_schedulers: list[Stream] = []
        self._parts: list[asyncio.Task[None]] = []
        """What else goes on until the stop."""

        self._work: list[asyncio.Task[None]] = []
        """What goes on while this replica leads."""

        self._ending: list[asyncio.Task[None]] = []
        """What of it ends by itself when it is told to stop."""

        self._left: list[asyncio.Task[None]] = []
        """What of it would not be cancelled."""

        self._once: list[asyncio.Task[None]] = []
        self._dropped: list[str] = []
        """What failed and is not to be started again."""

        self._leadership: Leadership | None = None
        self._permissions = PermissionCheck(
            operator,
            namespace=config.pod_namespace or own_namespace(),
            watched=config.watch_namespaces,
            leader_election=config.leader_election,
        )

    async def run(self, stop: asyncio.Event) -> None:
        """Serve until `stop` is set, then stop in order.

        Raises: `UsageError` when the credentials cannot be read, the probes' port is taken, or traces are asked for
        and what makes them is not installed.
        """
        operator = self.operator
        async with AsyncExitStack() as closing:
            asyncio.get_running_loop().set_task_factory(create_task)
            closing.enter_context(self.monitor)
            tracing.switch(tracing.find(operator.tracing, service=operator.name, version=operator.version))
            closing.callback(tracing.switch, None)
            fence = voter = None
            if self.config.leader_election:
                # A client of its own: what the lease needs must not wait behind anything else.
                voter = await closing.enter_async_context(self._connected())
                self._leadership = self._candidate(voter)
                fence = self._leadership.remaining
            client = await closing.enter_async_context(self._connected(fence))
            # A plugin that makes credentials may wait for a person.
            await first_of(client.connection(), stop.wait())
            if stop.is_set():
                return
            await self.probes.start()
            closing.push_async_callback(self.probes.stop)
            # After an error or a cancellation nothing may go on with a client that is closed.
            closing.push_async_callback(self._cancel)
            self._assemble(client)
            self._start()
            # A standby asks, too, and a fenced client would not: to ask is to POST.
            asking = self._permissions.run(voter or client)
            self._once.append(asyncio.create_task(asking, name="the permissions"))
            await self._serve(stop)
        log.info("stopped")

    def _connected(self, fence: Callable[[], float] | None = None) -> Client:
        return Client(self.cluster, user_agent=self.operator.user_agent, fence=fence)

    def _candidate(self, voter: Client) -> Leadership:
        return Leadership(
            voter,
            namespace=self.config.pod_namespace or own_namespace(),
            name=self.operator.name,
            identity=own_identity(),
            timing=self.operator.lease,
        )

    async def _serve(self, stop: asyncio.Event) -> None:
        """Work until `stop` is set, as long as this replica leads; then stop in order."""
        leadership = self._leadership
        if leadership is None:
            self._begin_term()
            await stop.wait()
            await self._finish()
            return
        self._parts.append(self._spawn(leadership))
        while not stop.is_set():
            standing_by = asyncio.create_task(self._forget_what_the_leader_does())
            await first_of(stop.wait(), leadership.acquired())
            standing_by.cancel()
            if stop.is_set():
                break
            await self._list_anew()
            self._begin_term()
            await first_of(stop.wait(), leadership.lost.wait())
            if stop.is_set():
                break
            # Nobody else acts before the lease expires, and no write is sent any more. What has not stopped by then
            # ends the process (the watchdog of `bonny.run.leader`).
            await self._end_term(grace=0.0)
            while self._clings and not stop.is_set():  # noqa: ASYNC110  a thread tells nobody
                await asyncio.sleep(THREAD_SECONDS)
            if not self._clings:
                self.servers = self._new_servers()
                leadership.stood_down()
        if not (self.tasks.leading or self._clings):
            # A standby: it would take the lease over while its last tasks end.
            await leadership.release()
        await self._finish()
        await leadership.release()

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
                router = Router(
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
                    router=router,
                    pipeline=pipeline,
                )
                self.workers.append(worker)

        self.servers = self._new_servers()
        if operator.schedulers:
            # Loaded here: most operators have none.
            from ..scheduler.cluster import Cluster as Everything  # noqa: PLC0415
            from ..scheduler.server import SchedulerServer  # noqa: PLC0415

            # Of all namespaces, whatever is watched: what is not seen would be overcommitted.
            everything = Everything(partial(self._shown, client))
            self.schedulers = [
                SchedulerServer(scheduler(), client, cluster=everything, recorder=self.recorder)
                for scheduler in operator.schedulers
            ]

    def _new_servers(self) -> list[Server]:
        """For one term: what was stopped is not run again."""
        namespaces = self.config.watch_namespaces or EVERYWHERE
        servers = [
            server(self.tasks.client, namespaces=namespaces, tasks=self.tasks) for server in self.operator.servers
        ]
        for server in servers:
            if isinstance(server, Watcher):
                for stream in server.streams:
                    stream.on_restore = self._restored
        return servers

    def _followed(self, client: Client, kind: Kind) -> list[Stream]:
        """The streams of a kind: one, or one for each watched namespace; shared by all who ask for the same."""
        namespaces: Sequence[str | None] = self.config.watch_namespaces or (None,)
        if not kind.namespaced or kind.namespace is not None:
            namespaces = (kind.namespace,)
        return [self._stream(client, kind, namespace) for namespace in namespaces]

    def _stream(self, client: Client, kind: Kind, namespace: str | None) -> Stream:
        name = (kind.api_version, kind.plural, namespace, kind.label_selector, kind.field_selector, kind.metadata_only)
        if name not in self.streams:
            stream = Stream(client, kind, namespace=namespace, options=self.operator.watch_options)
            stream.on_restore = self._restored
            self.streams[name] = stream
        return self.streams[name]

    def _shown(self, client: Client, kind: Kind) -> Stream:
        """A stream of all namespaces, for schedulers."""
        stream = self._stream(client, kind, None)
        if stream not in self._shown_to_schedulers:
            self._shown_to_schedulers.append(stream)
        return stream

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
                "schedulers": ",".join(server.scheduler.name for server in self.schedulers) or "none",
                "port": self.probes.port,
            },
        )
        self._following = {stream: self._spawn(stream) for stream in self.streams.values()}
        self._parts = [self._spawn(self.recorder), self._spawn(self.tasks)]
        self._once.append(asyncio.create_task(self._after_first_sync(time.monotonic()), name="the first sync"))
        self._started = True  # told apart from having parts: an operator without controllers is ready, too

    def _begin_term(self) -> None:
        """What only the leader does."""
        self.tasks.leading = True
        for worker in self.workers:
            self._work.append(self._spawn(worker, restart=worker.restart))
        self._ending = [self._spawn(server) for server in self.servers]
        self._work += [*self._ending, *map(self._spawn, self.schedulers)]

    async def _list_anew(self) -> None:
        """Bindings rest on streams alone, and those of a standby may have fallen silent without notice.

        Everything else that is done on what a stream shows names the version or the UID that it showed, or reads first.
        """
        for stream in self._shown_to_schedulers:
            await cancelled([self._following[stream]])
            stream.prepare_relist()
            self._following[stream] = self._spawn(stream)

    def _restored(self, noticed: Stream) -> None:
        """The server was restored from a backup, as one stream noticed.

        The others may be watching from a version that the restored server has passed already, or has not reached yet:
        they would show the old history, in silence.
        """
        for stream in self._streams():
            if stream is not noticed:
                stream.distrust()

    async def _finish(self) -> None:
        """The end of the last term, or of a standby: nothing follows it."""
        self.tasks.stop()
        await self._end_term(grace=self.config.grace)
        await self.recorder.drain(seconds=EVENTS_SECONDS)

    async def _end_term(self, *, grace: float) -> None:
        """Take up nothing more, let what runs end, and cancel what is left after `grace` seconds."""
        log.info("stopping", extra={"grace_seconds": grace})
        ends = time.monotonic() + grace
        self.tasks.leading = False
        for worker in self.workers:
            worker.stop()
        for server in self.servers:
            server.stop()
        drained, _ = await asyncio.gather(
            asyncio.gather(self.tasks.drain(seconds=grace), *(worker.drain(seconds=grace) for worker in self.workers)),
            asyncio.gather(*(scheduler.drain(seconds=grace) for scheduler in self.schedulers)),
        )
        if self._ending:
            await asyncio.wait(self._ending, timeout=max(ends - time.monotonic(), 0.0))
        if not all(drained):
            log.warning("handlers were cancelled: their time was over")
        await cancelled(self._work, seconds=CANCEL_SECONDS)
        self._left = [part for part in self._work if not part.done()]
        self._work.clear()

    @property
    def abandoned(self) -> bool:
        """After a term, or the stop: whether a handler still runs that would not be cancelled."""
        left = any(not part.done() for part in self._left)
        return left or self.tasks.abandoned or any(worker.abandoned for worker in self.workers)

    @property
    def _clings(self) -> bool:
        """After a term: whether anything of it goes on, in a thread or on the loop."""
        return self.abandoned or any(thread.name == HANDLER_THREAD for thread in threading.enumerate())

    def _spawn(self, part: Part, *, restart: Restart = Restart.PERMANENT) -> asyncio.Task[None]:
        return asyncio.create_task(self._forever(part, restart), name=str(part))

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
        streams = self.streams.values()
        unsettled = {asyncio.create_task(stream.wait_until_synced()) for stream in streams}
        listed = 0
        try:
            while unsettled:
                settled, unsettled = await asyncio.wait(unsettled, timeout=FREEZE_SECONDS)
                before, listed = listed, sum(len(stream.store) for stream in streams if not stream.synced)
                # What is listed lives long; looking for cycles in 100,000 objects would hold the loop for 130 ms. Only
                # when there is more of it: garbage that is frozen is never freed.
                if settled or listed > before:
                    gc.freeze()
        finally:
            await cancelled(unsettled)
        figures = {
            "objects": sum(len(stream.store) for stream in streams),
            "seconds": round(time.monotonic() - began, 3),
        }
        log.info("in sync", extra={**figures, "blocked": sum(stream.blocked for stream in streams)})
        orphans = await find_orphans([worker.router for worker in self.workers])
        if orphans:
            named = ", ".join(orphan.child for orphan in orphans[:ORPHANS_NAMED])
            left = sum(not orphan.collected for orphan in orphans)
            extra = {"count": len(orphans), "without_owner_reference": left, "examples": named}
            log.warning("children whose owner is gone", extra=extra)
        # So does what is remembered of having handled all that.
        ends = time.monotonic() + FIRST_WAVE_SECONDS
        while time.monotonic() < ends and any(worker.router.queue.ready for worker in self.workers):
            await asyncio.sleep(FREEZE_SECONDS)
            gc.freeze()

    async def _forget_what_the_leader_does(self) -> None:
        """A standby keeps the ends of objects for as long as it may take to become the leader, and no longer."""
        kept = 2.0 * self.operator.lease.lease_duration
        while True:
            await asyncio.sleep(kept / 2)
            for worker in self.workers:
                worker.router.remove_tombstones(before=time.monotonic() - kept)

    async def _cancel(self) -> None:
        await cancelled([*self._work, *self._following.values(), *self._parts, *self._once], seconds=CANCEL_SECONDS)
        await asyncio.gather(*(worker.drain(seconds=0.0) for worker in self.workers))

    # --- probes -------------------------------------------------------------------------------------------------------

    def health(self) -> Report:
        """What /healthz answers."""
        watchers = self._watchers()
        reconcilers = [server for server in self.servers if isinstance(server, Reconciler) and self._work]
        workers: list[Worker | Reconciler] = [*self.workers, *(watcher.worker for watcher in watchers), *reconcilers]
        parts = [*self._following.values(), *self._parts, *self._work]
        return health.liveness(self.operator.watch_options, self._streams(), workers, parts)

    def readiness(self) -> Report:
        """What /readyz answers."""
        notes = [] if self._leadership is None else ["leading" if self._leadership.remaining() else "standing by"]
        notes += [f"a permission is missing: {line}" for line in self._permissions.missing]
        if self._started:
            # Without the error: a user's may hold anything, and whoever reaches the port may ask.
            notes += [f"task {name}: halted by an error, see the log" for name in list(self.tasks.halted)]
        return health.readiness(self._streams(), started=self._started, notes=notes, dropped=self._dropped)

    def _streams(self) -> list[Stream]:
        return [*self.streams.values(), *(stream for watcher in self._watchers() for stream in watcher.streams)]

    def _watchers(self) -> list[Watcher]:
        """Those that run: they have streams and workers of their own."""
        return [server for server in self.servers if isinstance(server, Watcher)] if self._work else []

    def exposition(self, form: Format = Format.TEXT) -> str:
        """What /metrics answers."""
        if not self._started:
            return END if form is Format.OPEN else ""
        parts = (list(self.streams.values()), self.servers, self.recorder, self.tasks, self.tasks.client.requests)
        figures = metrics.Parts(self.operator.name, self.workers, *parts, self.monitor, self.schedulers)
        return metrics.text(figures, form)


async def cancelled(tasks: Collection[asyncio.Task[Any]], *, seconds: float | None = None) -> None:
    """Cancel them all, and return when they have ended, or after `seconds` (None: without end)."""
    for task in tasks:
        task.cancel()
    await asyncio.wait({asyncio.gather(*tasks, return_exceptions=True)}, timeout=seconds)


async def first_of(*waits: Coroutine[Any, Any, object]) -> None:
    """Wait until one of them returns, and give up the others. Raises: what that one raises."""
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        await cancelled(tasks)


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
