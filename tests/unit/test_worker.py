"""Worker: what is handed out is given back, a thread keeps its key and its slot, what counts as handled; no server."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import threading
import time
from collections import Counter
from decimal import Decimal
from typing import Any, cast

import pytest

from bonny import Axn, Retry, calling
from bonny.core.meters import Histogram, ReconcileCounts
from bonny.core.queue import Reason
from bonny.core.records import Action
from bonny.engine.reconcile import Reconcile
from bonny.engine.worker import STUCK_SECONDS, Worker
from bonny.resource import Key, Resource
from bonny.steps import DelegateToController
from bonny.telemetry.logging import _add_fields
from tests.support.core import thing
from tests.support.raising import PanicException
from tests.support.waiting import until
from tests.support.working import Quiet, at_work, lists, says, worker_of

W1 = Key("default", "w1")


def states(worker: Worker) -> tuple[int, int]:
    """How many keys are held by workers, and how many wait for another try."""
    statistics = worker.router.queue.statistics(now=time.monotonic())
    return statistics.working, statistics.ready + statistics.delayed


async def test_a_thread_whose_time_is_over_keeps_its_key_and_its_slot_until_it_returns(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The count is made in the handler and compared here: an assertion in a handler is one more failure to it."""
    lock, release = threading.Lock(), threading.Event()
    running: Counter[str] = Counter()
    most: Counter[str] = Counter()
    calls: Counter[str] = Counter()

    class Hangs(Quiet):
        timeout = 0.01
        max_concurrent = 2

        def reconcile(self, axn: Axn[Any]) -> None:  # type: ignore[override]
            name = axn.key.name
            with lock:
                calls[name] += 1
                running[name] += 1
                running["all"] += 1
                most[name] = max(most[name], running[name])
                most["all"] = max(most["all"], running["all"])
            if name == "hangs":
                release.wait(20)
            with lock:
                running[name] -= 1
                running["all"] -= 1

    worker = worker_of(DelegateToController(), controller=Hangs())
    stream = worker.router.primary[0]
    await lists(stream, thing("hangs", generation=1))
    try:
        async with at_work(worker):
            await until(lambda: [line for line in caplog.records if "after its timeout" in line.getMessage()])
            # Twenty others pass by the one slot that is left, which takes many times the longest wait of a failed key.
            for number in range(20):
                await says(stream, "ADDED", thing(f"other-{number}", version=20 + 2 * number, generation=1))
                await says(stream, "MODIFIED", thing("hangs", version=21 + 2 * number, generation=2 + number))
                await until(lambda name=f"other-{number}": calls[name])  # type: ignore[misc]
            assert (calls["hangs"], running["hangs"], len(worker.running)) == (1, 1, 1)
            release.set()
            await until(lambda: calls["hangs"] >= 2)
    finally:
        release.set()
    assert most["hangs"] == 1, "one object is never handled twice at a time"
    assert most["all"] <= 2
    (late,) = [vars(line) for line in caplog.records if "after its timeout" in line.getMessage()]
    assert (late["controller"], late["object"]) == ("Hangs", "default/hangs")


async def test_a_handling_that_is_cancelled_by_the_end_of_a_term_gives_its_key_back() -> None:
    began = asyncio.Event()

    async def hangs(axn: Axn[Any]) -> None:
        began.set()
        await asyncio.Event().wait()

    worker = worker_of(hangs)
    await lists(worker.router.primary[0], thing("w1"))
    async with at_work(worker):
        await began.wait()
        assert states(worker) == (1, 0)
    assert states(worker) == (0, 1)
    assert worker.meters.errors == 0, "the object did not fail"


async def test_the_line_of_a_failure_has_its_action(caplog: pytest.LogCaptureFixture) -> None:
    """Regression: its column was empty, so the columns of the console looked broken."""

    async def fails(axn: Axn[Any]) -> None:
        raise ValueError

    worker = worker_of(fails)
    await lists(worker.router.primary[0], thing("w1"))
    work = worker.router.queue.take(now=time.monotonic())
    assert work is not None
    await worker._handle(work)

    assert [vars(line)["action"] for line in caplog.records if line.message == "reconcile failed"] == ["add"]
    assert worker._actions == {}


@pytest.mark.parametrize("writes", [True, False])
async def test_a_reconcile_is_logged_at_info_only_if_it_changed_something(
    writes: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Each restart and each resync brings a reconcile for each object."""
    caplog.set_level(logging.DEBUG, "bonny.engine.worker")

    def handle(axn: Reconcile[Any]) -> None:
        if writes:
            with axn.context.writing(axn.kind, axn.key) as wrote:
                wrote("20")

    worker = worker_of(handle)
    await lists(worker.router.primary[0], thing("w1"))
    work = worker.router.queue.take(now=time.monotonic())
    assert work is not None
    await worker._handle(work)

    levels = [line.levelname for line in caplog.records if line.message == "reconciled"]
    assert levels == ["INFO" if writes else "DEBUG"]


async def test_a_worker_whose_handlers_may_take_long_is_not_stuck_before_their_timeout() -> None:
    class Slow(Quiet):
        max_concurrent = 1
        timeout = 1_000.0

    worker = worker_of(controller=Slow())
    task = asyncio.create_task(asyncio.Event().wait())
    for seconds, stuck in ((Slow.timeout + STUCK_SECONDS - 60.0, False), (Slow.timeout + STUCK_SECONDS + 60.0, True)):
        worker.running = {cast("Any", task): time.monotonic() - seconds}
        assert worker.stuck is stuck
    task.cancel()


async def test_what_the_report_of_a_failure_raises_leaves_no_key_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it is, and whether it comes before the key was given back or after."""

    async def fails(axn: Axn[Any]) -> None:
        raise ValueError

    class Breaks(Histogram):
        def observe(self, seconds: float, exemplar: object = None) -> None:
            raise PanicException

    class Broken(ReconcileCounts):
        def __init__(self, method: str) -> None:
            super().__init__()
            self.method = method
            self.seconds = Breaks()

        def failed(self, error: Exception) -> None:
            if self.method == "failed":
                raise PanicException

    for method in ("failed", "observe"):
        worker = worker_of(fails)
        monkeypatch.setattr(worker, "meters", Broken(method))
        await lists(worker.router.primary[0], thing("w1"))
        work = worker.router.queue.take(now=time.monotonic())
        assert work is not None
        with pytest.raises(PanicException):
            await worker._handle(work)
        assert states(worker) == (0, 1)


async def test_a_second_term_handles_everything_again() -> None:
    """Nobody knows what another leader did in between."""
    handled: Counter[str] = Counter()

    async def handle(axn: Axn[Any]) -> None:
        handled[f"{axn.action} {axn.key.name}"] += 1

    worker = worker_of(handle)
    await lists(worker.router.primary[0], thing("a"), thing("b"))
    async with at_work(worker):
        await until(lambda: worker.handled == 2)
    async with at_work(worker):
        await until(lambda: worker.handled == 4)
    assert handled == {"add a": 2, "add b": 2}


async def test_what_a_finalizers_patch_left_counts_as_handled_and_not_what_was_queued() -> None:
    """Regression by design: the next look would be a `modify` of the runtime's own change."""
    actions: list[Action] = []

    def patches(axn: Axn[Any]) -> None:
        """As `Finalizer` does: it goes on with the object that its patch left."""
        actions.append(axn.action)
        axn.renew({**axn.resource, "metadata": {**axn.resource["metadata"], **PATCHED}})

    worker = worker_of(patches)
    stream = worker.router.primary[0]
    await lists(stream, thing("w1", version=5, generation=1))
    async with at_work(worker):
        await until(lambda: worker.handled == 1)
        patched = thing("w1", version=11, generation=1)
        patched["metadata"]["finalizers"] = ["example.com/x"]
        await says(stream, "MODIFIED", patched)
        worker.router.queue.add(W1, Reason.CHILD, now=time.monotonic())
        worker.router.wake()
        await until(lambda: worker.handled == 2)
    assert actions == [Action.ADD, Action.RECONCILE]


PATCHED: Resource = {"finalizers": ["example.com/x"], "resourceVersion": "11"}


async def test_a_handler_that_cancels_its_own_task_at_its_very_end_fails_itself(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The cancellation arrived in the next step that awaits, the write of the status, which then reported nothing."""
    reported: list[str] = []

    class Cancels(Quiet):
        async def reconcile(self, axn: Axn[Any]) -> None:
            task = asyncio.current_task()
            if axn.tries == 0 and task is not None:
                task.cancel()

    class Reports:
        reports_failure = True

        async def __call__(self, axn: Axn[Any]) -> None:
            await asyncio.sleep(0)
            reported.append("none" if axn.failure is None else axn.failure.message)

    worker = worker_of(DelegateToController(), Reports(), controller=Cancels())
    await lists(worker.router.primary[0], thing("w1"))
    async with at_work(worker):
        await until(lambda: worker.handled)
    assert reported == ["it was cancelled from within", "none"]
    assert [vars(line)["object"] for line in caplog.records] == ["default/w1"]


async def test_a_handler_that_swallows_its_cancellation_is_named_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(calling, "OVERDUE_SECONDS", 0.01)
    caplog.handler.addFilter(_add_fields)
    release = asyncio.Event()

    class Swallows(Quiet):
        timeout = 0.01

        async def reconcile(self, axn: Axn[Any]) -> None:
            while axn.key.name == "w1" and not release.is_set():
                try:
                    await release.wait()
                except asyncio.CancelledError:
                    continue

    worker = worker_of(DelegateToController(), controller=Swallows())
    await lists(worker.router.primary[0], thing("w1"), thing("other"))
    async with at_work(worker):
        try:
            await until(lambda: caplog.records, within=5.0)
            await asyncio.sleep(0.1)  # ten times what passes until the line is written
        finally:
            release.set()
        await until(lambda: worker.handled == 2)
    (late,) = caplog.records
    assert late.getMessage() == "handler still running after its timeout"
    assert (vars(late)["handler"], vars(late)["timeout_seconds"]) == ("add of Swallows", 0.01)
    assert vars(late)["object"] == "default/w1"


class Subclassed(Retry):
    """As users write them: without a call of the base's `__init__`."""

    def __init__(self, why: str) -> None:
        self.why = why


@pytest.mark.parametrize("error", [Subclassed("not yet"), Retry(after=cast("float", Decimal(1)))])
async def test_a_retry_of_any_make_is_one(error: Retry) -> None:
    async def asks(axn: Axn[Any]) -> None:
        raise error

    worker = worker_of(asks)
    await lists(worker.router.primary[0], thing("w1"))
    work = worker.router.queue.take(now=time.monotonic())
    assert work is not None
    await worker._handle(work)
    assert states(worker) == (0, 1)
    assert worker.meters.errors == 0


async def test_a_key_comes_back_although_its_handler_ended_the_only_slot() -> None:
    """Regression: no slot was left to wait for the end of the backoff."""
    bound: contextvars.ContextVar[str] = contextvars.ContextVar("bound")
    seen: list[str | None] = []

    def leaves_a_variable(axn: Axn[Any]) -> None:
        seen.append(bound.get(None))
        bound.set(axn.uid)
        if len(seen) == 1:
            raise Retry("not yet")

    worker = worker_of(leaves_a_variable)
    await lists(worker.router.primary[0], thing("w1", version=5))
    async with at_work(worker):
        await until(lambda: worker.handled == 1)

    assert seen == [None, None]
