"""Server: runs a scheduler; takes pods, chooses nodes, and posts bindings.

choose -> check -> assume -> post the Binding -> bound, or back into the queue
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final

from ..calling import call, report, text_of
from ..client.api import Client
from ..client.clock import timestamp
from ..client.errors import Conflict, NotFound
from ..core.conditions import condition, with_condition
from ..errors import ApiError, BonnyError, OptionError, UsageError
from ..events import Event, EventRecorder, EventType
from ..resource import Key, Resource, has_all_of
from ..telemetry import execute
from .binding import BindingOutcome, outcome_of
from .choosing import NoNode, checked, select
from .fits import fits, fits_shape
from .meters import Attempts, Result
from .nodes import Nodes
from .pending import Pending, PodState
from .scheduler import Scheduler, matcher
from .streams import POD, SchedulerStreams, Selected
from .views import NodeView, PodView

# Longer than a request may take; a user's `bind` may wait for ever.
BINDING_SECONDS: Final = 60.0
# The longest sleep: streams can become outdated without an event.
LOOK_SECONDS: Final = 1.0
# After so many decisions, about 5 ms, other tasks of the loop get their turn.
DECISIONS_AT_ONCE: Final = 32

log = logging.getLogger("bonny.scheduler.server")


class SchedulerServer:
    """Runs one scheduler. Decisions are made one after the other, bindings are posted side by side."""

    def __init__(
        self, scheduler: Scheduler, client: Client, *, streams: SchedulerStreams, recorder: EventRecorder
    ) -> None:
        """`streams` are shared by all schedulers of an operator, and do not run yet.

        Raises: `OptionError` for a scheduler without a name or a `select_node_for_pod`.
        """
        if not scheduler.name or type(scheduler).select_node_for_pod is Scheduler.select_node_for_pod:
            raise OptionError(f"{type(scheduler).__name__} cannot schedule: give it a name, and a select_node_for_pod")
        self.scheduler = scheduler
        scheduler.client = client
        self._streams = streams
        self._cache = streams.cache
        self._recorder = recorder
        self._owns = matcher(scheduler.field_selector, where=f"field_selector of {type(scheduler).__name__}")
        self._node_list = Selected(
            scheduler.nodes, streams.nodes, follow=streams.follow, changed=lambda key: self.nodes.touch(key.name)
        )
        self._pod_list = Selected(scheduler.pods, streams.pods, follow=streams.follow, changed=self._reconsider)
        self.nodes = Nodes(self._cache, member=lambda name: Key("", name) in self._node_list)
        self.meters = Attempts()
        self._pending = Pending()
        self._compared = (0, 0)
        """The last change of nodes, and the last end of an anti-affinity, that was compared with parked pods."""

        self._bound: set[str] = set()
        """UIDs of pods that the server has bound, and the stream does not show as bound yet."""

        self._wake = asyncio.Event()
        self._running = self._stopping = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._fetched: dict[str, str] = {}
        """The last telemetry event about each selection."""

        streams.listeners.append(self)
        self._cache.listeners.append(lambda _: self._wake.set())

    def __str__(self) -> str:
        return f"scheduler {self.scheduler.name}"

    def statistics(self) -> Mapping[PodState, int]:
        """The number of its pods in each state; 0 on a standby, where it does not run."""
        return self._pending.statistics() if self._running else dict.fromkeys(PodState, 0)

    def unschedulable(self) -> Mapping[str, int]:
        """The number of pods without a node by the part of the check that failed; one pod can count for several."""
        return Counter(plugin for entry in self._pending.pods.values() for plugin in entry.plugins if self._running)

    # --- changes from the streams -------------------------------------------------------------------------------------

    def pod_seen(self, pod: PodView) -> None:
        """A pod was added or changed."""
        if not (pod.pending and self._owns(pod) and pod.key in self._pod_list):
            self.pod_gone(pod.uid)
        elif pod.uid not in self._bound:
            self._pending.add(pod)
            self._wake.set()

    def pod_gone(self, uid: str) -> None:
        """A pod no longer waits for this scheduler: it has a node, was deleted, or has another scheduler."""
        self._pending.forget(uid)
        self._bound.discard(uid)

    def stream_advanced(self) -> None:
        """Nodes or pods changed: try again."""
        self._wake.set()

    def server_restored(self) -> None:
        """A restored etcd may have lost bindings that were accepted before."""
        self._bound.clear()

    def _reconsider(self, key: Key) -> None:
        """A pod may have entered or left the selection."""
        item = self._streams.pods.store.get(key)
        if item is not None:
            self.pod_seen(PodView(item))

    # --- running ------------------------------------------------------------------------------------------------------

    def run(self) -> Coroutine[Any, Any, None]:
        """Schedule until `stop`, then wait for bindings on their way: the next leader has to see them.

        Cancelled, it cancels them first. Run again, it tries all pods that have no node yet.
        """
        self._stopping = False  # not in the first step of the task: `stop` may be called before that
        return self._run()

    async def _run(self) -> None:
        self._running = True
        self._pending.restart()
        try:
            while not self._stopping:
                self._wake.clear()
                ready = await self._ready()
                if ready:
                    self._unpark_fitting()
                    await self._decide_some()
                await self._rest(until=self._pending.next_due() if ready else None)
            if self._tasks:
                await asyncio.wait(self._tasks)
        finally:
            self._running = False
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def stop(self) -> None:
        """Decide nothing more."""
        self._stopping = True
        self._wake.set()

    async def _ready(self) -> bool:
        """Whether the selected nodes and pods are known and current."""
        ready = True
        for kind, selected in (("nodes", self._node_list), ("pods", self._pod_list)):
            streams = selected.streams
            error: object = next((stream.error.message for stream in streams if stream.error is not None), None)
            try:
                await call(partial(selected.renew, seconds=self.scheduler.timeout))
            except Exception as caught:  # noqa: BLE001  the next round repeats the request
                error = caught
            ready = ready and error is None and all(stream.current for stream in streams)
            if error is not None or streams[0].synced:
                event = f"bonny.scheduler.{kind}.fetch.{'succeeded' if error is None else 'failed'}"
                if self._fetched.get(kind) != event:
                    self._fetched[kind] = event
                    execute(event, {}, {"scheduler": self.scheduler.name, "error": error})
        return ready

    async def _rest(self, *, until: float | None) -> None:
        """Sleep until woken, until a pod is due (`until`), or for `LOOK_SECONDS`."""
        seconds = LOOK_SECONDS
        if until is not None and self._has_slots:
            seconds = min(max(until - time.monotonic(), 0.0), LOOK_SECONDS)
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wake.wait()

    @property
    def busy(self) -> int:
        """The number of bindings and status writes under way; at most `max_bindings`."""
        return len(self._tasks)

    @property
    def _has_slots(self) -> bool:
        return not self._stopping and self.busy < self.scheduler.max_bindings

    # --- deciding -----------------------------------------------------------------------------------------------------

    async def _decide_some(self) -> None:
        for _ in range(DECISIONS_AT_ONCE):
            pod = self._pending.take(now=time.monotonic()) if self._has_slots else None
            if pod is None:
                return
            try:
                await call(self._decide, pod)
            except Exception as error:  # noqa: BLE001  an error while reporting affects only this pod, too
                self._pending.retry(pod.uid, now=time.monotonic())
                report(log.error, "a scheduler failed: please report this", error, self._about(pod))
        self._wake.set()
        await asyncio.sleep(0)

    async def _decide(self, pod: PodView) -> None:
        began = time.monotonic()
        try:
            node: Any = await call(self._choose, pod)
        except NoNode as error:
            self._ended(Result.UNSCHEDULABLE if error.parked else Result.ERROR, began)
            self._wait(pod.uid, error)
        except Exception as error:  # noqa: BLE001  it costs this pod alone
            self._ended(Result.ERROR, began)
            # The text of the exception may contain secrets: report only its type.
            self._wait(pod.uid, NoNode(f"{self} failed with {type(error).__name__}", parked=False))
            report(log.warning, "choosing a node failed", error, self._about(pod))
        else:
            entry = self._pending.pods.get(pod.uid)
            if entry is not None and not self._stopping:
                self._assign(entry.pod, node, began)
        finally:
            self.meters.choices.observe(time.monotonic() - began)

    def _ended(self, result: Result, began: float) -> None:
        """Count an attempt."""
        self.meters.seconds[result].observe(time.monotonic() - began)

    async def _choose(self, pod: PodView) -> NodeView:
        """The node for the pod. Raises: `NoNode`, and the scheduler's errors."""
        # A pod that is still assumed has a binding with an unknown outcome: post the same one again.
        node = self.nodes.named(self._cache.assumed_node(pod.uid))
        if node is not None:
            return node
        self._cache.give_back(pod.uid)
        choice = await select(self.scheduler, pod, self.nodes)
        entry = self._pending.pods.get(pod.uid)
        return checked(self.scheduler, entry.pod if entry is not None else pod, self.nodes, choice)

    # --- waiting ------------------------------------------------------------------------------------------------------

    def _wait(self, uid: str, why: NoNode) -> None:
        if uid not in self._pending.pods:  # it was deleted while its node was chosen
            return
        self._pending.retry(uid, now=time.monotonic(), parked=why.parked, plugins=why.plugins)
        pod, message = self._pending.pods[uid].pod, str(why)
        log.debug("no node", extra={**self._about(pod), "why": message})
        if self.scheduler.dry_run:
            return
        self._recorder.record(pod.identity, Event(EventType.WARNING, "FailedScheduling", "Scheduling", message))
        before = [each for each in pod.decoded.status.conditions if each["type"] == "PodScheduled"]
        wanted = condition("PodScheduled", False, generation=None, reason="Unschedulable", message=message)
        if not before or not has_all_of(before[0], wanted):
            self._spawn(self._write(pod, with_condition({"conditions": before}, wanted, at=timestamp())))

    async def _write(self, pod: PodView, status: Resource) -> None:
        """Write the status, unless the pod has changed: it may have a node by now."""
        try:
            resource = {**pod.identity, "status": status}
            await self.scheduler.client.apply(POD, resource, manager=self.scheduler.name, subresource="status")
        except (Conflict, NotFound):
            self._pending.wake([pod.uid])
        except (ApiError, UsageError) as error:
            report(log.warning, "writing the condition failed", error, self._about(pod))

    def _unpark_fitting(self) -> None:
        """Wake the parked pods of each shape that fits on a changed node; all of them when an anti-affinity ended."""
        (change, lifted), self._compared = self._compared, (self.nodes.changes, self._cache.lifted)
        changed = self.nodes.changed_since(change)
        everything = lifted != self._cache.lifted or (changed and type(self.scheduler).check is not fits)
        for uids in list(self._pending.parked.values()):
            pod = self._pending.pods[next(iter(uids))].pod
            if everything or any(fits_shape(pod, node) for node in changed):
                self._pending.wake(list(uids))

    # --- binding ------------------------------------------------------------------------------------------------------

    def _assign(self, pod: PodView, node: NodeView, began: float) -> None:
        """Count the pod on the node from now on, and post its binding."""
        self._cache.assume(pod, node.name)
        if self.scheduler.dry_run:
            log.info("would bind", extra={**self._about(pod), "node": node.name})
            self._settled(pod.uid)
            self._ended(Result.SCHEDULED, began)
        else:
            self._spawn(self._bind(pod, node, began))

    async def _bind(self, pod: PodView, node: NodeView, chosen: float) -> None:
        began, error = time.monotonic(), None
        try:
            await call(self.scheduler.bind, pod, node, seconds=BINDING_SECONDS)
            outcome = BindingOutcome.BOUND
        except Exception as caught:  # noqa: BLE001  only this pod is tried again
            error = caught
            outcome = await outcome_of(caught, client=self.scheduler.client, pod=pod, node=node)
        if outcome in (BindingOutcome.SETTLED, BindingOutcome.REFUSED):
            self._cache.give_back(pod.uid)
        if outcome is BindingOutcome.SETTLED:
            self.pod_gone(pod.uid)
            return
        about, measured = {**self._about(pod), "node": node.name}, {"duration": time.monotonic() - began}
        bound = outcome is BindingOutcome.BOUND
        self.meters.bindings["Success" if bound else "Error"].observe(measured["duration"])
        self._ended(Result.SCHEDULED if bound else Result.ERROR, chosen)
        if bound:
            if pod.uid in self._pending.pods:
                self._settled(pod.uid)
            message = f"Successfully assigned {pod.key} to {node.name}"
            self._recorder.record(pod.identity, Event(EventType.NORMAL, "Scheduled", "Binding", message))
            execute("bonny.scheduler.binding.succeeded", measured, about)
            log.debug("bound", extra=about)
            return
        self._pending.retry(pod.uid, now=time.monotonic(), after=getattr(error, "retry_after", None) or 0.0)
        if outcome is BindingOutcome.REFUSED:
            message = f"Binding rejected: {text_of(error) if isinstance(error, BonnyError) else type(error).__name__}"
            self._recorder.record(pod.identity, Event(EventType.WARNING, "FailedScheduling", "Binding", message))
        execute("bonny.scheduler.binding.failed", measured, {**about, "error": error})
        if error is not None:
            report(log.warning, "binding failed", error, about)

    def _settled(self, uid: str) -> None:
        """Nothing is left to do for the pod, which the stream does not show as bound yet."""
        self.pod_gone(uid)
        self._bound.add(uid)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._returned)

    def _returned(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._wake.set()
        if not task.cancelled() and task.exception() is not None:
            log.error("a scheduler failed: please report this", exc_info=task.exception())

    def _about(self, pod: PodView) -> dict[str, str]:
        return {"scheduler": self.scheduler.name, "pod": str(pod.key)}
