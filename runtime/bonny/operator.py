"""Operator: what is served, assembled and run.

    operator = Operator(
        name="widgets-operator", group="example.com", controllers=discover(controllers), crds=discover(api)
    )

Start order: probes, streams, workers (each once its own streams are in sync). Stop order: intake, running handlers
within the grace period, streams, probes.
"""

from __future__ import annotations

import asyncio
import gc
import importlib.metadata
import logging
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

from .api import Version
from .axn import Action
from .client.api import Client
from .client.config import Cluster
from .config import Config
from .controller import Controller, Restart
from .core.queue import QueueOptions
from .core.watch import LONGEST_ADVICE_SECONDS, WatchOptions
from .errors import OptionError
from .events import EventRecorder
from .kinds import Kind, Owned
from .naming import check_dns_label, check_finalizer, check_group
from .pipeline import Pipeline, Step
from .resource import MANAGED_BY
from .servers.intake import Intake
from .servers.orphans import find_orphans
from .servers.reflector import Reflector
from .servers.worker import Worker
from .steps import PruneDescendants, default_steps
from .steps.finalizer import finalizers_of
from .web.probes import Probes, Report

__all__ = ["Operator", "Process"]

# A list or watch that gave no sign for so much longer than any request of its may take is stuck.
STUCK_SECONDS: Final = 60.0
# An API server that is replaced is back within half a minute.
BEHIND_SECONDS: Final = 30.0
# So much of a list is few enough objects to be scanned for cycles without harm.
FREEZE_SECONDS: Final = 0.25
# The last events of a process are not worth more of a pod's 30 s.
EVENTS_SECONDS: Final = 2.0
ORPHANS_NAMED: Final = 5
FIRST_SYNC: Final = "the first sync"

log = logging.getLogger("bonny.operator")


class Operator:
    """A declaration; `Process` runs it."""

    def __init__(
        self,
        *,
        name: str,
        group: str,
        controllers: Iterable[type[Controller[Any]]] = (),
        crds: Iterable[type[Version]] = (),
        steps: Sequence[Step] | None = None,
        watch: str = "all",
        watch_options: WatchOptions | None = None,
        version: str = "",
    ) -> None:
        """`crds` are version classes; those of the controllers are added. `steps` replaces the default pipeline.

        `watch` says where the manifest lets it look: in "all" namespaces, or only in the "namespace" where it runs.
        `watch_options` say how streams are followed: shorter ones where a load balancer cuts idle flows sooner.
        `version` is by default that of the installed distribution of this name.

        Raises: `UsageError` when a name is not what Kubernetes takes, `OptionError` when the parts do not fit together.
        """
        self.name = check_dns_label(name, "operator name")
        self.group = check_group(group)
        self.controllers = _unique_kinds(_unique_names(tuple(controllers)))
        named = [known for controller in self.controllers for known in controller.resources()]
        versions = [known for known in (*crds, *named) if isinstance(known, type)]
        self.crds: tuple[type[Version], ...] = tuple(dict.fromkeys(versions))
        self.steps: tuple[Step, ...] = tuple(default_steps() if steps is None else steps)
        if watch not in ("all", "namespace"):
            raise OptionError(f"watch of operator {name} is {watch!r}: write 'all', or 'namespace' for where it runs")
        self.watch = watch
        for controller in self.controllers:
            finalizers = self.finalizers(controller)
            if controller.finalizes() and controller.finalizer_of(operator=name, group=group) not in finalizers:
                raise OptionError(f"no step of {name} calls {controller.__name__}.finalize: put Finalizer() in `steps`")
            for finalizer in finalizers:
                check_finalizer(finalizer)
        self.watch_options = watch_options or WatchOptions()
        self.version = version or _installed_version(name)

    def finalizers(self, controller: type[Controller[Any]]) -> tuple[str, ...]:
        """The finalizers that it keeps on the objects of that controller."""
        return finalizers_of(controller, self.steps, operator=self.name, group=self.group)

    def prunes(self, controller: type[Controller[Any]]) -> bool:
        """Whether it deletes what that controller no longer registers."""
        return controller.prunes() and any(isinstance(step, PruneDescendants) for step in self.steps)

    @property
    def user_agent(self) -> str:
        return f"{self.name}/{self.version}"


def _installed_version(name: str) -> str:
    """The version of the distribution called like the operator, as a rendered repository's is."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "0.0.0"


def _unique_names(controllers: tuple[type[Controller[Any]], ...]) -> tuple[type[Controller[Any]], ...]:
    """Field managers and metrics carry a controller's name, so two of one name would undo each other's work."""
    seen: dict[str, type[Controller[Any]]] = {}
    for controller in controllers:
        other = seen.setdefault(controller.__name__, controller)
        if other is not controller:
            raise OptionError(
                f"two controllers are called {controller.__name__} ({other.__module__}, {controller.__module__}): "
                "rename one"
            )
    return controllers


def _unique_kinds(controllers: tuple[type[Controller[Any]], ...]) -> tuple[type[Controller[Any]], ...]:
    """The status of a kind of one's own says how its last handling went; with two handlers it would alternate."""
    seen: dict[type[Version], type[Controller[Any]]] = {}
    for controller in controllers:
        for named in controller.resources():
            if isinstance(named, type):
                other = seen.setdefault(named, controller)
                if other is not controller:
                    raise OptionError(
                        f"{other.__name__} and {controller.__name__} both handle {named.kind}: make them one "
                        "controller, which may own several kinds"
                    )
    return controllers


class Process:
    """One run of an operator: start it, wait, stop it."""

    def __init__(self, operator: Operator, config: Config, cluster: Cluster) -> None:
        self.operator = operator
        self.config = config
        self.cluster = cluster
        self.workers: list[Worker] = []
        self.reflectors: dict[tuple[str, str, str | None, str, str, bool], Reflector] = {}
        """By API version, plural, namespace, selectors, and whether only metadata is followed."""

        self.probes = Probes(host=config.http_host, port=config.http_port, health=self.health, readiness=self.readiness)
        self._started = False
        self.abandoned = False
        """After the stop: whether a handler still runs that would not be cancelled."""

        self._tasks: list[asyncio.Task[None]] = []

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
        pipeline = Pipeline(self.operator.steps)
        self.recorder = EventRecorder(
            client, controller=f"{self.operator.group}/{self.operator.name}", instance=self.config.pod_name
        )
        for controller_class in self.operator.controllers:
            controller = controller_class()
            _warn(controller_class, self.operator.group)
            for kind in controller_class.kinds(self.operator.group):
                intake = Intake(
                    primary=self._followed(client, kind),
                    owned={owned: self._followed(client, self._ours(owned)) for owned in controller_class.owns},
                    related={kind: self._followed(client, kind) for kind in controller_class.related},
                    options=QueueOptions(),
                    on_status=controller_class.on_status,
                )
                worker = Worker(
                    operator=self.operator.name,
                    group=self.operator.group,
                    controller=controller,
                    kind=kind,
                    client=client,
                    recorder=self.recorder,
                    intake=intake,
                    pipeline=pipeline,
                )
                self.workers.append(worker)

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
        runs: list[Reflector | EventRecorder] = [*self.reflectors.values(), self.recorder]
        self._tasks = [asyncio.create_task(_forever(run), name=str(run)) for run in runs]
        self._tasks += [asyncio.create_task(_forever(worker), name=worker.name) for worker in self.workers]
        self._tasks.append(asyncio.create_task(self._after_first_sync(time.monotonic()), name=FIRST_SYNC))
        self._started = True  # told apart from having tasks: an operator without controllers is ready, too

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

    async def _stop(self) -> None:
        log.info("stopping", extra={"grace_seconds": self.config.grace})
        for worker in self.workers:
            worker.stop()
        ends = time.monotonic() + self.config.grace
        drained = await asyncio.gather(
            *(worker.drain(seconds=max(ends - time.monotonic(), 0.0)) for worker in self.workers)
        )
        await self.recorder.drain(seconds=EVENTS_SECONDS)
        self.abandoned = any(worker.abandoned for worker in self.workers)
        if not all(drained):
            log.warning("handlers were cancelled: the grace period was over")
        await self._cancel()

    async def _cancel(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(
            *self._tasks, *(worker.drain(seconds=0.0) for worker in self.workers), return_exceptions=True
        )

    # --- probes -------------------------------------------------------------------------------------------------------

    def health(self) -> Report:
        """Red when a stream makes no attempt within its deadline, all slots are stuck, or a part of it ended."""
        now = time.monotonic()
        longest = self.operator.watch_options.timeout[1] + self.operator.watch_options.grace
        given_up = {worker.name for worker in self.workers if worker.given_up}
        ended = [
            f"{task.get_name()} ended"
            for task in self._tasks
            if task.done() and not _did_its_work(task) and task.get_name() not in given_up
        ]
        stuck = [
            f"{reflector}: no sign for {now - reflector.last_contact:.0f} s"
            for reflector in self.reflectors.values()
            if now - reflector.last_contact > max(longest, LONGEST_ADVICE_SECONDS * 1.25) + STUCK_SECONDS
        ]
        full = [f"{worker.name}: every slot is stuck" for worker in self.workers if worker.stuck]
        return Report(not (ended or stuck or full), tuple(ended + stuck + full))

    def readiness(self) -> Report:
        """Green when every stream is in sync or waits for a person, unless all of them wait, or a controller gave up.

        A stream that was in sync stays so for as long as a restart of the API server takes.
        """
        streams = list(self.reflectors.values())
        since = time.monotonic() - BEHIND_SECONDS
        ready = all(
            stream.blocked or (stream.synced and (stream.trouble is None or stream.trouble.since > since))
            for stream in streams
        )
        useless = bool(streams) and all(stream.blocked for stream in streams)
        given_up = [f"{worker.name} gave up" for worker in self.workers if worker.given_up]
        return Report(self._started and ready and not (useless or given_up), (*map(_state, streams), *given_up))


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


def _did_its_work(task: asyncio.Task[None]) -> bool:
    """Whether it ended as it should; streams and workers never do."""
    return task.get_name() == FIRST_SYNC and not task.cancelled() and task.exception() is None


def _state(stream: Reflector) -> str:
    if stream.trouble is None:
        return f"{stream}: {'in sync' if stream.synced else 'syncing'}, {len(stream.store)} objects"
    trouble = stream.trouble
    return f"{stream}: {trouble.kind.value} ({trouble.verb} {trouble.status}: {trouble.message})"


async def _forever(part: Reflector | Worker | EventRecorder) -> None:
    """Run a part that never ends by itself; an error of our own making is reported, and it goes on."""
    while True:
        try:
            await part.run()
        except Exception:
            log.exception("a part of the operator failed: please report this", extra={"part": str(part)})
            if isinstance(part, Worker) and part.restart is Restart.TEMPORARY:
                part.given_up = True
                return
            # A pause, so that an error which comes at once does not fill the log.
            await asyncio.sleep(1.0)
        else:
            return
