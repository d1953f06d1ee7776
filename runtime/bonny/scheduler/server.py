"""Server: runs schedulers; takes pods, asks for nodes, and posts bindings.

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
import itertools
import logging
import math
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from ..client.api import Client
from ..client.errors import Conflict, NotFound, NotServed, ServerError, Unreachable
from ..core.objects import UNREADABLE
from ..core.store import Delta
from ..errors import ApiError, BonnyError, InvalidObject, OptionError
from ..kinds import Kind
from ..resource import Key, Resource, key_of
from ..servers.reflector import Reflector
from .assume import AssumeCache
from .binding import POD
from .demand import Demand
from .fits import REPELLED, Fit, fits, fits_shape
from .nodes import Nodes
from .pending import Pending, State
from .scheduler import NODE, Scheduler, Selection, matcher
from .verdict import verdict
from .views import NodeView, PodView

__all__ = ["Emit", "Event", "Means", "Recorder", "SchedulerServer", "assemble"]

BINDING_FAILED: Final = "bonny.scheduler.binding.failed"
BINDING_SUCCEEDED: Final = "bonny.scheduler.binding.succeeded"
NODES_FETCH_FAILED: Final = "bonny.scheduler.nodes.fetch.failed"
NODES_FETCH_SUCCEEDED: Final = "bonny.scheduler.nodes.fetch.succeeded"
PODS_FETCH_FAILED: Final = "bonny.scheduler.pods.fetch.failed"
PODS_FETCH_SUCCEEDED: Final = "bonny.scheduler.pods.fetch.succeeded"

# More than a request may take; a `bind` of somebody's own may wait for ever.
BINDING_SECONDS: Final = 60.0
# Whether streams are current changes with time, too, and lists are asked for again.
LOOK_SECONDS: Final = 1.0
# Between so many decisions others get their turn on the loop. About 5 ms.
DECISIONS_AT_ONCE: Final = 32

log = logging.getLogger("bonny.scheduler.server")


class Event(NamedTuple):
    """A Kubernetes Event about a pod."""

    type: str
    reason: str
    action: str
    message: str
    related: Resource | None = None


class Recorder(Protocol):
    """Takes Events; it may drop and merge them."""

    def record(self, regarding: Resource, event: Event) -> None: ...


Choosable: TypeAlias = Selection | Awaitable[Selection]
Emit: TypeAlias = Callable[[str, Mapping[str, float], Mapping[str, Any]], None]
"""Takes the name of a telemetry event, its measurements and its metadata."""


class _Outcome(Enum):
    """What came of a binding; see the module."""

    BOUND = "bound"
    SETTLED = "settled"
    UNKNOWN = "unknown"
    REFUSED = "refused"


class _NoNode(BonnyError):
    """There is no node for a pod. `parked`: nor will there be one until something changes."""

    def __init__(self, message: str, *, parked: bool) -> None:
        super().__init__(message)
        self.parked = parked


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What schedulers work with."""

    client: Client
    follow: Callable[[Kind], Reflector]
    """Gives the stream of a kind in all namespaces, the same for the same kind; whoever gives them runs them."""

    recorder: Recorder
    emit: Emit
    dry_run: bool = False
    """Decide and count as ever, but write nothing. Default off."""


def assemble(schedulers: Iterable[Scheduler], means: Means) -> list[SchedulerServer]:
    """The servers of all schedulers of an operator; each is a part with a `run` of its own.

    Call it before the streams run. Raises: `OptionError` when a scheduler does not say what it needs.
    """
    cluster = _Cluster(means)
    return [SchedulerServer(scheduler, means, cluster) for scheduler in schedulers]


class _Cluster:
    """What all schedulers of an operator share: two streams, and who counts where."""

    def __init__(self, means: Means) -> None:
        self.cache = AssumeCache()
        self.nodes = means.follow(NODE)
        self.pods = means.follow(POD)
        self.servers: list[SchedulerServer] = []
        for stream in (self.nodes, self.pods):
            stream.subscribe(self)

    def seen(self, source: Reflector, delta: Delta) -> None:
        """The cache is told first: servers decide with what it says."""
        if source is self.nodes:
            self.cache.see_node(delta.key.name, delta.new)
            return
        pod = None if delta.new is None else PodView(delta.new)
        if delta.old is not None and (pod is None or pod.uid != delta.old.meta.uid):
            self.cache.pod_gone(delta.old.meta.uid)
            for server in self.servers:
                server.pod_gone(delta.old.meta.uid)
        if pod is not None and _is_readable(pod):
            self.cache.see_pod(pod)
            for server in self.servers:
                server.pod_seen(pod)

    def advanced(self, source: Reflector) -> None:  # noqa: ARG002  a subscriber is told by whom
        for server in self.servers:
            server.wake.set()

    def restored(self, source: Reflector) -> None:  # noqa: ARG002
        for server in self.servers:
            server.doubt()


class _Selected:
    """Which objects of a stream a scheduler wants: all, those that another stream shows, or those in a list."""

    def __init__(
        self, ask: Callable[[], Selection | Awaitable[Selection]], follow: Callable[[Kind], Reflector]
    ) -> None:
        self._ask = ask
        asked = None if inspect.iscoroutinefunction(ask) else ask()
        self.stream = follow(asked) if isinstance(asked, Kind) else None
        self._keys: frozenset[Key] = frozenset()

    def __contains__(self, key: Key) -> bool:
        return key in self._keys if self.stream is None else self.stream.store.get(key) is not None

    async def renewed(self) -> frozenset[Key]:
        """Ask for the list again; return what is new in it, or not in it any more. Raises: what asking raises."""
        asked = self._ask()
        found = await asked if inspect.isawaitable(asked) else asked
        if isinstance(found, Kind):
            raise OptionError(f"{self._ask.__qualname__} gives a Kind: make it a plain method, without async")
        before, self._keys = self._keys, frozenset(map(key_of, found))
        return self._keys ^ before


class SchedulerServer:
    """Runs one scheduler. Decisions are made one after the other, bindings are posted side by side."""

    def __init__(self, scheduler: Scheduler, means: Means, cluster: _Cluster) -> None:
        self.scheduler = scheduler
        self.wake = asyncio.Event()
        """Set whenever there may be something to do."""

        scheduler.client = means.client
        self._means = means
        self._cluster = cluster
        self._cache = cluster.cache
        self._owns = matcher(scheduler.field_selector, where=f"field_selector of {type(scheduler).__name__}")
        self._node_list = _Selected(scheduler.nodes, means.follow)
        self._pod_list = _Selected(scheduler.pods, means.follow)
        self.nodes = Nodes(self._cache, member=lambda name: Key("", name) in self._node_list)
        self._pending = Pending()
        self._pods: dict[str, PodView] = {}
        """The newest version of each pod that waits for a node, by UID, like all that follows."""

        self._parked: dict[Demand, set[str]] = {}
        self._followed = 0
        """Up to when the changes of nodes were looked at for who is parked."""

        self._on_its_way: dict[str, str] = {}
        """The node of each pod whose binding may have been carried out or not."""

        self._answered: set[str] = set()
        """Bound, as the server said and the stream has yet to show."""

        self._tasks: set[asyncio.Task[None]] = set()
        self._renewed: dict[Kind, float] = {}
        """When each list was last asked for."""

        self._fetched: dict[Kind, str] = {}
        """What was last told of each stream."""

        cluster.servers.append(self)
        self._cache.listeners.append(self._changed)
        self._sources = [cluster.nodes, cluster.pods]
        for selected in (self._node_list, self._pod_list):
            if selected.stream is not None and selected.stream not in self._sources:
                self._sources.append(selected.stream)
                selected.stream.subscribe(self)

    def __str__(self) -> str:
        return f"scheduler {self.scheduler.name}"

    def statistics(self) -> Mapping[State, int]:
        """How many of its pods stand where."""
        return self._pending.statistics()

    # --- what streams show --------------------------------------------------------------------------------------------

    def pod_seen(self, pod: PodView) -> None:
        """A pod was added or changed."""
        uid = pod.uid
        if not (pod.pending and self._owns(pod) and pod.key in self._pod_list):
            self.pod_gone(uid)
        elif uid not in self._answered:
            before = self._pods.get(uid)
            self._pods[uid] = pod
            anew = before is not None and (before.demand != pod.demand or before.labels != pod.labels)
            created = pod.decoded.metadata.creation_timestamp or ""
            self._pending.add(uid, (-pod.decoded.spec.priority, created), anew=anew)
            self.wake.set()

    def pod_gone(self, uid: str) -> None:
        """A pod is not to be bound any more: it has a node, was deleted, or is another's."""
        pod = self._pods.pop(uid, None)
        if pod is not None:
            self._parked.get(pod.demand, set()).discard(uid)
        self._pending.forget(uid)
        self._on_its_way.pop(uid, None)
        self._answered.discard(uid)

    def doubt(self) -> None:
        """The server was restored: what it said of bindings may not be so any longer."""
        self._answered.clear()

    def seen(self, source: Reflector, delta: Delta) -> None:
        """A selection of its own has one more object or one less, or one of them changed."""
        self._reconsider(self._node_list if source is self._node_list.stream else self._pod_list, delta.key)

    def advanced(self, source: Reflector) -> None:  # noqa: ARG002
        self.wake.set()

    def restored(self, source: Reflector) -> None:
        """The streams of all objects tell the same."""

    def _reconsider(self, selected: _Selected, key: Key) -> None:
        if selected is self._node_list:
            self.nodes.touch(key.name)
        elif (item := self._cluster.pods.store.get(key)) is not None:
            self.pod_seen(PodView(item))
        self.wake.set()

    def _changed(self, node: str | None) -> None:
        if node is None:
            self._unpark(list(self._parked))
        if self._parked:
            self.wake.set()

    # --- running ------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Schedule until cancelled. Run again, it tries everything that has no node yet."""
        self._pending = Pending()
        for pod in list(self._pods.values()):
            self.pod_seen(pod)
        try:
            while True:
                self.wake.clear()
                ready = await self._ready()
                if ready:
                    self._unpark_who_may_fit()
                    await self._decide_all()
                await self._rest(until=self._pending.next_due() if ready else None)
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _ready(self) -> bool:
        """Whether all that decisions rest on is known, and as new as it can be."""
        for source, failed, succeeded in (
            (self._cluster.nodes, NODES_FETCH_FAILED, NODES_FETCH_SUCCEEDED),
            (self._cluster.pods, PODS_FETCH_FAILED, PODS_FETCH_SUCCEEDED),
        ):
            if source.trouble is not None:
                self._tell_fetched(failed, source.kind, error=source.trouble.message)
            elif source.synced:
                self._tell_fetched(succeeded, source.kind)
        if not all(source.current for source in self._sources):
            return False
        lists = await self._renew(self._node_list, NODE, NODES_FETCH_FAILED)
        return await self._renew(self._pod_list, POD, PODS_FETCH_FAILED) and lists

    async def _renew(self, selected: _Selected, kind: Kind, failed: str) -> bool:
        """Ask for a list again, if it is one and it is time for it; returns whether it is known."""
        if selected.stream is not None or time.monotonic() - self._renewed.get(kind, -math.inf) < LOOK_SECONDS:
            return True
        try:
            async with asyncio.timeout(self.scheduler.timeout):
                changed = await selected.renewed()
        except Exception as error:  # noqa: BLE001  whatever asking raises, it is asked again
            self._tell_fetched(failed, kind, error=str(error))
            return False
        self._renewed[kind] = time.monotonic()
        for key in changed:
            self._reconsider(selected, key)
        return True

    def _tell_fetched(self, name: str, kind: Kind, *, error: str = "") -> None:
        """Emit `name` where it is news."""
        if self._fetched.get(kind) != name:
            self._fetched[kind] = name
            self._means.emit(name, {"count": 1}, {"scheduler": self.scheduler.name, "error": error})

    async def _rest(self, *, until: float | None) -> None:
        """Wait until there may be something to do: `until` a pod is due, or for a moment."""
        seconds = LOOK_SECONDS
        if until is not None and len(self._tasks) < self.scheduler.max_bindings:
            seconds = min(max(until - time.monotonic(), 0.0), LOOK_SECONDS)
        alarm = asyncio.get_running_loop().call_later(seconds, self.wake.set)
        try:
            await self.wake.wait()
        finally:
            alarm.cancel()

    # --- parked pods --------------------------------------------------------------------------------------------------

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

    # --- deciding -----------------------------------------------------------------------------------------------------

    async def _decide_all(self) -> None:
        for number in itertools.count(1):
            uid = self._pending.take(now=time.monotonic()) if len(self._tasks) < self.scheduler.max_bindings else None
            if uid is None:
                return
            await self._decide(self._pods[uid])
            if number % DECISIONS_AT_ONCE == 0:
                await asyncio.sleep(0)

    async def _decide(self, pod: PodView) -> None:
        try:
            pod, node = await self._choose(pod)
        except _NoNode as verdict:
            self._wait(pod, str(verdict), parked=verdict.parked)
        except Exception as error:
            # What somebody's code says may be a secret; its kind is none.
            self._wait(pod, f"{self} failed with {type(error).__name__}", parked=False)
            log.exception("choosing a node failed", extra=self._about(pod))
        else:
            if pod.uid in self._pods:
                self._place(pod, node)

    async def _choose(self, pod: PodView) -> tuple[PodView, NodeView]:
        """The node for the pod, and the pod as it is by then. Raises: `_NoNode`, and what the scheduler raises."""
        waited = self.nodes.named(self._on_its_way.get(pod.uid, ""))
        if waited is not None:
            return pod, waited
        self._cache.give_back(pod.uid)
        self._on_its_way.pop(pod.uid, None)
        choice = self.scheduler.select_node_for_pod(pod, self.nodes)
        if inspect.isawaitable(choice):
            async with asyncio.timeout(self.scheduler.timeout):
                choice = await choice
            pod = self._pods.get(pod.uid, pod)
        check = type(self.scheduler).check
        if choice is None:
            raise self._nowhere(pod)
        name = choice.name if isinstance(choice, NodeView) else choice["metadata"]["name"]
        node = self.nodes.named(name)
        if node is None:
            raise _NoNode(f"{self} chose {name}, which is not one of its {len(self.nodes)} nodes", parked=False)
        fit = check is None or check(pod, node)
        if not fit:
            reasons = ", ".join(fit.reasons) if isinstance(fit, Fit) else "it does not pass its check"
            raise self._nowhere(pod, chosen=f"{self} chose {name}: {reasons}")
        return pod, node

    def _nowhere(self, pod: PodView, *, chosen: str = "") -> _NoNode:
        """Why none of the nodes is right; or, if one is, why the one that was chosen is not."""
        check = type(self.scheduler).check
        not_chosen, unchecked = (
            Fit(f"node(s) {why} {self}") for why in ("were not chosen by", "didn't pass the check of")
        )
        told: Iterable[Fit | bool]
        if check is fits:
            told = (REPELLED if fit and node.repels(pod) else fit for node, fit in self.nodes.judged(pod))
        else:
            told = (check is None or check(pod, node) for node in self.nodes)
        found = [not_chosen if fit else fit if isinstance(fit, Fit) else unchecked for fit in told]
        if chosen and not_chosen in found:
            return _NoNode(chosen, parked=False)
        refusal = pod.demand.refusal if check is fits else ""
        return _NoNode(verdict(found, nodes=len(self.nodes), refusal=refusal), parked=True)

    def _wait(self, pod: PodView, message: str, *, parked: bool) -> None:
        now = time.monotonic()
        if parked:
            self._pending.park(pod.uid, now=now)
            self._parked.setdefault(pod.demand, set()).add(pod.uid)
        else:
            self._pending.retry(pod.uid, now=now)
        log.debug("no node", extra={**self._about(pod), "why": message})
        if self._means.dry_run:
            return
        self._record(pod, Event("Warning", "FailedScheduling", "Scheduling", message))
        known = pod.scheduled
        if (known.status, known.reason, known.message) != ("False", "Unschedulable", message):
            self._spawn(self._write_condition(pod, message))

    async def _write_condition(self, pod: PodView, message: str) -> None:
        """Write PodScheduled=False, unless the pod changed meanwhile: it may have a node by now."""
        since = pod.scheduled.last_transition_time if pod.scheduled.status == "False" else None
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": message,
            "lastTransitionTime": since or datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        named = _identity(pod)
        named["metadata"]["resourceVersion"] = pod.item.meta.resource_version
        try:
            await self._means.client.apply(
                POD, {**named, "status": {"conditions": [condition]}}, manager=self.scheduler.name, subresource="status"
            )
        except (Conflict, NotFound):
            self._pending.wake(pod.uid)
        except ApiError as error:
            log.warning("condition not written", extra={**self._about(pod), "error": str(error)})

    # --- binding ------------------------------------------------------------------------------------------------------

    def _place(self, pod: PodView, node: NodeView) -> None:
        """Count the pod on the node from now on, and post its binding."""
        self._cache.assume(pod, node.name)
        if self._means.dry_run:
            log.info("would bind", extra={**self._about(pod), "node": node.name})
            self._settled(pod.uid, answered=True)
            return
        self._on_its_way[pod.uid] = node.name
        self._spawn(self._bind(pod, node))

    async def _bind(self, pod: PodView, node: NodeView) -> None:
        began, error = time.monotonic(), None
        try:
            async with asyncio.timeout(BINDING_SECONDS):
                await self.scheduler.bind(pod, node)
            outcome = _Outcome.BOUND
        except Exception as caught:  # noqa: BLE001  whatever `bind` raises, the pod comes back and nobody else suffers
            error = caught
            outcome = await self._outcome(pod, node, caught)
        now = time.monotonic()
        match outcome:
            case _Outcome.BOUND:
                self._settled(pod.uid, answered=pod.uid in self._pods)
                message = f"Successfully assigned {pod.key} to {node.name}"
                self._record(pod, Event("Normal", "Scheduled", "Binding", message))
            case _Outcome.SETTLED:
                self._cache.give_back(pod.uid)
                self._settled(pod.uid, answered=False)
            case _Outcome.UNKNOWN:
                self._pending.retry(pod.uid, now=now)
            case _Outcome.REFUSED:
                self._cache.give_back(pod.uid)
                self._on_its_way.pop(pod.uid, None)
                self._pending.retry(pod.uid, now=now, after=getattr(error, "retry_after", None) or 0.0)
                self._record(pod, Event("Warning", "FailedScheduling", "Binding", f"Binding rejected: {error}"))
        about = {**self._about(pod), "node": node.name}
        if outcome is _Outcome.BOUND:
            log.debug("bound", extra=about)
            self._means.emit(BINDING_SUCCEEDED, {"seconds": now - began}, about)
        elif outcome is not _Outcome.SETTLED:
            about["error"] = str(error) or type(error).__name__
            log.warning("binding failed", extra=about)
            self._means.emit(BINDING_FAILED, {"seconds": now - began}, about)

    async def _outcome(self, pod: PodView, node: NodeView, error: Exception) -> _Outcome:
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
            live = await self._means.client.get(POD, pod.name, namespace=pod.key.namespace)
        except NotFound:
            return _Outcome.SETTLED
        except ApiError:
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
        self.wake.set()
        if not task.cancelled() and task.exception() is not None:
            log.error("a scheduler failed: please report this", exc_info=task.exception())

    # --- telling ------------------------------------------------------------------------------------------------------

    def _record(self, pod: PodView, event: Event) -> None:
        self._means.recorder.record(_identity(pod), event)

    def _about(self, pod: PodView) -> dict[str, str]:
        return {"scheduler": self.scheduler.name, "pod": str(pod.key)}


def _is_readable(pod: PodView) -> bool:
    """Whether it can be decoded. The API server lets nothing else in; one bad object must not hold up the others."""
    try:
        return pod.demand is not None
    except (InvalidObject, *UNREADABLE):
        log.exception("a pod cannot be read", extra={"pod": str(pod.key)})
        return False


def _identity(pod: PodView) -> Resource:
    """The pod as Events and patches name it."""
    metadata = {"name": pod.name, "namespace": pod.key.namespace, "uid": pod.uid}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}
