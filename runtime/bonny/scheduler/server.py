"""Server: runs a scheduler; takes pods from the streams, hands them to the scheduling cycle, and lets them wait."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final

from ..calling import call
from ..client.api import Client
from ..errors import OptionError
from ..events import EventRecorder
from ..resource import Key
from ..telemetry import execute
from .cycle import SchedulingCycle
from .nodes import Nodes
from .pending import PodState
from .scheduler import Scheduler, check_of, matcher
from .streams import SchedulerStreams, Selected
from .views import PodView

# The longest sleep: streams can become outdated without an event.
LOOK_SECONDS: Final = 1.0
# After so many decisions, about 5 ms, other tasks of the loop get their turn.
DECISIONS_AT_ONCE: Final = 32


class SchedulerServer:
    """Runs one scheduler. Its pods wait in `pending` of the scheduling cycle, which takes one after the other."""

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
        self._owns = matcher(scheduler.field_selector, where=f"field_selector of {type(scheduler).__name__}")
        self._node_list = Selected(
            scheduler.nodes, streams.nodes, follow=streams.follow, changed=lambda key: self.nodes.touch(key.name)
        )
        self._pod_list = Selected(scheduler.pods, streams.pods, follow=streams.follow, changed=self._reconsider)
        cache, check = streams.cache, check_of(scheduler)
        self.nodes = Nodes(cache, check, member=lambda name: Key("", name) in self._node_list)
        self._wake = asyncio.Event()
        self.cycle = SchedulingCycle(scheduler, self.nodes, recorder=recorder, wake=self._wake)
        self._pending = self.cycle.pending
        self._compared = (0, 0)
        """The last change of nodes, and the last epoch of the check, that was compared with parked pods."""

        self._running = False
        self._fetched: dict[str, str] = {}
        """The last telemetry event about each selection."""

        streams.listeners.append(self)
        cache.shapes.append(check.shape)
        cache.listeners.append(lambda _: self._wake.set())

    def __str__(self) -> str:
        return f"scheduler {self.scheduler.name}"

    def statistics(self) -> Mapping[PodState, int]:
        """The number of its pods in each state; 0 on a standby, where it does not run."""
        return self._pending.statistics() if self._running else dict.fromkeys(PodState, 0)

    def unschedulable(self) -> Mapping[str, int]:
        """The number of pods without a node by the part of the check that failed; one pod can count for several."""
        return Counter(plugin for entry in self._pending.pods.values() for plugin in entry.plugins if self._running)

    # --- changes from the streams ---

    def pod_seen(self, pod: PodView) -> None:
        """A pod was added or changed."""
        if not (pod.pending and self._owns(pod) and pod.key in self._pod_list):
            self.pod_gone(pod.uid)
        elif pod.uid not in self.cycle.bound:
            self._pending.add(pod)
            self._wake.set()

    def pod_gone(self, uid: str) -> None:
        """A pod no longer waits for this scheduler: it has a node, was deleted, or has another scheduler."""
        self.cycle.forget(uid)

    def stream_advanced(self) -> None:
        """Nodes or pods changed: try again."""
        self._wake.set()

    def server_restored(self) -> None:
        """A restored etcd may have lost bindings that were accepted before."""
        self.cycle.bound.clear()

    def _reconsider(self, key: Key) -> None:
        """A pod may have entered or left the selection."""
        item = self._streams.pods.store.get(key)
        if item is not None:
            self.pod_seen(PodView(item))

    # --- running ---

    def run(self) -> Coroutine[Any, Any, None]:
        """Schedule until `stop`, then wait for bindings on their way: the next leader has to see them.

        Cancelled, it cancels them first. Run again, it tries all pods that have no node yet.
        """
        self.cycle.stopping = False  # not in the first step of the task: `stop` may be called before that
        return self._run()

    async def _run(self) -> None:
        self._running = True
        self._pending.restart()
        tasks = self.cycle.tasks
        try:
            while not self.cycle.stopping:
                self._wake.clear()
                ready = await self._ready()
                if ready:
                    self._unpark_fitting()
                    await self._decide_some()
                await self._sleep(until=self._pending.next_due() if ready else None)
            if tasks:
                await asyncio.wait(tasks)
        finally:
            self._running = False
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def stop(self) -> None:
        """Decide nothing more."""
        self.cycle.stopping = True
        self._wake.set()

    async def _ready(self) -> bool:
        """Whether the selected nodes and pods are complete and current."""
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

    async def _sleep(self, *, until: float | None) -> None:
        """Sleep until woken, until a pod is due (`until`), or for `LOOK_SECONDS`."""
        seconds = LOOK_SECONDS
        if until is not None and self.cycle.has_slots:
            seconds = min(max(until - time.monotonic(), 0.0), LOOK_SECONDS)
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wake.wait()

    async def _decide_some(self) -> None:
        for _ in range(DECISIONS_AT_ONCE):
            pod = self._pending.take(now=time.monotonic()) if self.cycle.has_slots else None
            if pod is None:
                return
            await self.cycle.place(pod)
        self._wake.set()
        await asyncio.sleep(0)

    def _unpark_fitting(self) -> None:
        """Wake the parked pods of each shape that may fit on a changed node; all of them in a new epoch."""
        check = self.nodes.check
        (change, epoch), self._compared = self._compared, (self.nodes.changes, check.epoch(self.nodes))
        changed = self.nodes.changed_since(change)
        for uids in list(self._pending.parked.values()):
            pod = self._pending.pods[next(iter(uids))].pod
            if epoch != self._compared[1] or any(check.may_fit(pod, node) for node in changed):
                self._pending.wake(list(uids))
