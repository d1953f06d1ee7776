"""How a scheduler is run: what becomes of choices and bindings. Streams are fed with the bytes a server would send."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, cast

import pytest

from bonny import telemetry
from bonny.client.errors import Unreachable, refusal
from bonny.core import watch
from bonny.core.objects import Failure
from bonny.engine.stream import Stream
from bonny.errors import BonnyError, OptionError
from bonny.events import Event
from bonny.filters import fits, free, least_allocated
from bonny.kinds import Kind
from bonny.resource import Resource
from bonny.run.supervisor import ended
from bonny.scheduler import Scheduler
from bonny.scheduler.nodes import Nodes
from bonny.scheduler.pending import PodState
from bonny.scheduler.scheduler import Choice
from bonny.scheduler.server import SchedulerServer
from bonny.scheduler.streams import NODE, POD, SchedulerStreams
from bonny.scheduler.views import NodeView, PodView
from tests.support.core import line, page, status
from tests.support.scheduling import node, pod

WITHIN_SECONDS = 5.0


def stored(resource: Resource, *, version: int, uid: str = "") -> Resource:
    metadata = resource["metadata"]
    more = {"uid": uid or f"uid-{metadata['name']}", "resourceVersion": str(version), "creationTimestamp": "2026-01-01"}
    return {**resource, "metadata": {**metadata, **more}}


class Choosy(Scheduler):
    """The emptiest node; binds as the test says."""

    name = "choosy"
    check = fits

    def __init__(self, *answers: Exception | None) -> None:
        self.answers = list(answers)
        self.bound: list[tuple[str, str]] = []
        self.go_on = asyncio.Event()
        self.go_on.set()

    def select_node_for_pod(self, pod: PodView, nodes: Nodes) -> Choice | Awaitable[Choice]:
        return nodes.fitting(pod).best(least_allocated)

    async def bind(self, pod: PodView, node: NodeView) -> None:
        await self.go_on.wait()
        self.bound.append((pod.name, node.name))
        answer = self.answers.pop(0) if self.answers else None
        if answer is not None:
            raise answer


class Bench:
    """Schedulers with streams that are led by hand; nothing is sent."""

    def __init__(self, *schedulers: Scheduler) -> None:
        self.streams: dict[Kind, Stream] = {}
        self.events: list[tuple[str, Event]] = []
        self.told: list[tuple[Any, ...]] = []
        names = [name for name in telemetry.EVENTS if name.startswith("bonny.scheduler.")]
        telemetry.detach("bench")
        telemetry.attach_many("bench", names, lambda *told: self.told.append(told))
        streams, given = SchedulerStreams(self.follow), cast("Any", self)
        self.servers = [SchedulerServer(known, given, streams=streams, recorder=given) for known in schedulers]
        self.version = 100

    def follow(self, kind: Kind) -> Stream:
        if kind not in self.streams:
            self.streams[kind] = Stream(cast("Any", None), kind, namespace=None, options=watch.WatchOptions())
        return self.streams[kind]

    def record(self, regarding: Resource, event: Event) -> None:
        self.events.append((regarding["metadata"]["name"], event))

    async def apply(self, *_: Any, **__: Any) -> None:
        raise Unreachable("there is no server")

    def lists(self, kind: Kind, *things: Resource) -> None:
        stream = self.streams[kind]
        for event in (watch.Reply(200, page(*things, version=100)), watch.Opened()):
            carry_out(stream, event)

    def shows(self, kind: Kind, event: str, resource: Resource, *, uid: str = "") -> None:
        self.version += 1
        made = stored(resource, version=self.version, uid=uid)
        carry_out(self.streams[kind], watch.Line(line(event, {"apiVersion": "v1", "kind": kind.kind, **made})))

    def begins(self, *nodes: Resource, pods: tuple[Resource, ...] = ()) -> SchedulerServer:
        self.lists(NODE, *(stored(known, version=1) for known in nodes))
        self.lists(POD, *(stored(known, version=1) for known in pods))
        return self.servers[0]


def carry_out(stream: Stream, event: watch.WatchInput) -> None:
    step = stream._step(event)
    while True:
        try:
            step.send(None)
        except StopIteration:
            return


def refused(status: int, *, reason: str = "", retry_after: float | None = None) -> Exception:
    reason = reason or {404: "NotFound"}.get(status, "")
    return refusal(Failure(status, reason, "no", retry_after), verb="create", resource="pods p1")


class At:
    """Runs servers for the time of an `async with`."""

    def __init__(self, *servers: SchedulerServer) -> None:
        self.servers = servers

    async def __aenter__(self) -> list[asyncio.Task[None]]:
        self.tasks = [asyncio.create_task(known.run()) for known in self.servers]
        return self.tasks

    async def __aexit__(self, *error: object) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


async def until(holds: Callable[[], Any]) -> Any:
    async with asyncio.timeout(WITHIN_SECONDS):
        while not (found := holds()):  # noqa: ASYNC110  no event tells of any condition
            await asyncio.sleep(0.001)
        return found


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("bonny.scheduler.pending.FIRST_WAIT_SECONDS", 0.02)
    monkeypatch.setattr("bonny.scheduler.pending.LONGEST_WAIT_SECONDS", 0.02)
    yield
    telemetry.detach("bench")


@pytest.fixture
def _patient(_impatient: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits long enough to be looked at on a busy machine."""
    monkeypatch.setattr("bonny.scheduler.pending.FIRST_WAIT_SECONDS", 0.5)
    monkeypatch.setattr("bonny.scheduler.pending.LONGEST_WAIT_SECONDS", 0.5)


def waiting(name: str = "p1", **fields: Any) -> Resource:
    return pod(name, scheduler="choosy", **{"cpu": "1", **fields})


async def test_a_bound_pod_counts_as_assumed_until_the_stream_shows_it() -> None:
    choosy = Choosy()
    bench = Bench(choosy)
    at_work = bench.begins(node(cpu="1"), pods=(waiting("p1"), waiting("p2")))
    async with At(at_work):
        await until(lambda: at_work.statistics()[PodState.PARKED] == 1)
        assert choosy.bound == [("p1", "n1")]

        # A late word of before the binding does not make it come again.
        bench.shows(POD, "MODIFIED", waiting("p1", labels={"late": "yes"}))
        assert sum(at_work.statistics().values()) == 1
        bench.shows(POD, "MODIFIED", waiting("p1", node="n1"))
        assert at_work.cycle.bound == set()
        bench.shows(POD, "DELETED", waiting("p1", node="n1"))

        await until(lambda: len(choosy.bound) == 2)
    assert choosy.bound == [("p1", "n1"), ("p2", "n1")]


async def test_a_cancellation_that_comes_with_a_change_is_not_lost() -> None:
    bench = Bench(Choosy())
    at_work = bench.begins(node(cpu="1"))
    async with At(at_work) as (task,):
        await until(lambda: at_work._wake._waiters)

        bench.shows(POD, "ADDED", waiting("p1"))
        task.cancel()

        await asyncio.wait({task}, timeout=WITHIN_SECONDS)
        assert task.cancelled()


def counts(at_work: SchedulerServer) -> dict[str, int]:
    return {result: seconds.count for result, seconds in at_work.cycle.meters.seconds.items() if seconds.count}


async def test_attempts_are_counted_by_how_they_ended() -> None:
    choosy = Choosy(refused(403))
    bench = Bench(choosy)
    at_work = bench.begins(node(cpu="1"), pods=(waiting("p1"),))
    async with At(at_work):
        await until(lambda: len(choosy.bound) == 2)
        await until(lambda: counts(at_work) == {"error": 1, "scheduled": 1})
        bench.shows(POD, "ADDED", waiting("p2"))
        await until(lambda: at_work.statistics()[PodState.PARKED] == 1)

    assert counts(at_work) == {"error": 1, "scheduled": 1, "unschedulable": 1}
    assert at_work.cycle.meters.choices.count == 3
    bindings = at_work.cycle.meters.bindings
    assert {status: seconds.count for status, seconds in bindings.items()} == {"Success": 1, "Error": 1}


async def test_a_selection_that_raises_is_an_attempt_with_an_error() -> None:
    class Broken(Choosy):
        def select_node_for_pod(self, pod: PodView, nodes: Nodes) -> Choice:
            raise ValueError("no")

    bench = Bench(Broken())
    at_work = bench.begins(node(), pods=(waiting("p1"),))
    async with At(at_work):
        await until(lambda: counts(at_work).get("error"))
    assert set(counts(at_work)) == {"error"}


async def test_pods_that_fit_nowhere_are_counted_by_what_they_fail_at_until_they_do_not() -> None:
    bench = Bench(Choosy())
    tainted = node("n2", cpu="64", taints=({"key": "a", "effect": "NoSchedule"},))
    at_work = bench.begins(node("n1", cpu="1"), tainted, pods=(waiting("p1", cpu="2"), waiting("p2", cpu="3")))
    async with At(at_work):
        await until(lambda: at_work.statistics()[PodState.PARKED] == 2)
        assert at_work.unschedulable() == {"NodeResourcesFit": 2, "TaintToleration": 2}

        bench.shows(POD, "DELETED", waiting("p1", cpu="2"))
        assert at_work.unschedulable() == {"NodeResourcesFit": 1, "TaintToleration": 1}

        bench.shows(NODE, "ADDED", node("n3"))
        await until(lambda: counts(at_work).get("scheduled"))
        assert at_work.unschedulable() == {}


async def test_a_selection_that_chooses_none_of_the_nodes_that_fit_is_told_as_what_keeps_the_pod() -> None:
    class Never(Choosy):
        def select_node_for_pod(self, pod: PodView, nodes: Nodes) -> Choice:
            return None

    bench = Bench(Never())
    at_work = bench.begins(node(), pods=(waiting("p1"),))
    async with At(at_work):
        await until(lambda: at_work.statistics()[PodState.PARKED] == 1)
        assert at_work.unschedulable() == {"Selection": 1}


@pytest.mark.usefixtures("_patient")
@pytest.mark.parametrize("error", [Unreachable("no answer"), refused(500), refused(404, reason=" "), TimeoutError()])
async def test_an_unknown_outcome_keeps_the_room_and_posts_the_same_binding_again(error: Exception) -> None:
    choosy = Choosy(error)
    bench = Bench(choosy)
    at_work = bench.begins(node("n1", cpu="1"), pods=(waiting("p1"),))
    async with At(at_work):
        await until(lambda: at_work.statistics()[PodState.WAITING] == 1)
        # A better node does not matter: the pod may be bound to the first one already.
        bench.shows(NODE, "ADDED", node("n2", cpu="64"))
        assert free(at_work.nodes[0])["cpu"] == 0

        await until(lambda: len(choosy.bound) == 2)
    assert choosy.bound == [("p1", "n1"), ("p1", "n1")]
    assert [name for name, *_ in bench.told if ".binding." in name] == [
        "bonny.scheduler.binding.failed",
        "bonny.scheduler.binding.succeeded",
    ]


@pytest.mark.usefixtures("_patient")
async def test_a_binding_of_unknown_outcome_is_not_posted_again_for_a_node_that_is_gone() -> None:
    choosy = Choosy(Unreachable("no answer"))
    bench = Bench(choosy)
    at_work = bench.begins(node("n1", cpu="1"), pods=(waiting("p1"),))
    async with At(at_work):
        await until(lambda: at_work.statistics()[PodState.WAITING] == 1)
        bench.shows(NODE, "DELETED", node("n1", cpu="1"))
        bench.shows(NODE, "ADDED", node("n2", cpu="1"))

        await until(lambda: len(choosy.bound) == 2)
    assert choosy.bound == [("p1", "n1"), ("p1", "n2")]
    assert len(at_work.nodes.cache._placed) == 1


@pytest.mark.usefixtures("_patient")
@pytest.mark.parametrize("error", [refused(403), refused(422), refused(429), ValueError("somebody's own")])
async def test_a_refused_binding_gives_the_room_back_and_is_tried_again(error: Exception) -> None:
    choosy = Choosy(error)
    bench = Bench(choosy)
    at_work = bench.begins(node("n1", cpu="1"), pods=(waiting("p1"),))
    async with At(at_work):
        await until(lambda: at_work.statistics()[PodState.WAITING] == 1)
        assert free(at_work.nodes[0])["cpu"] == 1000

        await until(lambda: len(choosy.bound) == 2)
    assert bench.events[0][1].message.startswith("Binding rejected: ")
    assert bench.events[-1][1].reason == "Scheduled"


async def test_the_wait_that_the_server_asks_for_is_kept() -> None:
    choosy = Choosy(refused(429, retry_after=100.0))
    bench = Bench(choosy)
    at_work = bench.begins(node("n1"), pods=(waiting("p1"),))
    async with At(at_work):
        await until(lambda: at_work.statistics()[PodState.WAITING] == 1)
        due = at_work._pending.next_due()

        assert due is not None
        assert due > asyncio.get_running_loop().time() + 90.0


async def test_a_pod_that_is_gone_is_no_error() -> None:
    choosy = Choosy(refused(404))
    bench = Bench(choosy)
    at_work = bench.begins(node("n1", cpu="1"), pods=(waiting("p1"),))
    async with At(at_work):
        await until(lambda: choosy.bound and not sum(at_work.statistics().values()))

    assert free(at_work.nodes[0])["cpu"] == 1000
    assert bench.events == []
    assert [name for name, *_ in bench.told if ".binding." in name] == []


async def test_a_pod_that_is_recreated_while_its_binding_is_on_its_way_is_not_lost() -> None:
    choosy = Choosy(refused(404))
    choosy.go_on.clear()
    bench = Bench(choosy)
    at_work = bench.begins(node("n1", cpu="1"), pods=(waiting("p1"),))
    async with At(at_work):
        await until(lambda: at_work.statistics()[PodState.TAKEN] == 1)
        bench.shows(POD, "DELETED", waiting("p1"))
        bench.shows(POD, "ADDED", waiting("p1"), uid="second")
        choosy.go_on.set()

        await until(lambda: len(choosy.bound) == 2)
    assert list(at_work.nodes.cache._placed) == ["second"]


async def test_what_the_server_said_before_a_restore_does_not_hold_any_longer() -> None:
    choosy = Choosy()
    bench = Bench(choosy)
    at_work = bench.begins(node("n1"), pods=(waiting("p1"),))
    async with At(at_work):
        await until(lambda: choosy.bound)
        stream = bench.streams[POD]
        for event in (
            watch.Line(line("ERROR", status(410, "Expired"))),
            watch.Tick(),
            watch.Reply(200, page(stored(waiting("p1"), version=1), version=50)),
            watch.Opened(),
        ):
            carry_out(stream, event)
        await until(lambda: stream.current)

        await until(lambda: len(choosy.bound) == 2)
    assert choosy.bound == [("p1", "n1"), ("p1", "n1")]


async def test_nothing_is_decided_on_what_may_be_outdated() -> None:
    choosy = Choosy()
    bench = Bench(choosy)
    at_work = bench.begins(node("n1"))
    async with At(at_work):
        carry_out(bench.streams[NODE], watch.Broken("reset"))
        bench.shows(POD, "ADDED", waiting("p1"))
        await until(lambda: "bonny.scheduler.nodes.fetch.failed" in [name for name, *_ in bench.told])
        assert at_work.statistics()[PodState.READY] == 1

        carry_out(bench.streams[NODE], watch.Tick())
        carry_out(bench.streams[NODE], watch.Reply(200, page(version=bench.streams[NODE].version)))
        carry_out(bench.streams[NODE], watch.Opened())
        await until(lambda: choosy.bound)

    assert [name for name, *_ in bench.told][-2:] == [
        "bonny.scheduler.nodes.fetch.succeeded",
        "bonny.scheduler.binding.succeeded",
    ]


async def test_no_more_bindings_are_on_their_way_than_allowed() -> None:
    class Few(Choosy):
        max_bindings = 3

    few = Few()
    few.go_on.clear()
    bench = Bench(few)
    at_work = bench.begins(node("n1", cpu="64"), pods=tuple(waiting(f"p{number}") for number in range(10)))
    async with At(at_work):
        await until(lambda: at_work.statistics()[PodState.TAKEN] == 3)
        assert at_work.statistics()[PodState.READY] == 7
        few.go_on.set()

        await until(lambda: len(few.bound) == 10)
    assert len({name for name, _ in few.bound}) == 10


async def test_a_stopped_scheduler_knows_what_was_on_its_way_when_it_runs_again() -> None:
    choosy = Choosy()
    choosy.go_on.clear()
    bench = Bench(choosy)
    at_work = bench.begins(node("n1", cpu="1"), pods=(waiting("p1"),))
    async with At(at_work):
        await until(lambda: at_work.statistics()[PodState.TAKEN] == 1)
    choosy.go_on.set()
    bench.shows(NODE, "ADDED", node("n2", cpu="64"))
    async with At(at_work):
        await until(lambda: choosy.bound)

    assert choosy.bound == [("p1", "n1")]


async def test_who_stops_decides_nothing_more_and_waits_for_what_is_on_its_way() -> None:
    choosy = Choosy()
    choosy.go_on.clear()
    bench = Bench(choosy)
    at_work = bench.begins(node("n1"), pods=(waiting("p1"),))
    async with At(at_work) as (run,):
        await until(lambda: at_work.statistics()[PodState.TAKEN] == 1)
        at_work.stop()
        await asyncio.sleep(0)
        bench.shows(POD, "ADDED", waiting("p2"))
        assert not run.done()
        assert at_work.statistics()[PodState.READY] == 1
        choosy.go_on.set()
        await asyncio.wait({run}, timeout=WITHIN_SECONDS)

        assert choosy.bound == [("p1", "n1")]

    async with At(at_work):
        await until(lambda: len(choosy.bound) == 2)


async def test_a_stop_before_the_first_step_is_not_forgotten() -> None:
    choosy = Choosy()
    at_work = Bench(choosy).begins(node("n1"), pods=(waiting("p1"),))
    for _ in range(2):
        run = asyncio.create_task(at_work.run())
        at_work.stop()
        async with asyncio.timeout(WITHIN_SECONDS):
            await run

    assert choosy.bound == []
    async with At(at_work):
        await until(lambda: choosy.bound)


async def test_a_choice_that_is_made_while_it_stops_is_not_bound() -> None:
    class Slow(Choosy):
        chosen = asyncio.Event()

        async def select_node_for_pod(self, pod: PodView, nodes: Nodes) -> Choice:
            await self.go_on.wait()
            self.chosen.set()
            return nodes[0]

    slow = Slow()
    slow.go_on.clear()
    bench = Bench(slow)
    at_work = bench.begins(node("n1"), pods=(waiting("p1"),))
    async with At(at_work) as (run,):
        await until(lambda: at_work.statistics()[PodState.TAKEN] == 1)
        at_work.stop()
        slow.go_on.set()
        await slow.chosen.wait()
        bench.shows(POD, "ADDED", waiting("p2"))
        await asyncio.wait({run}, timeout=WITHIN_SECONDS)

    assert slow.bound == []


async def test_what_does_not_arrive_in_time_is_not_waited_for() -> None:
    choosy = Choosy()
    choosy.go_on.clear()
    bench = Bench(choosy)
    at_work = bench.begins(node("n1"), pods=(waiting("p1"),))
    async with At(at_work) as (run,):
        await until(lambda: at_work.statistics()[PodState.TAKEN] == 1)
        at_work.stop()
        assert await ended([run], seconds=0.01) == {run}

    assert choosy.bound == []


async def test_code_that_fails_holds_up_its_own_pod_only(caplog: pytest.LogCaptureFixture) -> None:
    class Moody(Choosy):
        timeout = 0.01

        async def select_node_for_pod(self, pod: PodView, nodes: Nodes) -> Choice:
            match pod.name:
                case "slow":
                    await asyncio.sleep(3600)
                case "p1":
                    return {"metadata": {}}
                case "p2":
                    raise ZeroDivisionError("a secret that must not be shown")
                case "p3":
                    sys.exit(3)
            return nodes[0]

    moody = Moody()
    bench = Bench(moody)
    at_work = bench.begins(node("n1"), pods=tuple(waiting(name) for name in ("p1", "p2", "p3", "slow", "good")))
    async with At(at_work):
        await until(lambda: moody.bound == [("good", "n1")])
        await until(lambda: {name for name, _ in bench.events} == {"p1", "p2", "p3", "slow", "good"})

    messages = {name: event.message for name, event in bench.events}
    assert messages["slow"] == "scheduler choosy failed with HandlerTimeout"
    assert messages["p2"] == "scheduler choosy failed with ZeroDivisionError"
    assert "choosing a node failed" in caplog.text


async def test_a_pod_that_went_while_its_node_was_chosen_is_not_bound() -> None:
    class Slow(Choosy):
        async def select_node_for_pod(self, pod: PodView, nodes: Nodes) -> Choice:
            await self.go_on.wait()
            return nodes[0]

    slow = Slow()
    slow.go_on.clear()
    bench = Bench(slow)
    at_work = bench.begins(node("n1"), pods=(waiting("p1"), waiting("p2")))
    async with At(at_work):
        await until(lambda: at_work.statistics()[PodState.TAKEN] == 1)
        bench.shows(POD, "DELETED", waiting("p1"))
        slow.go_on.set()

        await until(lambda: slow.bound)
    assert slow.bound == [("p2", "n1")]


async def test_room_that_was_taken_while_a_node_was_chosen_is_seen() -> None:
    class Slow(Choosy):
        name = "slow"

        async def select_node_for_pod(self, pod: PodView, nodes: Nodes) -> Choice:
            chosen = nodes.fitting(pod).best(least_allocated)
            await self.go_on.wait()
            return chosen

    slow, quick = Slow(), Choosy()
    slow.go_on.clear()
    bench = Bench(slow, quick)
    bench.begins(node("n1", cpu="1"), pods=(pod("p1", scheduler="slow", cpu="1"),))
    async with At(*bench.servers):
        await until(lambda: bench.servers[0].statistics()[PodState.TAKEN] == 1)
        bench.shows(POD, "ADDED", waiting("p2"))
        await until(lambda: quick.bound)
        slow.go_on.set()

        await until(lambda: bench.servers[0].statistics()[PodState.PARKED] == 1)
    assert slow.bound == []


async def test_only_shapes_that_fit_a_changed_node_are_tried_again() -> None:
    asked: list[str] = []

    class Noting(Choosy):
        def select_node_for_pod(self, pod: PodView, nodes: Nodes) -> Choice | Awaitable[Choice]:
            asked.append(pod.name)
            return super().select_node_for_pod(pod, nodes)

    noting = Noting()
    bench = Bench(noting)
    at_work = bench.begins(node("n1", cpu="1"), pods=(waiting("two", cpu="2"), waiting("eight", cpu="8")))
    async with At(at_work):
        await until(lambda: at_work.statistics()[PodState.PARKED] == 2)
        asked.clear()
        bench.shows(NODE, "MODIFIED", node("n1", cpu="1", labels={"heart": "beat"}))
        bench.shows(NODE, "ADDED", node("n2", cpu="4"))

        await until(lambda: noting.bound)
    assert asked == ["two"]


async def test_who_was_kept_away_is_tried_again_when_the_one_who_kept_it_away_goes() -> None:
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "noisy"}}}
    required = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    loner = pod("loner", node="n1", affinity=required, phase="Running")
    choosy = Choosy()
    bench = Bench(choosy)
    at_work = bench.begins(
        node("n1", cpu="1", labels={"zone": "a"}),
        node("n2", labels={"zone": "a"}),
        pods=(loner, waiting("p1", cpu="2", labels={"app": "noisy"})),
    )
    async with At(at_work):
        await until(lambda: at_work.statistics()[PodState.PARKED] == 1)
        assert bench.events[0][1].message == (
            "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't satisfy existing pods anti-affinity rules."
        )
        bench.shows(POD, "DELETED", loner)

        await until(lambda: choosy.bound == [("p1", "n2")])


async def test_a_pod_that_cannot_be_read_is_reported_and_holds_up_nobody(caplog: pytest.LogCaptureFixture) -> None:
    choosy = Choosy()
    bench = Bench(choosy)
    at_work = bench.begins(node("n1"), pods=(waiting("bad", cpu="one"), waiting("good")))
    async with At(at_work):
        await until(lambda: choosy.bound)

    assert choosy.bound == [("good", "n1")]
    assert "a pod cannot be read" in caplog.text


class Unchecked(Choosy):
    """Chooses the first node with a label, whether the pod fits or not."""

    check = None

    def select_node_for_pod(self, pod: PodView, nodes: Nodes) -> Choice:
        return next((known for known in nodes if known.labels.get("chosen")), None)


async def test_a_scheduler_without_a_check_binds_what_it_chooses_and_tries_again_when_a_node_changes() -> None:
    unchecked = Unchecked()
    bench = Bench(unchecked)
    at_work = bench.begins(node("n1", cpu="1"), pods=(waiting("p1", cpu="64"),))
    async with At(at_work):
        await until(lambda: at_work.statistics()[PodState.PARKED] == 1)
        assert bench.events[0][1].message == ("0/1 nodes are available: 1 node(s) were not chosen by scheduler choosy.")
        assert at_work.unschedulable() == {"Selection": 1}
        bench.shows(NODE, "MODIFIED", node("n1", cpu="1", labels={"chosen": "yes"}))

        await until(lambda: unchecked.bound == [("p1", "n1")])


async def test_a_scheduler_without_a_check_that_asks_which_nodes_fit_gets_one_sentence(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Asking(Choosy):
        check = None

    bench = Bench(Asking())
    at_work = bench.begins(node("n1"), pods=(waiting("p1"),))
    async with At(at_work):
        await until(lambda: counts(at_work).get("error"))

    (failed, *_) = [record for record in caplog.records if record.message == "choosing a node failed"]
    assert "set `check = fits`, from bonny.filters" in str(vars(failed)["error"])


async def test_an_own_check_is_asked_again_for_every_pod_when_a_node_changes() -> None:
    class Labelled(Choosy):
        @staticmethod
        def check(pod: PodView, node: NodeView) -> bool:
            return node.labels.get("for") == pod.name

        def select_node_for_pod(self, pod: PodView, nodes: Nodes) -> Choice:
            return next(iter(nodes.fitting(pod)), None)

    labelled = Labelled()
    bench = Bench(labelled)
    at_work = bench.begins(node("n1"), pods=(waiting("p1"), waiting("p2")))
    async with At(at_work):
        await until(lambda: at_work.statistics()[PodState.PARKED] == 2)
        assert at_work.unschedulable() == {"Check": 2}
        bench.shows(NODE, "MODIFIED", node("n1", labels={"for": "p2"}))

        await until(lambda: labelled.bound == [("p2", "n1")])


async def test_a_list_is_asked_for_again_after_it_failed() -> None:
    class Listed(Choosy):
        calls = 0

        async def nodes(self) -> list[Resource]:
            self.calls += 1
            if self.calls == 1:
                raise ValueError("not today")
            return [node("n2")]

    listed = Listed()
    bench = Bench(listed)
    at_work = bench.begins(node("n1"), node("n2"), pods=(waiting("p1"),))
    async with At(at_work):
        await until(lambda: listed.bound)

    assert listed.bound == [("p1", "n2")]
    failed = next(metadata for name, _, metadata, _ in bench.told if name == "bonny.scheduler.nodes.fetch.failed")
    assert (failed["scheduler"], str(failed["error"])) == ("choosy", "not today")


async def test_a_selector_comes_from_a_plain_method() -> None:
    class Mixed(Choosy):
        async def nodes(self) -> Kind:
            return NODE

    bench = Bench(Mixed())
    at_work = bench.begins(node("n1"), pods=(waiting("p1"),))
    async with At(at_work):
        told = await until(lambda: [told for told in bench.told if told[0] == "bonny.scheduler.nodes.fetch.failed"])

    assert str(told[0][2]["error"]) == (
        "an async method cannot return a Kind: remove `async`, or return a list of objects"
    )


def test_a_field_selector_that_cannot_be_is_refused_at_once() -> None:
    class Wrong(Choosy):
        field_selector = "spec.wrong=yes"

    with pytest.raises(OptionError, match=r"field_selector of Wrong has 'spec\.wrong=yes'"):
        Bench(Wrong())


class Nameless(Choosy):
    name = ""


class Idle(Scheduler):
    name = "idle"


@pytest.mark.parametrize("incomplete", [Nameless, Idle])
def test_a_scheduler_without_a_name_or_a_choice_is_refused_at_once(incomplete: type[Scheduler]) -> None:
    with pytest.raises(OptionError, match=f"{incomplete.__name__} cannot schedule: give it a name"):
        Bench(incomplete())


async def test_a_parked_pod_that_changes_and_goes_leaves_nothing_behind() -> None:
    """Regression: it was looked up among those of its former shape, and the scheduler ended."""
    choosy = Choosy()
    bench = Bench(choosy)
    at_work = bench.begins(node("n1", cpu="1"), pods=(waiting("p1", cpu="2"),))
    async with At(at_work):
        await until(lambda: at_work.statistics()[PodState.PARKED] == 1)
        bench.shows(POD, "MODIFIED", waiting("p1", cpu="3"))
        await until(lambda: len(bench.events) == 2)
        bench.shows(POD, "DELETED", waiting("p1", cpu="3"))
        bench.shows(NODE, "ADDED", node("n2", cpu="4"))
        bench.shows(POD, "ADDED", waiting("p2", cpu="2"))

        await until(lambda: choosy.bound == [("p2", "n2")])
    assert at_work._pending.parked == {}


@pytest.mark.parametrize("changes", [False, True])
async def test_a_pod_that_changes_or_goes_while_no_node_is_found_leaves_nothing_behind(changes: bool) -> None:
    """Regression: it was parked as what it had been, looked up when a node changed, and the scheduler ended."""

    class Slow(Choosy):
        async def select_node_for_pod(self, pod: PodView, nodes: Nodes) -> Choice:
            await self.go_on.wait()
            return None if pod.name == "p1" else nodes[0]

    slow = Slow()
    slow.go_on.clear()
    bench = Bench(slow)
    at_work = bench.begins(node("n1"), pods=(waiting("p1"),))
    async with At(at_work) as (running,):
        await until(lambda: at_work.statistics()[PodState.TAKEN] == 1)
        if changes:
            bench.shows(POD, "MODIFIED", waiting("p1", cpu="2"))
            slow.go_on.set()
            await until(lambda: at_work.statistics()[PodState.PARKED] == 1)
        bench.shows(POD, "DELETED", waiting("p1"))
        slow.go_on.set()
        bench.shows(NODE, "ADDED", node("n2"))
        bench.shows(POD, "ADDED", waiting("p2"))

        await until(lambda: slow.bound or running.done())
        assert not running.done()
    assert [name for name, _ in slow.bound] == ["p2"]
    assert at_work._pending.parked == {}


async def test_a_replica_that_stands_by_counts_no_pods() -> None:
    """Regression: sums over replicas counted each pod as often as there were replicas."""
    bench = Bench(Choosy())
    at_work = bench.begins(node("n1", cpu="1"), pods=(waiting("p1", cpu="2"),))
    nothing = dict.fromkeys(PodState, 0)

    assert at_work.statistics() == nothing
    async with At(at_work):
        await until(lambda: at_work.statistics()[PodState.PARKED] == 1)
        assert at_work.unschedulable() == {"NodeResourcesFit": 1}
    assert at_work.statistics() == nothing
    assert at_work.unschedulable() == {}


# --- what users write into pods and nodes, and what schedulers raise --------------------------------------------------

MARK = "bonny.dev: nested too deeply"


def annotated(made: Resource) -> Resource:
    return {**made, "metadata": {**made["metadata"], "annotations": {"note": MARK, "{\t}": "[\t]"}}}


class OfLabels(Choosy):
    """Reads the whole objects, as a selection of a user's own may."""

    def select_node_for_pod(self, pod: PodView, nodes: Nodes) -> Choice:
        wanted = [known for known in nodes.fitting(pod) if known["metadata"]["annotations"] and pod["metadata"]]
        return wanted[0] if wanted else None


async def test_no_text_in_a_pod_or_a_node_holds_up_anybody() -> None:
    """Regression: an annotation of one pod that fits nowhere stopped its scheduler for all pods behind it, and one of a
    node made each selection fail that reads nodes."""
    choosy = OfLabels()
    bench = Bench(choosy)
    evil = annotated(waiting("evil", cpu="100"))
    at_work = bench.begins(annotated(node("n1")), pods=(evil, annotated(waiting("p1")), waiting("p2")))
    async with At(at_work) as (running,):
        await until(lambda: {name for name, _ in choosy.bound} == {"p1", "p2"})
        assert at_work.statistics()[PodState.PARKED] == 1
        assert not running.done()
    assert [event.reason for name, event in bench.events if name == "evil"] == ["FailedScheduling"]


class PanicException(BaseException):
    """As what extensions in Rust raise."""


class NullRecorder(Exception):
    """Its text cannot be made."""

    def __str__(self) -> str:
        raise ValueError("no text")

    __repr__ = __str__


class MuteToo(BonnyError):
    """The same, as one whose text is shown."""

    def __str__(self) -> str:
        raise PanicException


RAISED = [ZeroDivisionError, PanicException, GeneratorExit, SystemExit, KeyboardInterrupt, asyncio.CancelledError]
RAISED += [NullRecorder, MuteToo, StopIteration, RecursionError]


class Raising(Choosy):
    """Raises where the test says, for one pod."""

    timeout = 1.0
    where, error = "", BaseException
    tries = 0

    def fail(self, where: str, pod: str = "bad") -> None:
        if where == self.where and pod == "bad":
            self.tries += 1
            raise self.error

    async def bind(self, pod: PodView, node: NodeView) -> None:
        self.fail("bind", pod.name)
        await super().bind(pod, node)


class PlainRaising(Raising):
    def select_node_for_pod(self, pod: PodView, nodes: Nodes) -> Choice:
        self.fail("select", pod.name)
        return nodes[0]


class AsyncRaising(Raising):
    async def select_node_for_pod(self, pod: PodView, nodes: Nodes) -> Choice:
        await asyncio.sleep(0)
        self.fail("select", pod.name)
        if self.where == "cancels itself" and pod.name == "bad":
            task = asyncio.current_task()
            assert task is not None
            self.tries += task.cancel()
            await asyncio.sleep(0)
        return nodes[0]


def raising(where: str, error: type[BaseException], *, plain: bool = False) -> Raising:
    class Checked(PlainRaising if plain else AsyncRaising):  # type: ignore[misc]
        @staticmethod
        def check(pod: PodView, node: NodeView) -> bool:
            made.fail("check", pod.name)
            return True

        name = "choosy"

    made = Checked()
    made.where, made.error = where, error
    return made


@pytest.mark.parametrize("error", RAISED)
@pytest.mark.parametrize("where", ["select", "async select", "check", "bind"])
async def test_whatever_is_raised_costs_its_own_pod_only(where: str, error: type[BaseException]) -> None:
    """The pod is tried again, with growing waits; the others are bound, also those behind it.

    Regression: what is no Exception ended the scheduler for all of its pods.
    """
    made = raising(where.removeprefix("async "), error, plain=where == "select")
    bench = Bench(made)
    at_work = bench.begins(node("n1"), pods=(waiting("bad"), waiting("p1"), waiting("p2")))
    async with At(at_work) as (running,):
        await until(lambda: {name for name, _ in made.bound} >= {"p1", "p2"} and made.tries >= 3)
        assert not running.done()
        assert made.tries < 100, "it waits in between"
        assert [name for name, _ in made.bound] == ["p1", "p2"]


async def test_a_choice_that_cancels_its_own_task_ends_no_scheduler() -> None:
    made = raising("cancels itself", BaseException)
    bench = Bench(made)
    at_work = bench.begins(node("n1"), pods=(waiting("bad"), waiting("p1")))
    async with At(at_work) as (running,):
        await until(lambda: [name for name, _ in made.bound] == ["p1"] and made.tries >= 3)
        assert not running.done()


@pytest.mark.parametrize("error", [ZeroDivisionError, PanicException, NullRecorder, MuteToo])
async def test_what_reporting_raises_costs_its_own_pod_only(
    error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = raising("select", ZeroDivisionError, plain=True)
    bench = Bench(made)

    def record(regarding: Resource, event: Event) -> None:
        if regarding["metadata"]["name"] == "bad":
            raise error

    monkeypatch.setattr(bench, "record", record)
    at_work = bench.begins(node("n1"), pods=(waiting("bad"), waiting("p1")))
    async with At(at_work) as (running,):
        await until(lambda: [name for name, _ in made.bound] == ["p1"] and made.tries >= 3)
        assert not running.done()


@pytest.mark.parametrize("error", RAISED)
@pytest.mark.parametrize("late", [False, True], ids=["asking", "reading the answer"])
async def test_whatever_asking_for_nodes_raises_they_are_asked_for_again(
    error: type[BaseException], late: bool
) -> None:
    class Broken(list[Resource]):
        def __iter__(self) -> Iterator[Resource]:
            raise error

    class Listed(Choosy):
        calls = 0

        async def nodes(self) -> list[Resource]:
            self.calls += 1
            if self.calls > 1:
                return [node("n1")]
            if late:
                return Broken()
            raise error

    listed = Listed()
    bench = Bench(listed)
    at_work = bench.begins(node("n1"), pods=(waiting("p1"),))
    async with At(at_work):
        await until(lambda: listed.bound == [("p1", "n1")])


async def test_an_outside_end_of_a_scheduler_is_one() -> None:
    """What ends a scheduler while it chooses is not taken for an error of the choice."""
    chosen = asyncio.Event()

    class Waits(Choosy):
        async def select_node_for_pod(self, pod: PodView, nodes: Nodes) -> Choice:
            chosen.set()
            await asyncio.sleep(3600)

    at_work = Bench(Waits()).begins(node("n1"), pods=(waiting("p1"),))
    running = asyncio.create_task(at_work.run())
    await chosen.wait()
    running.cancel()
    _, pending = await asyncio.wait({running}, timeout=WITHIN_SECONDS)
    assert (pending, running.cancelled()) == (set(), True)
