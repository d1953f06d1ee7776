"""Server: runs a scheduler; takes pods, asks for nodes, and posts bindings.

    choose -> check -> assume -> post the Binding -> bound, or back into the queue

What comes of a binding is decided by what the server says, never by what the answer reads like:

    accepted                     -> bound; it counts as assumed until the stream shows it
    conflict, and the pod is     -> bound by whoever was faster, or by ourselves: an answer was lost
    bound, or not the same pod
    gone                         -> nothing is left to do
    no answer, 5xx               -> unknown: the room stays taken, and the same Binding is posted again
    anything else                -> refused: the room is given back, and the pod is tried again later
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import time
from collections import Counter
from collections.abc import Coroutine, Iterable, Mapping
from enum import Enum
from functools import partial
from typing import Any, Final

from ..calling import call, report, text_of
from ..client.api import Client
from ..client.errors import Conflict, NotFound, NotServed, ServerError, Unreachable
from ..core.conditions import condition, with_condition
from ..errors import ApiError, BonnyError, OptionError, UsageError
from ..events import Event, EventRecorder, EventType
from ..resource import Key, Resource, has_all_of
from ..telemetry import execute
from .cluster import POD, Cluster, Selected
from .demand import Demand
from .fits import REPELLED, Fit, fits, fits_shape
from .meters import Attempts, Result
from .nodes import Nodes
from .pending import Pending, State
from .scheduler import Scheduler, matcher
from .verdict import verdict
from .views import NodeView, PodView

__all__ = ["SchedulerServer"]

# More than a request may take; a `bind` of somebody's own may wait for ever.
BINDING_SECONDS: Final = 60.0
# Whether streams are current changes with time, too.
LOOK_SECONDS: Final = 1.0
# Between so many decisions others get their turn on the loop. About 5 ms.
DECISIONS_AT_ONCE: Final = 32

log = logging.getLogger("bonny.scheduler.server")


class _Outcome(Enum):
    """What came of a binding; see the module."""

    BOUND = "bound"
    SETTLED = "settled"
    UNKNOWN = "unknown"
    REFUSED = "refused"


class _NoNode(BonnyError):
    """There is no node for a pod. `parked`: nor will there be one until something changes."""

    def __init__(self, message: str, *, parked: bool, plugins: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.parked = parked
        self.plugins = frozenset(plugins)


class SchedulerServer:
    """Runs one scheduler. Decisions are made one after the other, bindings are posted side by side."""

    def __init__(self, scheduler: Scheduler, client: Client, *, cluster: Cluster, recorder: EventRecorder) -> None:
        """`cluster` is shared by all schedulers of an operator; it does not run yet.

        Raises: `OptionError` when the scheduler does not say what it needs.
        """
        if not scheduler.name or type(scheduler).select_node_for_pod is Scheduler.select_node_for_pod:
            raise OptionError(f"{type(scheduler).__name__} cannot schedule: give it a name, and a select_node_for_pod")
        self.scheduler = scheduler
        scheduler.client = client
        self._client = client
        self._cluster = cluster
        self._cache = cluster.cache
        self._recorder = recorder
        self._dry_run = scheduler.dry_run
        self._owns = matcher(scheduler.field_selector, where=f"field_selector of {type(scheduler).__name__}")
        self._node_list = Selected(
            scheduler.nodes,
            everything=cluster.nodes,
            follow=cluster.follow,
            changed=lambda key: self.nodes.touch(key.name),
        )
        self._pod_list = Selected(
            scheduler.pods, everything=cluster.pods, follow=cluster.follow, changed=self._reconsider
        )
        self.nodes = Nodes(self._cache, member=lambda name: Key("", name) in self._node_list)
        self.meters = Attempts()
        self._pending = Pending()
        self._pods: dict[str, PodView] = {}
        """The newest version of each pod that waits for a node, by UID, like all that follows."""

        self._parked: dict[Demand, set[str]] = {}
        self._followed = 0
        """Up to when the changes of nodes were looked at for who is parked."""

        self._kept_by: dict[str, frozenset[str]] = {}
        """Which parts of the check left no node for a pod when it was tried last."""

        self._on_its_way: dict[str, str] = {}
        """The node of each pod whose binding may have been carried out or not."""

        self._answered: set[str] = set()
        """Bound, as the server said and the stream has yet to show."""

        self._wake = asyncio.Event()
        self._running = self._stopping = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._fetched: dict[str, str] = {}
        """What was last told of each stream."""

        cluster.listeners.append(self)
        self._cache.listeners.append(self._node_changed)

    def __str__(self) -> str:
        return f"scheduler {self.scheduler.name}"

    def statistics(self) -> Mapping[State, int]:
        """How many of its pods stand where; while it does not run, they are the leader's, and it has none."""
        return (self._pending if self._running else Pending()).statistics()

    def unschedulable(self) -> Mapping[str, int]:
        """How many pods have no node because of which part of the check; one may count for several."""
        counts: Counter[str] = Counter()
        for plugins, pods in Counter(self._kept_by.values() if self._running else ()).items():
            counts.update(dict.fromkeys(plugins, pods))
        return counts

    # --- what streams show --------------------------------------------------------------------------------------------

    def pod_seen(self, pod: PodView) -> None:
        """A pod was added or changed."""
        uid = pod.uid
        if not (pod.pending and self._owns(pod) and pod.key in self._pod_list):
            self.pod_gone(uid)
        elif uid not in self._answered:
            before = self._pods.get(uid, pod)
            anew = before.demand != pod.demand or before.labels != pod.labels
            if anew:
                self._parked.get(before.demand, set()).discard(uid)
            self._pods[uid] = pod
            self._pending.add(uid, pod.order, anew=anew)
            self._wake.set()

    def pod_gone(self, uid: str) -> None:
        """A pod is not to be bound any more: it has a node, was deleted, or is another's."""
        pod = self._pods.pop(uid, None)
        if pod is not None:
            self._parked.get(pod.demand, set()).discard(uid)
        self._pending.forget(uid)
        self._on_its_way.pop(uid, None)
        self._kept_by.pop(uid, None)
        self._answered.discard(uid)

    def stream_advanced(self) -> None:
        self._wake.set()

    def server_restored(self) -> None:
        """What it said of bindings may not be so any longer."""
        self._answered.clear()

    def _reconsider(self, key: Key) -> None:
        """A pod may have come into the selection, or left it."""
        item = self._cluster.pods.store.get(key)
        if item is not None:
            self.pod_seen(PodView(item))

    def _node_changed(self, node: str | None) -> None:
        if node is None:
            self._unpark(list(self._parked))
        if self._parked:
            self._wake.set()

    # --- running ------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Schedule until `stop`, then wait for bindings on their way: the next leader has to see them.

        Cancelled, it cancels them first. Run again, it tries all pods that have no node yet.
        """
        self._pending, self._parked = Pending(), {}
        self._running, self._stopping = True, False
        for pod in list(self._pods.values()):
            self.pod_seen(pod)
        try:
            while not self._stopping:
                self._wake.clear()
                ready = await self._ready()
                if ready:
                    self._unpark_who_may_fit()
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
        """Whether all that decisions rest on is known, and as new as it can be."""
        ready = True
        for name, selected in (
            ("bonny.scheduler.nodes.fetch", self._node_list),
            ("bonny.scheduler.pods.fetch", self._pod_list),
        ):
            streams = selected.streams
            error: object = next((stream.trouble.message for stream in streams if stream.trouble is not None), None)
            try:
                await call(partial(selected.renew, seconds=self.scheduler.timeout))
            except Exception as caught:  # noqa: BLE001  the list is asked for again
                error = caught
            ready = ready and error is None and all(stream.current for stream in streams)
            if error is not None or streams[0].synced:
                told = f"{name}.{'succeeded' if error is None else 'failed'}"
                if self._fetched.get(name) != told:
                    self._fetched[name] = told
                    execute(told, {}, {"scheduler": self.scheduler.name, "error": error})
        return ready

    async def _rest(self, *, until: float | None) -> None:
        """Wait until there may be something to do: `until` a pod is due, or for a moment."""
        seconds = LOOK_SECONDS
        if until is not None and self._has_slots:
            seconds = min(max(until - time.monotonic(), 0.0), LOOK_SECONDS)
        alarm = asyncio.get_running_loop().call_later(seconds, self._wake.set)
        try:
            await self._wake.wait()
        finally:
            alarm.cancel()

    @property
    def busy(self) -> int:
        """How many bindings and reports are on their way; at most `max_bindings`."""
        return len(self._tasks)

    @property
    def _has_slots(self) -> bool:
        return not self._stopping and self.busy < self.scheduler.max_bindings

    # --- deciding -----------------------------------------------------------------------------------------------------

    async def _decide_some(self) -> None:
        for _ in range(DECISIONS_AT_ONCE):
            uid = self._pending.take(now=time.monotonic()) if self._has_slots else None
            if uid is None:
                return
            pod = self._pods[uid]
            try:
                await call(self._decide, pod)
            except Exception as error:  # noqa: BLE001  an error of the report costs this pod alone, too
                self._pending.retry(uid, now=time.monotonic())
                report(log.error, "a scheduler failed: please report this", error, self._about(pod))
        self._wake.set()
        await asyncio.sleep(0)

    async def _decide(self, pod: PodView) -> None:
        began = time.monotonic()
        try:
            chosen: Any = await call(self._choose, pod)
        except _NoNode as error:
            if pod.uid in self._pods:
                self._kept_by[pod.uid] = error.plugins
            self._ended(Result.UNSCHEDULABLE if error.parked else Result.ERROR, began)
            self._wait(pod.uid, str(error), parked=error.parked)
        except Exception as error:  # noqa: BLE001  it costs this pod alone
            self._ended(Result.ERROR, began)
            # The text of the error may hold secrets: the pod's events and status get only its type.
            self._wait(pod.uid, f"{self} failed with {type(error).__name__}", parked=False)
            report(log.warning, "choosing a node failed", error, self._about(pod))
        else:
            pod, node = chosen
            self._kept_by.pop(pod.uid, None)
            if pod.uid in self._pods and not self._stopping:
                self._place(pod, node, began)
        finally:
            self.meters.choices.observe(time.monotonic() - began)

    def _ended(self, result: Result, began: float) -> None:
        """Count an attempt."""
        self.meters.seconds[result].observe(time.monotonic() - began)

    async def _choose(self, pod: PodView) -> tuple[PodView, NodeView]:
        """The node for the pod, and the pod as it is by then. Raises: `_NoNode`, and what the scheduler raises."""
        waited = self.nodes.named(self._on_its_way.get(pod.uid, ""))
        if waited is not None:
            return pod, waited
        self._cache.give_back(pod.uid)
        self._on_its_way.pop(pod.uid, None)
        select = self.scheduler.select_node_for_pod
        choice: Any
        if inspect.iscoroutinefunction(select):
            # In a task of its own, so that code that cancels its task does not end this scheduler.
            choice = await asyncio.create_task(call(select, pod, self.nodes, seconds=self.scheduler.timeout))
            pod = self._pods.get(pod.uid, pod)
        else:
            choice = select(pod, self.nodes)
        if choice is None:
            raise self._nowhere(pod)
        name = choice.name if isinstance(choice, NodeView) else choice["metadata"]["name"]
        node = self.nodes.named(name)
        if node is None:
            raise _NoNode(f"{self} chose {name}, which is not one of its {len(self.nodes)} nodes", parked=False)
        check = type(self.scheduler).check
        fit = check is None or check(pod, node)
        if not fit:
            reasons = ", ".join(fit.reasons) if isinstance(fit, Fit) else "it does not pass its check"
            raise self._nowhere(pod, chosen=f"{self} chose {name}: {reasons}")
        return pod, node

    def _nowhere(self, pod: PodView, *, chosen: str = "") -> _NoNode:
        """Why none of the nodes is right; or, if one is, why the one that was chosen is not."""
        check = type(self.scheduler).check
        not_chosen = Fit(f"node(s) were not chosen by {self}", plugin="Selection")
        failed = Fit(f"node(s) didn't pass the check of {self}")
        told: Iterable[Fit | bool]
        if check is fits:
            told = (REPELLED if fit and node.repels(pod) else fit for node, fit in self.nodes.judged(pod))
        else:
            told = (check is None or check(pod, node) for node in self.nodes)
        found = [not_chosen if fit else fit if isinstance(fit, Fit) else failed for fit in told]
        if chosen and not_chosen in found:
            return _NoNode(chosen, parked=False)
        refusal = pod.demand.refusal if check is fits else ""
        plugins = (fit.plugin for fit in found)
        return _NoNode(verdict(found, nodes=len(self.nodes), refusal=refusal), parked=True, plugins=plugins)

    # --- waiting ------------------------------------------------------------------------------------------------------

    def _wait(self, uid: str, message: str, *, parked: bool) -> None:
        pod = self._pods.get(uid)
        if pod is None:  # it went while its node was chosen
            return
        if parked:
            self._pending.park(uid, now=time.monotonic())
            self._parked.setdefault(pod.demand, set()).add(uid)
        else:
            self._pending.retry(uid, now=time.monotonic())
        log.debug("no node", extra={**self._about(pod), "why": message})
        if self._dry_run:
            return
        self._recorder.record(pod.identity, Event(EventType.WARNING, "FailedScheduling", "Scheduling", message))
        before = [known for known in pod.decoded.status.conditions if known["type"] == "PodScheduled"]
        wanted = condition("PodScheduled", False, of=pod.identity, reason="Unschedulable", message=message)
        if not before or not has_all_of(before[0], wanted):
            self._spawn(self._write(pod, with_condition({"conditions": before}, wanted)))

    async def _write(self, pod: PodView, status: Resource) -> None:
        """Write the status, unless the pod changed meanwhile: it may have a node by now."""
        written = {**pod.identity, "status": status}
        try:
            await self._client.apply(POD, written, manager=self.scheduler.name, subresource="status")
        except (Conflict, NotFound):
            self._pending.wake(pod.uid)
        except (ApiError, UsageError) as error:
            report(log.warning, "the condition was not written", error, self._about(pod))

    def _unpark_who_may_fit(self) -> None:
        """Wake the pods of each shape for which a node that changed is right now."""
        changed, self._followed = self.nodes.changed_since(self._followed)
        checked = type(self.scheduler).check is fits
        for demand, uids in list(self._parked.items()):
            pod = next((self._pods[uid] for uid in uids), None)
            if pod is None or any(not checked or fits_shape(pod, node) for node in changed):
                self._unpark([demand])

    def _unpark(self, demands: Iterable[Demand]) -> None:
        for demand in demands:
            for uid in self._parked.pop(demand):
                self._pending.wake(uid)

    # --- binding ------------------------------------------------------------------------------------------------------

    def _place(self, pod: PodView, node: NodeView, began: float) -> None:
        """Count the pod on the node from now on, and post its binding."""
        self._cache.assume(pod, node.name)
        if self._dry_run:
            log.info("would bind", extra={**self._about(pod), "node": node.name})
            self._settled(pod.uid, answered=True)
            self._ended(Result.SCHEDULED, began)
        else:
            self._on_its_way[pod.uid] = node.name
            self._spawn(self._bind(pod, node, began))

    async def _bind(self, pod: PodView, node: NodeView, chosen: float) -> None:
        uid, began, error = pod.uid, time.monotonic(), None
        try:
            await call(self.scheduler.bind, pod, node, seconds=BINDING_SECONDS)
            outcome = _Outcome.BOUND
        except Exception as caught:  # noqa: BLE001  the pod is tried again
            error = caught
            outcome = await self._outcome(pod, node, caught)
        about = {**self._about(pod), "node": node.name}
        figures = {"duration": time.monotonic() - began}
        if outcome is not _Outcome.SETTLED:
            bound = outcome is _Outcome.BOUND
            self.meters.bindings["Success" if bound else "Error"].observe(figures["duration"])
            self._ended(Result.SCHEDULED if bound else Result.ERROR, chosen)
        if outcome is _Outcome.BOUND:
            self._settled(uid, answered=uid in self._pods)
            message = f"Successfully assigned {pod.key} to {node.name}"
            self._recorder.record(pod.identity, Event(EventType.NORMAL, "Scheduled", "Binding", message))
            execute("bonny.scheduler.binding.succeeded", figures, about)
            log.debug("bound", extra=about)
            return
        if outcome is not _Outcome.UNKNOWN:
            self._cache.give_back(uid)
            self._on_its_way.pop(uid, None)
        if outcome is _Outcome.SETTLED:
            self._settled(uid, answered=False)
            return
        self._pending.retry(uid, now=time.monotonic(), after=getattr(error, "retry_after", None) or 0.0)
        if outcome is _Outcome.REFUSED:
            message = f"Binding rejected: {text_of(error) if isinstance(error, BonnyError) else type(error).__name__}"
            self._recorder.record(pod.identity, Event(EventType.WARNING, "FailedScheduling", "Binding", message))
        execute("bonny.scheduler.binding.failed", figures, {**about, "error": error})
        if error is not None:
            report(log.warning, "binding failed", error, about)

    async def _outcome(self, pod: PodView, node: NodeView, error: BaseException) -> _Outcome:
        """What an error of a binding means."""
        match error:
            case NotFound():
                return _Outcome.SETTLED
            case Unreachable() | NotServed() | ServerError() | TimeoutError():
                return _Outcome.UNKNOWN
            case Conflict():
                pass
            case _:
                return _Outcome.REFUSED
        try:
            live = await self._client.get(POD, pod.name, namespace=pod.key.namespace, cut=True)
        except NotFound:
            return _Outcome.SETTLED
        except (ApiError, UsageError):
            return _Outcome.UNKNOWN
        has = live["spec"].get("nodeName")
        if live["metadata"]["uid"] == pod.uid and has in (None, node.name):
            return _Outcome.BOUND if has else _Outcome.REFUSED
        return _Outcome.SETTLED

    def _settled(self, uid: str, *, answered: bool) -> None:
        """Nothing is left to do about the pod; `answered`: the stream has yet to show it."""
        self.pod_gone(uid)
        if answered:
            self._answered.add(uid)

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
