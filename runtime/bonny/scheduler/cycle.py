"""Cycle: takes one pod from the choice of its node to its binding.

choose -> check -> assume -> post the Binding -> bound, or back into the queue
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Coroutine
from enum import StrEnum
from typing import Any, Final

from ..calling import call, report, text_of
from ..client.clock import timestamp
from ..client.errors import Conflict, NotFound
from ..core.conditions import condition, with_condition
from ..core.meters import Histogram
from ..errors import ApiError, BonnyError, UsageError
from ..events import Event, EventRecorder, EventType
from ..resource import Resource, has_all_of
from ..telemetry import execute
from .binding import BindingOutcome, outcome_of
from .choosing import NoNode, checked, select
from .nodes import Nodes
from .pending import Pending
from .scheduler import Scheduler
from .streams import POD
from .views import NodeView, PodView

# Longer than a request may take; a user's `bind` may wait for ever.
BINDING_SECONDS: Final = 60.0

# All decisions of a scheduler have one logger, which the console of developers selects.
log = logging.getLogger("bonny.scheduler.server")


class Result(StrEnum):
    """How an attempt ended; the values of kube-scheduler's label."""

    SCHEDULED = "scheduled"
    UNSCHEDULABLE = "unschedulable"
    ERROR = "error"
    """Of the selection, or of the binding."""


class Attempts:
    """The meters of one scheduler. A pod that was deleted meanwhile does not count."""

    def __init__(self) -> None:
        self.choices = Histogram()
        """Selecting a node and checking it."""

        self.bindings: dict[str, Histogram] = {status: Histogram() for status in ("Success", "Error")}
        """From the request of a binding to its answer."""

        self.seconds: dict[str, Histogram] = {result: Histogram() for result in Result}
        """From the beginning of the choice to the end of the attempt."""

    def ended(self, result: Result, began: float) -> None:
        """Count an attempt that began at `began`, by the monotonic clock."""
        self.seconds[result].observe(time.monotonic() - began)


class SchedulingCycle:
    """Places the pods of one scheduler: decides on one after the other, and posts bindings side by side."""

    def __init__(self, scheduler: Scheduler, nodes: Nodes, *, recorder: EventRecorder, wake: asyncio.Event) -> None:
        """`wake` is set whenever a binding or a write of a status has ended."""
        self.meters = Attempts()
        self.pending = Pending(nodes.check.shape)
        self.bound: set[str] = set()
        """UIDs of pods that were bound, and the stream does not show as bound yet."""

        self.tasks: set[asyncio.Task[None]] = set()
        """Bindings and status writes under way; at most `max_bindings`."""

        self.stopping = False
        self._scheduler = scheduler
        self._nodes = nodes
        self._cache = nodes.cache
        self._recorder = recorder
        self._wake = wake

    @property
    def has_slots(self) -> bool:
        """Whether it may take another pod."""
        return not self.stopping and len(self.tasks) < self._scheduler.max_bindings

    def forget(self, uid: str) -> None:
        """A pod no longer waits for this scheduler."""
        self.pending.forget(uid)
        self.bound.discard(uid)

    async def place(self, pod: PodView) -> None:
        """Choose a node for the pod and begin to bind it, or let it wait. An error costs this pod alone."""
        try:
            await call(self._decide, pod)
        except Exception as error:  # noqa: BLE001  an error while reporting affects only this pod, too
            self.pending.retry(pod.uid, now=time.monotonic())
            report(log.error, "a scheduler failed: please report this", error, self._about(pod))

    async def _decide(self, pod: PodView) -> None:
        began = time.monotonic()
        try:
            node: Any = await call(self._choose, pod)
        except NoNode as error:
            self.meters.ended(Result.UNSCHEDULABLE if error.parked else Result.ERROR, began)
            self._wait(pod.uid, error)
        except Exception as error:  # noqa: BLE001  it costs this pod alone
            self.meters.ended(Result.ERROR, began)
            # The text of the exception may contain secrets: report only its type.
            failed = f"scheduler {self._scheduler.name} failed with {type(error).__name__}"
            self._wait(pod.uid, NoNode(failed, parked=False))
            report(log.warning, "choosing a node failed", error, self._about(pod))
        else:
            if pod.uid in self.pending.pods and not self.stopping:
                self._assign(self.pending.pods[pod.uid].pod, node, began)
        finally:
            self.meters.choices.observe(time.monotonic() - began)

    async def _choose(self, pod: PodView) -> NodeView:
        """The node for the pod. Raises: `NoNode`, and the scheduler's errors."""
        # A pod that is still assumed has a binding with an unknown outcome: post the same one again.
        node = self._nodes.named(self._cache.assumed_node(pod.uid))
        if node is not None:
            return node
        self._cache.give_back(pod.uid)
        choice = await select(self._scheduler, pod, self._nodes)
        entry = self.pending.pods.get(pod.uid)
        return checked(self._scheduler, entry.pod if entry is not None else pod, self._nodes, choice)

    def _wait(self, uid: str, why: NoNode) -> None:
        if uid not in self.pending.pods:  # it was deleted while its node was chosen
            return
        self.pending.retry(uid, now=time.monotonic(), parked=why.parked, plugins=why.plugins)
        pod, message = self.pending.pods[uid].pod, str(why)
        log.debug("no node", extra={**self._about(pod), "why": message})
        if self._scheduler.dry_run:
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
            await self._scheduler.client.apply(POD, resource, manager=self._scheduler.name, subresource="status")
        except (Conflict, NotFound):
            self.pending.wake([pod.uid])
        except (ApiError, UsageError) as error:
            report(log.warning, "writing the condition failed", error, self._about(pod))

    def _assign(self, pod: PodView, node: NodeView, began: float) -> None:
        """Count the pod on the node from now on, and post its binding."""
        self._cache.assume(pod, node.name)
        if self._scheduler.dry_run:
            log.info("would bind", extra={**self._about(pod), "node": node.name})
            self._settled(pod.uid)
            self.meters.ended(Result.SCHEDULED, began)
        else:
            self._spawn(self._bind(pod, node, began))

    async def _bind(self, pod: PodView, node: NodeView, chosen: float) -> None:
        began, error = time.monotonic(), None
        try:
            await call(self._scheduler.bind, pod, node, seconds=BINDING_SECONDS)
            outcome = BindingOutcome.BOUND
        except Exception as caught:  # noqa: BLE001  only this pod is tried again
            error = caught
            outcome = await outcome_of(caught, client=self._scheduler.client, pod=pod, node=node)
        if outcome in (BindingOutcome.SETTLED, BindingOutcome.REFUSED):
            self._cache.give_back(pod.uid)
        if outcome is BindingOutcome.SETTLED:
            self.forget(pod.uid)
            return
        about, seconds = {**self._about(pod), "node": node.name}, time.monotonic() - began
        bound = outcome is BindingOutcome.BOUND
        self.meters.bindings["Success" if bound else "Error"].observe(seconds)
        self.meters.ended(Result.SCHEDULED if bound else Result.ERROR, chosen)
        if bound:
            if pod.uid in self.pending.pods:
                self._settled(pod.uid)
            message = f"Successfully assigned {pod.key} to {node.name}"
            self._recorder.record(pod.identity, Event(EventType.NORMAL, "Scheduled", "Binding", message))
            execute("bonny.scheduler.binding.succeeded", {"duration": seconds}, about)
            log.debug("bound", extra=about)
            return
        self.pending.retry(pod.uid, now=time.monotonic(), after=getattr(error, "retry_after", None) or 0.0)
        if outcome is BindingOutcome.REFUSED:
            message = f"Binding rejected: {text_of(error) if isinstance(error, BonnyError) else type(error).__name__}"
            self._recorder.record(pod.identity, Event(EventType.WARNING, "FailedScheduling", "Binding", message))
        execute("bonny.scheduler.binding.failed", {"duration": seconds}, {**about, "error": error})
        if error is not None:
            report(log.warning, "binding failed", error, about)

    def _settled(self, uid: str) -> None:
        """Nothing is left to do for the pod, which the stream does not show as bound yet."""
        self.forget(uid)
        self.bound.add(uid)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self._returned)

    def _returned(self, task: asyncio.Task[None]) -> None:
        self.tasks.discard(task)
        self._wake.set()
        if not task.cancelled() and task.exception() is not None:
            log.error("a scheduler failed: please report this", exc_info=task.exception())

    def _about(self, pod: PodView) -> dict[str, str]:
        return {"scheduler": self._scheduler.name, "pod": str(pod.key)}
