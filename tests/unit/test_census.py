"""Memory over days: objects come, change, fail, are deleted and created again, and every structure forgets them.

Each case lives through some events with a population that stays the same, and then through ten times as many, in
virtual time. By then no container may hold more than before, but for a constant.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import random
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, cast

import pytest

from bonny import Action, Axn, Controller, Retry, Terminal
from bonny.client import api
from bonny.client.metering import Requests
from bonny.core import records as records_module
from bonny.core import watch
from bonny.core.fights import Fights
from bonny.core.framing import Lines
from bonny.core.handled import handled_state
from bonny.core.queue import Priority, Queue, Reason
from bonny.core.records import Records, applied_record
from bonny.core.series import Correlator
from bonny.core.store import Store
from bonny.core.watch import Begin, Gone, Put, Sweep
from bonny.engine import router as router_module
from bonny.engine.router import Router
from bonny.engine.stream import Stream
from bonny.engine.worker import Worker
from bonny.filters import fits, index, least_allocated
from bonny.kinds import Kind, Owned, Related, Scope
from bonny.pipeline import Pipeline
from bonny.resource import Key, Resource
from bonny.scheduler import Scheduler
from bonny.scheduler.assume import AssumeCache
from bonny.scheduler.nodes import Nodes
from bonny.scheduler.pending import Pending
from bonny.scheduler.server import SchedulerServer
from bonny.scheduler.streams import SchedulerStreams
from bonny.scheduler.views import PodView
from bonny.servers import periodic
from bonny.servers.periodic import Next, PeriodicTask, PeriodicTasks, Stop, TaskRun
from tests.support import scheduling
from tests.support.census import census, grown
from tests.support.core import item, line, page, thing
from tests.support.recorder import KeptEvents
from tests.support.virtual import Clock

POPULATION = 20
# What clean-ups leave standing: 64 void places, and as many again in each of a few lines.
CONSTANT = 200
# Small, so that they are reached at once; each is bounded by a test of its own.
CAPS = 50

WIDGET = Kind("example.com/v1", "Widget", plural="widgets", scope=Scope.NAMESPACED)
CHILD = Owned("v1", "ConfigMap")
SECRET = Related("v1", "Secret", keys=lambda secret: [secret["metadata"]["name"]])


class Life:
    """What one structure lives through. `roots` is what is counted; `after` may let the loop do something."""

    events: ClassVar[int] = 10_000
    """How many are enough for the quick run; fewer where one takes longer."""

    rest: ClassVar[bool] = False
    """Whether tasks of the case have to run after each event."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.random = random.Random(20261122)
        self.numbers = itertools.count(1)
        self.live: deque[str] = deque()

    async def begin(self) -> None:
        """In the loop, before the first event."""

    def event(self) -> None:
        """One thing that happens."""
        raise NotImplementedError

    @property
    def roots(self) -> object:
        raise NotImplementedError

    async def end(self) -> None:
        """After the last one."""

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def some(self) -> str:
        """One of those that live."""
        return self.live[self.random.randrange(len(self.live))]

    def turn_over(self) -> tuple[str, str | None]:
        """A new one, and the one that makes room for it once there are enough. One in ten has had its name before."""
        name = f"w{self.random.randrange(POPULATION)}" if self.chance(0.1) else f"w{next(self.numbers) + POPULATION}"
        if name in self.live:
            self.live.remove(name)
            return name, name
        self.live.append(name)
        return name, self.live.popleft() if len(self.live) > POPULATION else None


# --- the core ---------------------------------------------------------------------------------------------------------


class QueueOfALeader(Life):
    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.roots_: Queue[str] = Queue()
        self.held: set[str] = set()

    @property
    def roots(self) -> object:
        return self.roots_

    def event(self) -> None:
        queue, now = self.roots_, self.clock.now
        new, gone = self.turn_over()
        for name, reason in ((new, Reason.ADDED), (self.some(), Reason.CHANGED), (self.some(), Reason.CHILD)):
            queue.add(name, reason, now=now, priority=self.random.choice([*Priority]))
        queue.set_timer(self.some(), Reason.RESYNC, at=now + self.random.choice([1.0, 36_000.0]))
        if gone is not None and gone not in self.held:
            queue.discard(gone)
        queue.unpark(self.some())
        while len(self.held) < 5 and (work := queue.take(now=now)) is not None:
            self.held.add(work.key)
        while self.held and self.chance(0.8):
            key = self.held.pop()
            give_back: list[Callable[[], object]] = [
                lambda key=key: queue.done(key, now=now),
                lambda key=key: queue.done(key, now=now),
                lambda key=key: queue.retry(key, now=now, chance=self.random.random()),
                lambda key=key: queue.park(key, until=now + 5.0),
            ]
            self.random.choice(give_back)()
            if key not in self.live:
                queue.discard(key)


class QueueOfAStandby(QueueOfALeader):
    def event(self) -> None:
        new, gone = self.turn_over()
        for name in (new, self.some()):
            priority = self.random.choice([*Priority])
            self.roots_.add(name, Reason.ADDED, now=self.clock.now, priority=priority)
        if gone is not None:
            self.roots_.discard(gone)


def key(name: str) -> Key:
    return Key("default", name)


class RecordsOfALeader(Life):
    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.roots_: Records = Records()
        self.uids = itertools.count(1)

    @property
    def roots(self) -> object:
        return self.roots_

    def event(self) -> None:
        new, gone = self.turn_over()
        known = item(new, uid=f"uid-{next(self.uids)}", generation=1)
        record = self.roots_.of(key(new))
        record.handled = handled_state(known, with_status=False)
        record.applied = {(CHILD, key(new)): applied_record({}, thing(new, version=1), {})}
        if gone is not None:
            self.ended(gone)

    def ended(self, name: str) -> None:
        self.roots_.add_tombstone(key(name), item(name, uid=f"uid-{next(self.uids)}"), now=self.clock.now)
        for stone in self.roots_.tombstones(key(name)):
            self.roots_.mark_deleted(stone.item.meta.uid)
            self.roots_.remove_tombstone(key(name), stone)
        if name not in self.live:
            self.roots_.forget(key(name))


class RecordsOfAStandby(RecordsOfALeader):
    def ended(self, name: str) -> None:
        self.roots_.add_tombstone(key(name), item(name, uid=f"uid-{next(self.uids)}"), now=self.clock.now)
        for forgotten in self.roots_.remove_tombstones_before(self.clock.now - 5.0):
            if forgotten.name not in self.live:
                self.roots_.forget(forgotten)


class FightsOfAll(Life):
    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.roots_ = Fights()

    @property
    def roots(self) -> object:
        return self.roots_

    def event(self) -> None:
        self.turn_over()
        self.clock.now += 10.0
        for name in {self.some() for _ in range(5)}:
            if not self.roots_.wait(name, now=self.clock.now):
                self.roots_.corrected(name, now=self.clock.now)


class SeriesOfAll(Life):
    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.roots_ = Correlator(limit=CAPS)

    @property
    def roots(self) -> object:
        return self.roots_

    def event(self) -> None:
        new, _ = self.turn_over()
        for name in (new, self.some(), self.some()):
            self.roots_.record(f"{name} failed".encode(), subject=name, now=self.clock.now)
        while (series := self.roots_.take(now=self.clock.now)) is not None:
            stored = self.random.choice([True, True, False, None])
            self.roots_.settle(series, stored=stored, now=self.clock.now)
            if self.chance(0.5):
                return


class StoreOfAStream(Life):
    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.roots_ = Store()
        self.roots_.add_index("uid", lambda known: (known.meta.uid,))
        self.roots_.add_index("label", lambda known: (known.meta.labels or {}).values())
        self.version = 0

    @property
    def roots(self) -> object:
        return self.roots_

    def event(self) -> None:
        new, gone = self.turn_over()
        self.version += 10
        if self.chance(0.05):
            # What is gone by now is swept; every other list is never completed.
            list(self.roots_.apply(Begin(self.version, False)))
            for name in self.live:
                list(self.roots_.apply(Put(self.made(name), False)))
            if self.chance(0.5):
                list(self.roots_.apply(Sweep()))
        list(self.roots_.apply(Put(self.made(new), True)))
        if gone is not None and gone != new:
            list(self.roots_.apply(Gone(self.made(gone))))

    def made(self, name: str) -> Any:
        self.version += 1
        labels = {"a": str(self.version), "b": self.random.choice("xy")}
        return item(name, uid=f"uid-{self.version}", version=self.version, labels=labels)


class LinesOfAWatch(Life):
    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.roots_ = Lines()
        self.bytes = b"".join(b"x" * self.random.randrange(500) + b"\n" for _ in range(50))

    @property
    def roots(self) -> object:
        return self.roots_

    def event(self) -> None:
        start = self.random.randrange(len(self.bytes) - 100)
        list(self.roots_.feed(self.bytes[start : start + 2000] + b"\n"))


# --- schedulers -------------------------------------------------------------------------------------------------------


def pod_of(uid: str, *, priority: int = 0, version: int = 0) -> PodView:
    """A pod without a node; another `version` has other labels."""
    made = scheduling.pod(uid, priority=priority, labels={"version": str(version)})
    return PodView(scheduling.item(made, uid=uid))


class PodsThatWait(Life):
    """As the leader sees them: they are taken, and wait, fit or go."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.roots_ = Pending(fits.shape)
        self.taken: list[str] = []

    @property
    def roots(self) -> object:
        return self.roots_

    def event(self) -> None:
        pending, now = self.roots_, self.clock.now
        new, gone = self.turn_over()
        pending.add(pod_of(new))
        pending.add(pod_of(self.some(), priority=self.random.randrange(3), version=self.random.randrange(2)))
        if gone is not None and gone != new:
            pending.forget(gone)
        pending.wake([self.some()])
        while self.chance(0.8) and (pod := pending.take(now=now)) is not None:
            ends = [
                pending.forget,
                lambda uid: pending.retry(uid, now=now),
                lambda uid: pending.retry(uid, now=now, parked=True),
            ]
            self.random.choice(ends)(pod.uid)


class PodsThatAnotherOneBinds(PodsThatWait):
    """As a standby sees them: they come, are bound by the leader, and go."""

    def event(self) -> None:
        new, gone = self.turn_over()
        self.roots_.add(pod_of(new))
        self.roots_.add(pod_of(self.some(), priority=1, version=self.random.randrange(1000)))
        if gone is not None and gone != new:
            self.roots_.forget(gone)


class RoomOnNodes(Life):
    """Nodes come and go under ever new names, and so do the pods on them, each of another shape."""

    events = 2_000

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.cache = AssumeCache()
        self.nodes = Nodes(self.cache, fits)
        self.pods: deque[PodView] = deque()

    @property
    def roots(self) -> object:
        return {"cache": self.cache, "nodes": self.nodes}

    def event(self) -> None:
        number = next(self.numbers)
        if number % 20 == 1:
            new, gone = self.turn_over()
            self.cache.see_node(new, scheduling.item(scheduling.node(new, cpu="1000"), version=number))
            if gone is not None and gone != new:
                self.cache.see_node(gone, None)
        cpu, tier = f"{self.random.randrange(900)}m", str(number % 30)
        affinity = {
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {"labelSelector": {"matchLabels": {"tier": tier}}, "topologyKey": "kubernetes.io/hostname"}
                ]
            }
        }
        made = scheduling.pod(f"p{number}", cpu=cpu, labels={"tier": tier}, affinity=affinity)
        pod = PodView(scheduling.item(made, version=number))
        best = self.nodes.fitting(pod).best(least_allocated if self.chance(0.5) else lambda _, node: len(node.name))
        if best is not None:
            self.cache.assume(pod, best.name)
            self.pods.append(pod)
        if self.chance(0.1):
            self.cache.give_back(pod.uid)
        if len(self.pods) > POPULATION:
            self.cache.pod_gone(self.pods.popleft().uid)


class Picks(Scheduler):
    """Never runs here."""

    name = "picks"

    def select_node_for_pod(self, pod: Any, nodes: Any) -> Any:
        return nodes[0]


class SchedulerThatStandsBy(Life):
    """Its streams show it pods that another replica binds."""

    events = 2_000

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.streams: dict[str, Stream] = {}
        self.scheduler_streams = SchedulerStreams(self.follow)
        self.server = SchedulerServer(
            Picks(), cast("Any", None), streams=self.scheduler_streams, recorder=cast("Any", KeptEvents())
        )
        self.version = 10
        for stream in self.streams.values():
            tells(stream, watch.Reply(200, page(version=10)), watch.Opened())

    def follow(self, kind: Kind) -> Stream:
        made = Stream(cast("Any", None), kind, namespace=None, options=watch.WatchOptions())
        return self.streams.setdefault(kind.plural, made)

    @property
    def roots(self) -> object:
        return {"server": self.server, "streams": self.scheduler_streams}

    def event(self) -> None:
        new, gone = self.turn_over()
        for name, node in ((new, ""), (self.some(), "n1")):
            self.says("ADDED", name, node=node, cpu=f"{self.random.randrange(900)}m")
        if gone is not None and gone != new:
            self.says("DELETED", gone)

    def says(self, event: str, name: str, **fields: str) -> None:
        self.version += 1
        made = scheduling.pod(name, scheduler="picks", **cast("Any", fields))
        metadata = {"uid": f"uid-{name}", "resourceVersion": str(self.version)}
        metadata |= {"creationTimestamp": "2026-01-01T00:00:00Z"}
        made["metadata"] |= metadata
        tells(self.streams["pods"], watch.Line(line(event, made)))


# --- a controller -----------------------------------------------------------------------------------------------------


def tells(stream: Stream, *events: watch.WatchInput) -> None:
    """Each step is carried out to its end; its pauses are not waited for."""
    for event in events:
        step = stream._step(event)
        try:
            while True:
                step.send(None)
        except StopIteration:
            pass


class ControllerThatStandsBy(Life):
    """Streams of widgets, of their children and of what they refer to; nothing is handled."""

    events = 2_000

    blocked: ClassVar[bool] = False

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.version = 10
        self.alive: dict[str, str] = {}
        self.widgets, self.children, self.secrets = (
            Stream(cast("Any", None), kind, namespace=None, options=watch.WatchOptions())
            for kind in (WIDGET, CHILD, SECRET)
        )
        self.router = Router(
            primary=[self.widgets],
            owned={CHILD: [self.children]},
            related={SECRET: [self.secrets]},
            on_status=True,
        )
        for stream in self.router.streams:
            if self.blocked and stream is self.children:
                tells(stream, watch.Reply(403, b"{}"))
            else:
                tells(stream, watch.Reply(200, page(version=10)), watch.Opened())

    @property
    def roots(self) -> object:
        return self.router

    def event(self) -> None:
        new, gone = self.turn_over()
        if gone is not None:
            self.says(self.widgets, "DELETED", gone, uid=self.alive.pop(gone, "uid"))
            self.says(self.children, "DELETED", gone)
            self.says(self.secrets, "DELETED", gone)
        self.alive[new] = f"uid-{self.version}"
        self.says(self.widgets, "ADDED", new, uid=self.alive[new])
        some = self.some()
        self.says(self.widgets, "MODIFIED", some, uid=self.alive[some], status={"seen": self.version})
        self.says(self.children, "MODIFIED", some, labels={"bonny.dev/owner-uid": self.alive[some]})
        self.says(self.secrets, "MODIFIED", some)
        self.happens(some)

    def happens(self, name: str) -> None:
        """What else happens to one that lives."""
        self.router.remove_tombstones(before=self.clock.now - 30.0)

    def says(self, stream: Stream, event: str, name: str, **fields: Any) -> None:
        self.version += 1
        if stream.blocked:
            return
        made = thing(name, version=self.version, generation=self.version, **fields)
        named = {"apiVersion": stream.kind.api_version, "kind": stream.kind.kind, **made}
        if stream.kind is SECRET:
            named["metadata"]["namespace"] = "default"
        tells(stream, watch.Line(line(event, named)))
        if self.chance(0.01):
            self.breaks(stream)

    def breaks(self, stream: Stream) -> None:
        """Its watch breaks, and is resumed or replaced by a list that lacks one that ended meanwhile."""
        self.version += 1
        tells(stream, self.random.choice([watch.Broken("reset"), watch.Silent(), watch.Closed()]))
        while not (isinstance(phase := stream._state.phase, watch.Watching) and phase.opened is not None):
            match phase:
                case watch.Waiting():
                    tells(stream, watch.Tick())
                case watch.Watching():
                    tells(stream, watch.Opened())
                case watch.Confirming():
                    tells(stream, watch.Reply(200, page(version=self.version)))
                case watch.Listing():
                    shown = [json.loads(known.raw) for known in stream.store]
                    tells(stream, watch.Reply(200, page(*shown[1:], version=self.version)))


class WritesOfAll(ControllerThatStandsBy):
    """Keys write to the children of one another, delete them, and wait; each is taken again as soon as it may be."""

    def happens(self, name: str) -> None:
        for child in {self.some() for _ in range(3)}:
            self.router.own_writes.begin_write(owner=key(name))
            self.version += 1
            self.router.own_writes.end_write(CHILD, key(child), str(self.version), owner=key(name))
        child = self.some()
        self.router.own_writes.begin_deletion(CHILD, key(child), f"uid-{child}", owner=key(name))
        while (work := self.router.queue.take(now=self.clock.now)) is not None:
            if self.router.own_writes.park(work.key, now=self.clock.now):
                continue
            for stone in self.router.records.tombstones(work.key):
                self.router.records.remove_tombstone(work.key, stone)
            if self.router.item(work.key) is None:
                self.router.forget(work.key)
            self.router.queue.done(work.key, now=self.clock.now)


class WritesOfABlockedStream(WritesOfAll):
    """The same few children are written for weeks, by a role that lacks `watch`."""

    blocked = True


class ControllerThatLeads(ControllerThatStandsBy):
    """A worker handles what is queued: it writes, fails, contests names, gives up, asks for more time."""

    rest = True

    class Widgets(Controller[Any]):
        resource = WIDGET
        on_status = True
        reconcile_every = 3600.0

        async def reconcile(self, axn: Axn[Any]) -> None: ...

        async def delete(self, axn: Axn[Any]) -> None: ...

    async def begin(self) -> None:
        self.worker = Worker(
            operator="op",
            group="example.com",
            controller=self.Widgets(),
            kind=WIDGET,
            client=cast("Any", None),
            recorder=None,
            router=self.router,
            pipeline=Pipeline([self.handle]),
        )
        self.task = asyncio.create_task(self.worker.run())

    async def end(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)

    @property
    def roots(self) -> object:
        return self.worker

    def happens(self, name: str) -> None:
        pass

    def handle(self, axn: Axn[Any]) -> None:
        """What a handler and the steps behind it do."""
        place, child = axn.context, axn.key
        if axn.action is Action.DELETE:
            return
        if place.children(axn.uid) is None and not self.blocked:
            raise Retry
        if self.chance(0.1):
            place.wait_for_name(CHILD, key(self.some()))
            raise Retry(after=1.0)
        if self.chance(0.1):
            raise self.random.choice([ValueError("no"), Terminal("never"), Retry(), SystemExit(1)])
        if self.chance(0.1):
            with place.deleting(CHILD, child, f"uid-{child.name}"):
                pass
        for kind, stream in ((CHILD, self.children), (WIDGET, self.widgets)):
            with place.writing(kind, child) as wrote:
                self.version += 1
                version = self.version
                wrote(str(version))
            uid = self.alive.get(child.name)
            if uid is None or stream.blocked or self.chance(0.05):
                continue
            fields: Resource = {"uid": uid} if stream is self.widgets else {"labels": {"bonny.dev/owner-uid": uid}}
            made = thing(child.name, version=version, generation=version, **fields)
            named = {"apiVersion": stream.kind.api_version, "kind": stream.kind.kind, **made}
            tells(stream, watch.Line(line("MODIFIED", named)))
        place.applied_records[CHILD, child] = applied_record({}, thing(child.name, version=1), {})
        if self.chance(0.1):
            axn.requeue_after(30.0)
        axn.applied = set()


class ControllerWithABlockedStream(ControllerThatLeads):
    """Its role lacks `watch` on the children, for weeks."""

    blocked = True


# --- what else runs for ever ------------------------------------------------------------------------------------------


class TasksOfEach(Life):
    """Periodic tasks that are registered for each object: they run, fail, stop, and are unregistered."""

    events = 2_000

    rest = True

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.roots_ = PeriodicTasks(cast("Any", None))

    @property
    def roots(self) -> object:
        return self.roots_

    async def begin(self) -> None:
        self.task = asyncio.create_task(self.roots_.run())

    async def end(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)

    async def tick(self, run: TaskRun) -> Next | Stop | None:
        if self.chance(0.2):
            raise ValueError(run.id)
        return self.random.choice([None, Next(run.state), Stop("done")])

    def event(self) -> None:
        new, gone = self.turn_over()
        self.roots_.register(PeriodicTask(new, self.tick, interval=0.2))
        if gone is not None and gone != new and self.chance(0.8):
            self.roots_.unregister(gone)
        elif gone is not None:
            self.roots_.register(PeriodicTask(gone, self.failing, interval=0.1))

    async def failing(self, run: TaskRun) -> None:
        raise ValueError(run.id)


class RequestsOfAll(Life):
    """Metrics of requests, by method and answer: never by object."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.roots_ = Requests()

    @property
    def roots(self) -> object:
        return self.roots_

    def event(self) -> None:
        new, _ = self.turn_over()
        method = self.random.choice(["GET", "PATCH", "POST", "DELETE", "PUT"])
        query = {"watch": "true"} if self.chance(0.2) else {"limit": str(next(self.numbers))}
        with self.roots_.under_way(method, f"/api/v1/namespaces/default/configmaps/{new}", query) as request:
            request.answered(self.random.choice([200, 201, 404, 409, 500]))


class WarningsOfTheServer(Life):
    """Each text is logged once; a webhook may name each object in it."""

    async def begin(self) -> None:
        self.client = api.Client(cast("Any", None), user_agent="tests")

    async def end(self) -> None:
        await self.client.close()

    @property
    def roots(self) -> object:
        return self.client._warnings

    def event(self) -> None:
        new, _ = self.turn_over()
        self.client._warn(f'299 - "do not use {new}"')


LIVES = [
    QueueOfALeader,
    QueueOfAStandby,
    RecordsOfALeader,
    RecordsOfAStandby,
    FightsOfAll,
    SeriesOfAll,
    StoreOfAStream,
    LinesOfAWatch,
    PodsThatWait,
    PodsThatAnotherOneBinds,
    RoomOnNodes,
    SchedulerThatStandsBy,
    ControllerThatStandsBy,
    WritesOfAll,
    WritesOfABlockedStream,
    ControllerThatLeads,
    ControllerWithABlockedStream,
    TasksOfEach,
    RequestsOfAll,
    WarningsOfTheServer,
]
# So much more in the slow run: ten million events, all cases taken together.
MANY = 75
EVENT_SECONDS = 0.1


@pytest.fixture(autouse=True)
def _quiet(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Tens of thousands of failures are not for the log; and bounds that are reached at once."""
    monkeypatch.setattr(records_module, "REMEMBERED_DELETIONS", CAPS)
    monkeypatch.setattr(periodic, "REMEMBERED_HALTS", CAPS)
    monkeypatch.setattr(api, "WARNINGS_KEPT", CAPS)
    monkeypatch.setattr(index, "CACHED_RESULTS", CAPS * POPULATION)
    monkeypatch.setattr(router_module, "IN_SYNC_SECONDS", 1.0)
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("times", [1, pytest.param(MANY, marks=pytest.mark.slow)])  # slow: half an hour of events
@pytest.mark.parametrize("life", LIVES, ids=lambda life: life.__name__)
def test_no_container_grows_with_the_number_of_events(
    life: type[Life], times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: a standby's queue and a scheduler's, the writes of a blocked stream, and the names that are contested
    grew for as long as the process ran."""
    clock, events = Clock(monkeypatch), times * life.events
    made = life(clock)

    async def live(until: int) -> None:
        for _ in range(until):
            clock.now += EVENT_SECONDS
            made.event()
            if made.rest:
                for _ in range(3):
                    await asyncio.sleep(0)
                await asyncio.sleep(EVENT_SECONDS)

    async def both() -> tuple[Any, Any]:
        await made.begin()
        await live(events // 10)
        before = census(made.roots)
        await live(events - events // 10)
        after = census(made.roots)
        await made.end()
        return before, after

    before, after = clock.run(both)

    print(*(f"{count:8} {path}" for path, count in sorted(after.items()) if count), sep="\n")
    assert grown(before, after, by=CONSTANT) == {}


def test_a_census_finds_what_grows_wherever_it_hides() -> None:
    class Leaking:
        __slots__ = ("kept",)

        def __init__(self) -> None:
            self.kept = [{"deep": {1: set()}}]

    leaking = Leaking()
    before = census(leaking)
    leaking.kept[0]["deep"][1].update(range(1000))

    assert grown(before, census(leaking), by=CONSTANT) == {".kept[][][]": (0, 1000)}
