"""Process: what one run of an operator leaves behind, and when it calls itself dead."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import AsyncMock

import pytest

from bonny import Controller, Kind, Operator, Owned
from bonny.calling import HANDLER_THREAD
from bonny.client import Client
from bonny.client.config import Connection
from bonny.client.request import ApiRequest
from bonny.client.transport import Answer
from bonny.controller import Restart
from bonny.core import watch
from bonny.core.backoff import Backoff
from bonny.core.watch import WatchOptions
from bonny.engine.stream import Stream
from bonny.engine.worker import STUCK_SECONDS
from bonny.errors import UsageError
from bonny.kinds import List
from bonny.resource import Key, Resource
from bonny.run import supervisor
from bonny.run.config import Config
from bonny.run.probes import Report
from bonny.run.process import Process
from bonny.run.supervisor import Supervised, cancelled
from bonny.servers.reconciler import Reconciler
from bonny.servers.watcher import Watcher
from tests.support.core import line, page, thing
from tests.support.waiting import until
from tests.support.working import WIDGET, lists


class ConfigMaps(Controller[Any]):
    resource = Kind("v1", "ConfigMap")

    async def reconcile(self, axn: Any) -> None: ...


class Nowhere:
    """A cluster that nobody answers for."""

    source = "the test"

    async def connect(self) -> Connection:
        return Connection(server="http://127.0.0.1:1")


def process(*, timeout: tuple[float, float] = (200.0, 230.0)) -> Process:
    operator = Operator(
        name="op", group="example.com", controllers=[ConfigMaps], watch_options=WatchOptions(timeout=timeout)
    )
    return Process(operator, Config(http_host="127.0.0.1", http_port=0), Nowhere())


async def test_a_run_that_is_cancelled_leaves_no_tasks() -> None:
    """Regression: streams and workers went on, with a client that was closed, until the loop ended."""
    before = asyncio.all_tasks()
    running = asyncio.create_task(process().run(asyncio.Event()))
    async with asyncio.timeout(5):
        while len(asyncio.all_tasks() - before) < 4:  # noqa: ASYNC110  run, stream, worker, first sync
            await asyncio.sleep(0.01)

    running.cancel()
    await asyncio.wait([running])

    assert {task.get_name() for task in asyncio.all_tasks() - before} == set()


@pytest.mark.parametrize("restart", [*Restart])
async def test_a_controller_that_is_not_started_again_makes_the_operator_unready_and_not_dead(
    restart: Restart, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: the probe had the whole operator killed, and so the controller started again."""
    operator = Operator(name="op", group="example.com", controllers=[ConfigMaps.configured(restart=restart)])
    made = Process(operator, Config(http_host="127.0.0.1", http_port=0), Nowhere())
    made._assemble(cast("Any", None))
    (worker,) = made.workers
    failed = asyncio.Event()

    async def fail() -> None:
        failed.set()
        raise ValueError

    monkeypatch.setattr(worker, "run", fail)
    made._begin_term()
    await failed.wait()
    await asyncio.sleep(0)

    assert made.health().ok
    assert any("is not started again" in line for line in made.readiness().lines) is (restart is Restart.TEMPORARY)
    await made._cancel()


async def test_a_temporary_controller_that_failed_runs_in_the_next_term(monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: the replica was unready for good, although the controller ran again."""
    operator = Operator(name="op", group="example.com", controllers=[ConfigMaps.configured(restart="temporary")])
    made = Process(operator, Config(http_host="127.0.0.1", http_port=0), Nowhere())
    made._assemble(cast("Any", None))
    (worker,) = made.workers
    runs: list[bool] = []

    async def fail_once() -> None:
        runs.append(True)
        if len(runs) == 1:
            raise ValueError
        await asyncio.Event().wait()

    monkeypatch.setattr(worker, "run", fail_once)
    for number in (1, 2):
        made._begin_term()
        await until(lambda: len(runs) == number)  # noqa: B023
        await asyncio.sleep(0)
        assert any("is not started again" in line for line in made.readiness().lines) is (number == 1)
        await made._end_term(grace=0.0)


async def test_a_reconciler_whose_slots_are_all_held_for_long_makes_the_operator_dead() -> None:
    """Regression: `def` handlers that never returned held all slots, no run ended, and both probes were green."""
    release = threading.Event()

    class Hangs(Reconciler):
        operation = Kind("v1", "ConfigMap")
        max_concurrent = 2
        timeout = 0.01

        async def reconcilable_resources(self) -> AsyncIterator[Resource]:
            for name in "abc":
                yield thing(name)

        def reconcile(self, resource: Resource) -> None:
            release.wait(20)

    operator = Operator(name="op", group="example.com", controllers=[Hangs])
    made = Process(operator, Config(http_host="127.0.0.1", http_port=0), Nowhere())
    made._assemble(Client(cast("Any", None), user_agent="tests"))
    (server,) = made.servers
    assert isinstance(server, Hangs)
    made.term.parts = {server: Supervised(server)}
    try:
        await until(lambda: len(server._held) == 2)
        assert made.health().ok, "they began just now"
        server._held = dict.fromkeys(server._held, time.monotonic() - server.timeout - STUCK_SECONDS - 1.0)
        assert made.health() == Report(ok=False, lines=("Hangs: every slot is stuck",))
    finally:
        release.set()
    await until(lambda: made.health().ok)
    await made._cancel()


async def test_a_stop_after_a_lost_term_knows_what_ignores_its_cancellation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such work is abandoned by `main`; a loop that waits for it would never end."""
    made, go_on = process(), asyncio.Event()
    made._assemble(cast("Any", None))
    (worker,) = made.workers
    monkeypatch.setattr(made.recorder, "drain", AsyncMock())
    monkeypatch.setattr("bonny.run.supervisor.CANCEL_SECONDS", 0.01)

    async def ignores() -> None:
        while not go_on.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await go_on.wait()

    monkeypatch.setattr(worker, "run", ignores)
    made._begin_term()
    await asyncio.sleep(0)
    await made._end_term(grace=0.0)
    await made._finish()

    assert made.term.abandoned
    go_on.set()
    await until(lambda: not made.term.abandoned)


@pytest.mark.parametrize(
    ("timeout", "silent", "alive"),
    [
        ((200.0, 230.0), 300.0, True),
        ((200.0, 230.0), 310.0, False),
        ((600.0, 900.0), 960.0, True),
        ((600.0, 900.0), 980.0, False),
        ((5.0, 10.0), 205.0, True),
        ((5.0, 10.0), 215.0, False),
    ],
)
async def test_a_stream_is_stuck_a_minute_after_its_longest_request_or_wait(
    timeout: tuple[float, float], silent: float, alive: bool
) -> None:
    """Regression: with watches of more than five minutes, a quiet cluster got its operator killed by the probe."""
    made = process(timeout=timeout)
    made._assemble(cast("Any", None))
    (stream,) = made.streams

    stream.last_contact = time.monotonic() - silent

    assert made.health().ok is alive


class Waiting:
    """A cluster whose credentials come from a plugin that waits for a person."""

    source = "the test"

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.given_up = False

    async def connect(self) -> Connection:
        self.asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.given_up = True
        raise AssertionError


async def test_a_stop_does_not_wait_for_credentials() -> None:
    """Regression: SIGTERM was heard only when the plugin had ended, up to two minutes later: the kubelet killed it."""
    cluster, stop = Waiting(), asyncio.Event()
    made = Process(Operator(name="op", group="example.com"), Config(http_host="127.0.0.1", http_port=0), cluster)
    running = asyncio.create_task(made.run(stop))
    await cluster.asked.wait()
    stop.set()
    async with asyncio.timeout(10):
        await running
    assert cluster.given_up


async def test_credentials_that_cannot_be_read_at_the_start_are_an_error_and_read_once() -> None:
    class Failing(Waiting):
        readings = 0

        async def connect(self) -> Connection:
            self.readings += 1
            raise UsageError("the plugin failed")

    cluster = Failing()
    made = Process(Operator(name="op", group="example.com"), Config(http_host="127.0.0.1", http_port=0), cluster)
    with pytest.raises(UsageError, match="the plugin failed"):
        await made.run(asyncio.Event())
    assert cluster.readings == 1


class Term:
    """A leadership that was won, or is won when the test says so, and is lost when it says so."""

    def __init__(self, *, won: bool = True) -> None:
        self.won = asyncio.Event()
        if won:
            self.won.set()
        self.lost = asyncio.Event()
        self.ended = asyncio.Event()
        self.calls: list[str] = []

    async def acquired(self) -> None:
        await self.won.wait()
        self.won.clear()

    async def run(self) -> None:
        await asyncio.Event().wait()

    def stood_down(self) -> None:
        self.calls.append("stood down")
        self.ended.set()

    async def release(self) -> None:
        self.calls.append("released")


async def test_a_replica_does_not_stand_down_while_a_thread_of_its_term_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Standing down lets another term begin, here or elsewhere: nothing of the old one may go on by then."""
    made, term, stop = process(), Term(), asyncio.Event()
    made._assemble(cast("Any", None))
    made._leadership = cast("Any", term)
    monkeypatch.setattr(made.recorder, "drain", AsyncMock())
    looked = 0
    leave = threading.Event()
    thread = threading.Thread(target=leave.wait, name=HANDLER_THREAD)
    thread.start()
    working = vars(supervisor.Term)["working"].fget

    def look(parts: supervisor.Term) -> bool:
        nonlocal looked
        looked += 1
        return bool(working(parts))

    monkeypatch.setattr(supervisor.Term, "working", property(look))
    serving = asyncio.create_task(made._serve(stop))
    try:
        async with asyncio.timeout(10):
            while not made.term.parts:  # noqa: ASYNC110  the term begins
                await asyncio.sleep(0.01)
            term.lost.set()
            while looked < 5:  # noqa: ASYNC110  it has looked several times, and the thread was there each time
                await asyncio.sleep(0.01)
            before = list(term.calls)
            leave.set()
            await term.ended.wait()
        assert before == []
        assert not thread.is_alive()
        assert term.calls == ["stood down"]
    finally:
        leave.set()
        stop.set()
        await serving
        await made._cancel()


async def deleted(stream: Stream, resource: Resource) -> None:
    await stream._step(watch.Line(line("DELETED", {"apiVersion": "v1", "kind": "ConfigMap", **resource})))


async def test_a_standby_forgets_a_deletion_after_two_leases_and_a_leader_never() -> None:
    """Within that time it leads, or the leader has seen to it; a standby that kept them all would grow for ever."""
    made, stop = process(), asyncio.Event()
    made.operator.lease = cast("Any", SimpleNamespace(lease_duration=0.02))
    made._assemble(cast("Any", None))
    made._leadership = cast("Any", term := Term(won=False))
    (worker,), (stream,) = made.workers, made.streams
    records = worker.router.records
    await lists(stream, thing("a"), thing("b"))
    serving = asyncio.create_task(made._serve(stop))
    try:
        await deleted(stream, thing("a", version=11))
        assert records.tombstones(Key("default", "a"))
        await until(lambda: not records.tombstones(Key("default", "a")))

        term.won.set()
        await until(lambda: made.term.parts)
        await cancelled([each.task for each in made.term.parts.values()])
        await deleted(stream, thing("b", version=12))
        await asyncio.sleep(0.2)  # ten leases
        assert records.tombstones(Key("default", "b"))
    finally:
        serving.cancel()
        await asyncio.wait([serving])
        await made._cancel()


# --- a server that is restored from a backup --------------------------------------------------------------------------


class Parents(Controller[Any]):
    resource = WIDGET
    owns = (Owned("v1", "ConfigMap"),)

    async def reconcile(self, axn: Any) -> None: ...


class Pods(Watcher):
    operation = List("v1", "Pod")
    watch_options = WatchOptions(backoff=Backoff(base=0.001, cap=0.01))


class Backup:
    """An API server without a socket; each watch is silent until the test says something, or refuses it."""

    group = "example.com"

    def __init__(self) -> None:
        self.versions = Counter({"widgets": 100, "configmaps": 10, "pods": 10})
        self.things: dict[str, tuple[Resource, ...]] = {"configmaps": (thing("c"),), "pods": (thing("p"),)}
        self.lists: Counter[str] = Counter()
        self.said: defaultdict[str, asyncio.Queue[bytes]] = defaultdict(asyncio.Queue)

    async def exchange(self, request: ApiRequest, **_: Any) -> Answer:
        plural = request.path.rpartition("/")[2]
        self.lists[plural] += 1
        return Answer(200, {}, page(*self.things.get(plural, ()), version=self.versions[plural]))

    @asynccontextmanager
    async def stream(self, path: str, **_: Any) -> AsyncIterator[Any]:
        said = self.said[path.rpartition("/")[2]]

        async def chunks() -> AsyncIterator[bytes]:
            while True:
                yield await said.get() + b"\n"

        yield SimpleNamespace(status=200, headers={}, chunks=chunks())


async def test_a_restore_that_one_stream_notices_makes_all_others_list_again_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Regression: a stream whose version the restored server had passed watched on in silence, and showed a child that
    did not exist: each apply to it was refused.

    The second restore is noticed by the stream of a watcher.
    """
    operator = Operator(name="op", group="example.com", controllers=[Parents, Pods], watch_options=Pods.watch_options)
    made, server = Process(operator, Config(http_host="127.0.0.1", http_port=0), Nowhere()), Backup()
    made._assemble(cast("Any", server))
    made._lasting = {stream: Supervised(stream) for stream in made.streams}
    made._begin_term()
    streams = {stream.kind.plural: stream for stream in made._all_streams()}
    try:
        await until(lambda: all(stream.opened for stream in streams.values()))
        assert server.lists == {"widgets": 1, "configmaps": 1, "pods": 1}
        assert len(streams["configmaps"].store) == len(streams["pods"].store) == 1

        for number, noticing in enumerate(("widgets", "pods"), start=2):
            server.things.clear()
            server.versions = Counter(dict.fromkeys(streams, 100 - 10 * number))
            server.said[noticing].put_nowait(line("ERROR", {"kind": "Status", "code": 410, "reason": "Expired"}))

            await until(lambda number=number: server.lists.total() >= 3 * number)
            await until(lambda: all(stream.opened for stream in streams.values()))
            assert server.lists == dict.fromkeys(streams, number)
            assert not streams["configmaps"].store
            assert not streams["pods"].store
        noticed = [vars(record) for record in caplog.records if "went backwards" in record.getMessage()]
        assert [said["stream"] for said in noticed] == ["widgets.example.com", "pods"]
    finally:
        await made._cancel()
