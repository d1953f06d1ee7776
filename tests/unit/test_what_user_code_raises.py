"""The table of user code and what it raises.

The object, and only it, is tried again with backoff; a bystander is handled; the server that runs the code goes on; a
line of the log names the object.

The columns are in `tests/support/raising.py`; schedulers have rows of their own in `tests/unit/scheduler`.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bonny import Axn, Kind, compat, telemetry
from bonny.calling import LONGEST_TEXT
from bonny.core import watch
from bonny.core.queue import Reason, Statistics
from bonny.engine.router import Router
from bonny.engine.stream import Stream
from bonny.engine.worker import Worker
from bonny.events import Event
from bonny.kinds import List, Related
from bonny.resource import Key, Resource
from bonny.servers.periodic import PeriodicTask, PeriodicTasks, TaskRun
from bonny.servers.reconciler import Reconciler
from bonny.servers.watcher import Watcher
from bonny.steps import ApplyDescendants, DelegateToController, Finalizer
from bonny.steps.apply_status import ApplyStatus
from bonny.telemetry.logging import _Json
from bonny_dev.console_log import Console
from tests.support.core import line, thing
from tests.support.raising import RAISED, RAISED_ON_THE_LOOP
from tests.support.recorder import KeptEvents
from tests.support.waiting import running, until
from tests.support.working import NO_CLIENT, QUICK, TYPE, WIDGET, Quiet, at_work, lists, worker_of

FINALIZER = "example.com/clean"
BAD = "default/bad"
FAILURES = 3
PARITY = Quiet.configured(axn_class=compat.Axn)

Act = Callable[[str], None]

on_the_loop = pytest.mark.parametrize("raises", RAISED_ON_THE_LOOP.values(), ids=RAISED_ON_THE_LOOP)
anywhere = pytest.mark.parametrize("raises", RAISED.values(), ids=RAISED)


@pytest.fixture(autouse=True)
def _every_line_can_be_written(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """In both formats, and none says more of an error than it may; asyncio found no error that nobody took."""
    yield
    assert [record.getMessage() for record in caplog.records if record.name == "asyncio"] == []
    for record in caplog.records:
        assert len(str(vars(record).get("error", ""))) < LONGEST_TEXT + 500
        for form in (_Json(), Console(colour=False)):
            assert form.format(record)


class Seen:
    """Which objects user code was called for, and what it does then: for the object `bad` it fails some times."""

    def __init__(self, raises: Callable[[], None]) -> None:
        self.calls: Counter[str] = Counter()
        self.raises = raises

    def act(self, name: str) -> None:
        self.calls[name] += 1
        if name == "bad" and self.calls[name] <= FAILURES:
            self.raises()

    async def act_and_await(self, name: str) -> None:
        self.act(name)
        await asyncio.sleep(0)


def logged(caplog: pytest.LogCaptureFixture, message: str) -> list[dict[str, Any]]:
    """The fields of each such line; no other line is a warning or worse."""
    records = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert {record.getMessage() for record in records} <= {message}
    return [vars(record) for record in records]


# --- what a worker runs -----------------------------------------------------------------------------------------------


class Finalizing:
    """The requests of a finalizer around user code: it finds what the stream shows, and is removed."""

    async def get(self, kind: Kind, name: str, *, namespace: str | None = None, cut: bool = False) -> Resource:
        return finalized(name)

    async def json_patch(self, kind: Kind, key: Key, operations: list[Resource]) -> Resource:
        return {**TYPE, **thing(key.name, version=5, deleting=True)}


def finalized(name: str) -> Resource:
    made = thing(name, version=5, deleting=True)
    made["metadata"]["finalizers"] = [FINALIZER]
    return {**TYPE, **made}


async def _awaits(axn: Axn[Any]) -> None:
    """The last step, as that of the status is: a cancellation arrives here at the latest."""
    await asyncio.sleep(0)


async def _costs_its_object_alone(
    worker: Worker, seen: Seen, caplog: pytest.LogCaptureFixture, *things: Resource
) -> None:
    await lists(worker.router.primary[0], *(things or (thing("bad"), thing("good"))))
    async with at_work(worker):
        await until(lambda: worker.handled >= 2)
    assert seen.calls == {"good": 1, "bad": FAILURES + 1}
    failures = logged(caplog, "reconcile failed")
    assert [(failure["controller"], failure["object"]) for failure in failures] == FAILURES * [(worker.name, BAD)]
    assert all(failure["retry_in_seconds"] >= QUICK.base for failure in failures)
    assert worker.meters.errors == FAILURES
    left = worker.router.queue.statistics(now=0.0)
    assert left == Statistics(0, 0, 0, 0, timers=left.timers, oldest=0.0)


@on_the_loop
async def test_an_async_handler(raises: Callable[[], None], caplog: pytest.LogCaptureFixture) -> None:
    seen = Seen(raises)

    class Fails(Quiet):
        async def reconcile(self, axn: Axn[Any]) -> None:
            await seen.act_and_await(axn.key.name)

    worker = worker_of(DelegateToController(), _awaits, controller=Fails())
    await _costs_its_object_alone(worker, seen, caplog)


@pytest.mark.parametrize("threaded", [True, False])
async def test_the_line_says_where_a_handler_called_the_runtime_wrongly(
    threaded: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """An error of the runtime has no traceback in the log: among many children, the line of the call is what helps."""

    def lacks_a_name(axn: Axn[Any]) -> None:
        axn.register_descendant({"apiVersion": "v1", "kind": "ConfigMap"})

    class Threaded(Quiet):
        def reconcile(self, axn: Axn[Any]) -> None:
            lacks_a_name(axn)

    class OnTheLoop(Quiet):
        async def reconcile(self, axn: Axn[Any]) -> None:
            lacks_a_name(axn)

    worker = worker_of(DelegateToController(), controller=Threaded() if threaded else OnTheLoop())
    await lists(worker.router.primary[0], thing("bad"))
    async with at_work(worker):
        await until(lambda: worker.meters.errors >= 1)
    (failure, *_) = (record for record in caplog.records if record.getMessage() == "reconcile failed")
    assert "this one has apiVersion='v1', kind='ConfigMap', metadata.name=None" in vars(failure)["error"]
    place = f"{Path(__file__)}:{lacks_a_name.__code__.co_firstlineno + 1}"
    assert vars(failure)["at"] == place
    console, machine = Console(colour=False).format(failure), _Json().format(failure)
    assert f"  at {os.path.relpath(place)}; next try in " in console  # noqa: ASYNC240  no I/O
    assert f'"at":"{place}"' in machine


@anywhere
async def test_a_def_handler(raises: Callable[[], None], caplog: pytest.LogCaptureFixture) -> None:
    seen = Seen(raises)

    class Fails(Quiet):
        def reconcile(self, axn: Axn[Any]) -> None:  # type: ignore[override]
            seen.act(axn.key.name)

    await _costs_its_object_alone(worker_of(DelegateToController(), controller=Fails()), seen, caplog)


@on_the_loop
async def test_an_async_step(raises: Callable[[], None], caplog: pytest.LogCaptureFixture) -> None:
    seen = Seen(raises)

    async def step(axn: Axn[Any]) -> None:
        await seen.act_and_await(axn.key.name)

    await _costs_its_object_alone(worker_of(step, _awaits), seen, caplog)


@on_the_loop
async def test_a_def_step(raises: Callable[[], None], caplog: pytest.LogCaptureFixture) -> None:
    seen = Seen(raises)

    def step(axn: Axn[Any]) -> None:
        seen.act(axn.key.name)

    await _costs_its_object_alone(worker_of(step, _awaits), seen, caplog)


@on_the_loop
async def test_a_hook_before_descendants_are_applied(
    raises: Callable[[], None], caplog: pytest.LogCaptureFixture
) -> None:
    seen = Seen(raises)

    def hook(descendants: list[Resource], axn: Axn[Any]) -> list[Resource]:
        seen.act(axn.key.name)
        return descendants

    def registers(axn: compat.Axn[Any]) -> None:
        axn.register_before_apply_descendants(hook)

    await _costs_its_object_alone(worker_of(registers, ApplyDescendants(), _awaits, controller=PARITY()), seen, caplog)


@on_the_loop
async def test_a_function_that_changes_the_status(raises: Callable[[], None], caplog: pytest.LogCaptureFixture) -> None:
    seen = Seen(raises)

    def registers(axn: Axn[Any]) -> None:
        axn.update_status(lambda status: seen.act(axn.key.name) or status)

    await _costs_its_object_alone(worker_of(registers, ApplyStatus(), _awaits), seen, caplog)


@on_the_loop
async def test_a_hook_before_the_status_is_applied(
    raises: Callable[[], None], caplog: pytest.LogCaptureFixture
) -> None:
    seen = Seen(raises)

    def hook(resource: Resource, axn: Axn[Any]) -> Resource:
        seen.act(axn.key.name)
        return resource

    def registers(axn: compat.Axn[Any]) -> None:
        axn.update_status(lambda status: status)
        axn.register_before_apply_status(hook)

    await _costs_its_object_alone(worker_of(registers, ApplyStatus(), _awaits, controller=PARITY()), seen, caplog)


@on_the_loop
async def test_when_of_a_finalizer(raises: Callable[[], None], caplog: pytest.LogCaptureFixture) -> None:
    seen = Seen(raises)

    def when(axn: Axn[Any]) -> bool:
        seen.act(axn.key.name)
        return False

    finalizer = Finalizer(FINALIZER, implementation=lambda axn: None, when=when)
    await _costs_its_object_alone(worker_of(finalizer, _awaits), seen, caplog)


@on_the_loop
async def test_an_async_finalize(raises: Callable[[], None], caplog: pytest.LogCaptureFixture) -> None:
    seen = Seen(raises)

    async def clean(axn: Axn[Any]) -> None:
        await seen.act_and_await(axn.key.name)

    await _finalizes(clean, seen, caplog)


@anywhere
async def test_a_def_finalize(raises: Callable[[], None], caplog: pytest.LogCaptureFixture) -> None:
    seen = Seen(raises)

    await _finalizes(lambda axn: seen.act(axn.key.name), seen, caplog)


async def _finalizes(clean: Callable[[Axn[Any]], Any], seen: Seen, caplog: pytest.LogCaptureFixture) -> None:
    """The bystander has no finalizer, so that nothing is sent: it passes the step that follows."""

    def passes(axn: Axn[Any]) -> None:
        seen.calls["good"] += axn.key.name == "good"

    steps = (passes, Finalizer(FINALIZER, implementation=clean, when=lambda axn: False))
    await _costs_its_object_alone(worker_of(*steps, client=Finalizing()), seen, caplog, finalized("bad"), thing("good"))


@anywhere
async def test_a_hook_before_an_event_is_emitted_costs_that_event_and_undoes_nothing(
    raises: Callable[[], None], caplog: pytest.LogCaptureFixture
) -> None:
    """Without `current_task().cancel()`: the task of the handling has ended by then."""
    seen = Seen(raises)

    def hook(event: Event, axn: Axn[Any]) -> Event:
        if event.reason == "First":
            seen.act(axn.key.name)
        return event

    def registers(axn: compat.Axn[Any]) -> None:
        axn.register_before_emit_event(hook)
        axn.failure_event(reason="First")
        axn.failure_event(reason="Second")

    recorder = KeptEvents()
    worker = worker_of(registers, recorder=recorder, controller=PARITY())
    await lists(worker.router.primary[0], thing("bad"), thing("good"))
    async with at_work(worker):
        await until(lambda: worker.handled == 2)
    assert seen.calls == {"bad": 1, "good": 1}
    assert {(about.rpartition("/")[2], event.reason) for about, event in recorder.events} == {
        ("bad", "Second"),
        ("good", "First"),
        ("good", "Second"),
    }
    assert [line["object"] for line in logged(caplog, "a hook failed")] == [BAD]


@anywhere
async def test_a_hook_after_the_work_does_not_undo_it(
    raises: Callable[[], None], caplog: pytest.LogCaptureFixture
) -> None:
    """Without `current_task().cancel()`: the task of the handling has ended by then."""
    seen = Seen(raises)

    def registers(axn: compat.Axn[Any]) -> None:
        axn.register_after_processed(lambda axn: seen.act(axn.key.name))

    worker = worker_of(registers, controller=PARITY())
    await lists(worker.router.primary[0], thing("bad"), thing("good"))
    async with at_work(worker):
        await until(lambda: worker.handled == 2)
    assert seen.calls == {"bad": 1, "good": 1}
    assert [line["object"] for line in logged(caplog, "a hook failed")] == [BAD]


@on_the_loop
async def test_a_handler_of_a_watcher(raises: Callable[[], None], caplog: pytest.LogCaptureFixture) -> None:
    seen = Seen(raises)

    class Fails(Watcher):
        operation = WIDGET

        async def add(self, resource: Resource) -> None:
            await seen.act_and_await(resource["metadata"]["name"])

    await _costs_its_object_alone(_quick(Fails(NO_CLIENT)), seen, caplog)


@anywhere
async def test_a_def_handler_of_a_watcher(raises: Callable[[], None], caplog: pytest.LogCaptureFixture) -> None:
    seen = Seen(raises)

    class Fails(Watcher):
        operation = WIDGET

        def add(self, resource: Resource) -> None:
            seen.act(resource["metadata"]["name"])

    await _costs_its_object_alone(_quick(Fails(NO_CLIENT)), seen, caplog)


def _quick(watcher: Watcher) -> Worker:
    watcher.worker.router.queue._backoff = QUICK
    return watcher.worker


# --- functions of Related ---------------------------------------------------------------------------------------------


@anywhere
@pytest.mark.parametrize("by", ["keys", "named_by"])
async def test_a_function_of_related(by: str, raises: Callable[[], None], caplog: pytest.LogCaptureFixture) -> None:
    """Called for each change, and not again. Without `current_task().cancel()`: the task is that of the stream."""
    seen = Seen(raises)

    def names(resource: Resource) -> list[str]:
        seen.act(resource["metadata"]["name"])
        return ["good"]

    related = Related("v1", "Secret", **{by: names})
    primary, secrets = (
        Stream(NO_CLIENT, kind, namespace=None, options=watch.WatchOptions()) for kind in (WIDGET, related)
    )
    router = Router(primary=[primary], owned={}, related={related: [secrets]}, backoff=QUICK, on_status=False)
    await lists(primary, thing("bad"), thing("good"))
    await lists(secrets)
    while (work := router.queue.take(now=1e9)) is not None:
        router.queue.done(work.key, now=1e9)

    for name in ("bad", "good"):
        await secrets._step(
            watch.Line(line("ADDED", {"apiVersion": "v1", "kind": "Secret", **thing(name, version=11)}))
        )

    work = router.queue.take(now=1e9)
    assert work is not None
    assert (work.key, work.reasons) == (Key("default", "good"), {Reason.RELATED})
    assert [line["object"] for line in logged(caplog, "a function of Related failed")] == [BAD]


# --- reconcilers ------------------------------------------------------------------------------------------------------


class Rounds(Reconciler):
    """Goes through two objects at a time, again and again."""

    operation = List("v1", "Pod")
    frequency = 0.01
    max_concurrent = 1

    def __init__(self, seen: Seen) -> None:
        super().__init__(NO_CLIENT)
        self.seen = seen

    async def reconcilable_resources(self) -> AsyncIterator[Resource]:
        for name in ("bad", "good"):
            yield thing(name)


async def _go_round(reconciler: Rounds, caplog: pytest.LogCaptureFixture) -> None:
    async with running(reconciler.run):
        await until(lambda: reconciler.seen.calls["bad"] > FAILURES)
    assert reconciler.seen.calls["good"] >= FAILURES
    lines = logged(caplog, "reconciler failed for an object")
    assert [(line["reconciler"], line["object"]) for line in lines] == FAILURES * [("Fails", BAD)]


@on_the_loop
async def test_reconcile_of_a_reconciler(raises: Callable[[], None], caplog: pytest.LogCaptureFixture) -> None:
    class Fails(Rounds):
        async def reconcile(self, resource: Resource) -> None:
            await self.seen.act_and_await(resource["metadata"]["name"])

    await _go_round(Fails(Seen(raises)), caplog)


@anywhere
async def test_a_def_reconcile_of_a_reconciler(raises: Callable[[], None], caplog: pytest.LogCaptureFixture) -> None:
    class Fails(Rounds):
        def reconcile(self, resource: Resource) -> None:
            self.seen.act(resource["metadata"]["name"])

    await _go_round(Fails(Seen(raises)), caplog)


@on_the_loop
async def test_reconcilable_resources(raises: Callable[[], None], caplog: pytest.LogCaptureFixture) -> None:
    """What came before is handled, and the next run asks again."""

    class Fails(Rounds):
        async def reconcilable_resources(self) -> AsyncIterator[Resource]:
            yield thing("good")
            await self.seen.act_and_await("bad")

        async def reconcile(self, resource: Resource) -> None:
            self.seen.act(resource["metadata"]["name"])

    reconciler = Fails(Seen(raises))
    began = asyncio.get_running_loop().time()
    async with running(reconciler.run):
        await until(lambda: reconciler.seen.calls["bad"] > FAILURES)
        calls, seconds = reconciler.seen.calls["bad"], asyncio.get_running_loop().time() - began
    assert calls <= seconds / Fails.frequency + 1
    assert reconciler.seen.calls["good"] >= FAILURES
    lines = logged(caplog, "cannot list the objects to reconcile")
    assert [line["reconciler"] for line in lines] == FAILURES * ["Fails"]


# --- periodic tasks ---------------------------------------------------------------------------------------------------


async def _halts(handler: Callable[[TaskRun, str], Any], seen: Seen, caplog: pytest.LogCaptureFixture) -> None:
    """A task that fails is halted, and not tried again."""
    tasks = PeriodicTasks(
        NO_CLIENT, [PeriodicTask(name, handler, arguments=(name,), interval=0.005) for name in ("bad", "good")]
    )
    async with running(tasks.run):
        await until(lambda: seen.calls["good"] >= 5 and tasks.halted)
        calls = seen.calls["good"]
        await until(lambda: seen.calls["good"] >= calls + 3)
    assert seen.calls["bad"] == 1
    assert list(tasks.halted) == ["bad"]
    assert tasks.registered == 1
    assert [line["task"] for line in logged(caplog, "task halted")] == ["bad"]


@on_the_loop
async def test_an_async_periodic_task(raises: Callable[[], None], caplog: pytest.LogCaptureFixture) -> None:
    seen = Seen(raises)

    async def handler(run: TaskRun, name: str) -> None:
        await seen.act_and_await(name)

    await _halts(handler, seen, caplog)


@anywhere
async def test_a_def_periodic_task(raises: Callable[[], None], caplog: pytest.LogCaptureFixture) -> None:
    seen = Seen(raises)

    def handler(run: TaskRun, name: str) -> None:
        seen.act(name)

    await _halts(handler, seen, caplog)


# --- listeners --------------------------------------------------------------------------------------------------------


@anywhere
def test_a_listener_of_telemetry_events(raises: Callable[[], None], caplog: pytest.LogCaptureFixture) -> None:
    """It is detached. Without `current_task().cancel()`: the task is that of whatever the event is about."""
    seen = Seen(raises)
    for name in ("bad", "good"):
        telemetry.attach(name, "tests.moment", lambda event, numbers, told, config: seen.act(config), config=name)
    for _ in range(2):
        telemetry.execute("tests.moment")
    assert seen.calls == {"bad": 1, "good": 2}
    assert telemetry.detach("good")
    assert not telemetry.detach("bad")
    assert [line["listener"] for line in logged(caplog, "a listener failed and was detached")] == ["bad"]
