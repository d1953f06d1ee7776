"""Worker: its slots, the tasks that handle one key after the other; in virtual time, without a server."""

from __future__ import annotations

import asyncio
import contextvars
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from types import MappingProxyType
from typing import Any, ClassVar

import pytest

from bonny import Action, Axn
from bonny.core import watch
from bonny.core.meters import Exemplar, Histogram
from bonny.core.queue import Reason, Work
from bonny.engine import slots as slots_module
from bonny.engine.reconcile import Reconcile, Step
from bonny.engine.stream import Stream
from bonny.engine.worker import Worker
from bonny.errors import Retry, Terminal
from bonny.kinds import Owned
from bonny.resource import Key
from bonny.telemetry import tracing
from tests.support.core import bookmark, thing
from tests.support.loops import LOOPS
from tests.support.raising import PanicException
from tests.support.virtual import Clock
from tests.support.waiting import until
from tests.support.working import NO_CLIENT, QUICK, WIDGET, Quiet, at_work, lists, says, worker_of

W1, W2 = Key("default", "w1"), Key("default", "w2")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def with_slots(count: int, *steps: Step, owned: Mapping[Owned, Sequence[Stream]] = MappingProxyType({})) -> Worker:
    class Some(Quiet):
        max_concurrent: ClassVar[int] = count

        async def delete(self, axn: Axn[Any]) -> None: ...

    return worker_of(*steps, controller=Some(), owned=owned)


def named(count: int) -> list[Any]:
    return [thing(f"w{number}", generation=1) for number in range(1, count + 1)]


def queue(worker: Worker, *keys: Key) -> None:
    for key in keys:
        worker.router.queue.add(key, Reason.CHILD, now=time.monotonic())
        worker.router.wake()


# --- what one key leaves for the next one -----------------------------------------------------------------------------


def test_a_context_variable_that_a_handler_leaves_does_not_reach_the_next_key(clock: Clock) -> None:
    bound: contextvars.ContextVar[str] = contextvars.ContextVar("bound")
    seen: list[str | None] = []

    async def leaves_it(axn: Reconcile[Any]) -> None:
        seen.append(bound.get(None))
        bound.set(axn.key.name)
        await asyncio.sleep(1)

    async def main() -> None:
        worker = with_slots(1, leaves_it)
        await lists(worker.router.primary[0], *named(3))
        async with at_work(worker):
            await asyncio.sleep(10)

    clock.run(main)
    assert seen == [None] * 3


@pytest.mark.parametrize("swallowed", [False, True])
def test_a_cancellation_that_a_handler_leaves_does_not_reach_the_next_key(clock: Clock, swallowed: bool) -> None:
    """It is pending at the handler's end, or the task counts it although nobody noticed."""

    async def cancels(axn: Reconcile[Any]) -> None:
        task = asyncio.current_task()
        if axn.key == W1 and axn.tries == 0 and task is not None:
            task.cancel()
        if swallowed or axn.key != W1:
            try:
                await asyncio.sleep(1)
            except asyncio.CancelledError:
                assert axn.key == W1

    async def main() -> tuple[int, int]:
        worker = with_slots(1, cancels)
        await lists(worker.router.primary[0], *named(3))
        async with at_work(worker):
            await asyncio.sleep(10)
        return worker.handled, worker.meters.errors

    assert clock.run(main) == (3, 0)


def test_a_stop_while_a_second_term_begins_ends_it(clock: Clock) -> None:
    """Regression: it was forgotten, and the worker ran on beside another leader."""

    async def main() -> None:
        worker = with_slots(1)
        await lists(worker.router.primary[0], *named(3))
        async with at_work(worker):
            await asyncio.sleep(1)
        run = asyncio.create_task(worker.run())
        await asyncio.sleep(0)
        assert not worker._slots.ended.is_set(), "it queues all objects"
        worker.stop()
        async with asyncio.timeout(10):
            await run

    clock.run(main)


@pytest.mark.parametrize("terms", [0, 1])
def test_a_stop_before_the_first_step_of_a_term_ends_it(clock: Clock, terms: int) -> None:
    """Regression: it was forgotten, and the worker reconciled until the grace period was over."""
    handled: list[Key] = []

    async def handle(axn: Reconcile[Any]) -> None:
        handled.append(axn.key)

    async def main() -> None:
        worker = with_slots(1, handle)
        await lists(worker.router.primary[0], *named(3))
        for _ in range(terms):
            async with at_work(worker):
                await asyncio.sleep(1)
        run = asyncio.create_task(worker.run())
        worker.stop()
        async with asyncio.timeout(10):
            await run
        assert len(handled) == 3 * terms
        async with at_work(worker):
            await asyncio.sleep(1)
        assert len(handled) == 3 * terms + 3, "the next term reconciles every object"

    clock.run(main)


def test_one_slot_handles_many_keys_whose_handlers_leave_nothing(clock: Clock) -> None:
    """A task for each key costs as much as the queue: what the runtime itself sets must not count.

    Regression: what was set where the worker was started counted, each time.
    """
    tasks: set[object] = set()

    async def notes(axn: Reconcile[Any]) -> None:
        tasks.add(asyncio.current_task())
        await asyncio.sleep(1)

    async def main() -> None:
        tracing.observed.set(Exemplar("a" * 32, "b" * 16, at=0.0))
        worker = with_slots(1, notes)
        await lists(worker.router.primary[0], *named(20))
        async with at_work(worker):
            await asyncio.sleep(100)
        assert worker.handled == 20

    clock.run(main)
    assert len(tasks) == 1


def test_a_time_that_a_handler_asked_for_brings_its_object_back(clock: Clock) -> None:
    times: list[float] = []

    def in_an_hour(axn: Reconcile[Any]) -> None:
        times.append(clock.now)
        axn.requeue_at(axn.now + timedelta(hours=1))

    async def main() -> None:
        worker = with_slots(1, in_an_hour)
        await lists(worker.router.primary[0], *named(1))
        async with at_work(worker):
            await asyncio.sleep(3 * 3600 + 60)

    clock.run(main)
    assert [round(later - times[0]) for later in times] == [0, 3600, 7200, 10800]


def test_a_retry_comes_back_after_the_time_that_it_asks_for_however_often(clock: Clock) -> None:
    """It is not a failure: the waits do not grow."""
    times: list[float] = []

    def asks_again(axn: Reconcile[Any]) -> None:
        times.append(clock.now)
        if len(times) < 20:
            raise Retry("not yet", after=QUICK.base)

    async def main() -> None:
        worker = worker_of(asks_again)
        await lists(worker.router.primary[0], *named(1))
        async with at_work(worker):
            await asyncio.sleep(1)

    clock.run(main)
    assert times[-1] - times[0] == pytest.approx(19 * QUICK.base)


def test_an_object_whose_finalize_waits_is_finalized_again_at_the_next_resync(clock: Clock) -> None:
    times: list[float] = []

    def waits(axn: Reconcile[Any]) -> None:
        times.append(clock.now)
        axn.wait("the bucket is not empty")

    async def main() -> None:
        worker = worker_of(waits)
        worker._finalizers = frozenset({"example.com/bucket"})
        leaving = thing("w1", version=5, generation=1, deleting=True)
        leaving["metadata"]["finalizers"] = ["example.com/bucket"]
        await lists(worker.router.primary[0], leaving)
        async with at_work(worker):
            await asyncio.sleep(Quiet.reconcile_every + 1)

    clock.run(main)
    assert len(times) == 2
    assert times[1] - times[0] >= 0.9 * Quiet.reconcile_every


def test_an_object_whose_reconcile_wrote_what_its_handler_had_observed_is_reconciled_again(clock: Clock) -> None:
    actions: list[Action] = []

    def writes_once(axn: Reconcile[Any]) -> None:
        actions.append(axn.action)
        axn.outdated = len(actions) == 1

    async def main() -> None:
        worker = with_slots(1, writes_once)
        await lists(worker.router.primary[0], *named(1))
        async with at_work(worker):
            await asyncio.sleep(1)

    clock.run(main)
    assert actions == [Action.ADD, Action.RECONCILE]


def test_terminal_cancels_the_timer_of_an_earlier_reconcile(clock: Clock) -> None:
    """After that the user corrects the object, and its handler asks for no further reconcile."""
    times: list[float] = []

    def refuses_the_second(axn: Reconcile[Any]) -> None:
        times.append(round(clock.now - 1000.0))
        if len(times) == 1:
            axn.requeue_after(60.0)
        if len(times) == 2:
            raise Terminal("not that size")

    class Never(Quiet):
        reconcile_every = math.inf

    async def main() -> None:
        worker = worker_of(refuses_the_second, controller=Never())
        stream = worker.router.primary[0]
        await lists(stream, thing("w1", version=5, generation=1))
        async with at_work(worker):
            for generation in (2, 3):
                await asyncio.sleep(20)
                await says(stream, "MODIFIED", thing("w1", version=10 + generation, generation=generation))
            await asyncio.sleep(100)

    clock.run(main)
    assert times == [0, 20, 40]


# --- slots that end ---------------------------------------------------------------------------------------------------


def noted(tasks: list[asyncio.Task[Any] | None], *, after: float = 0.0) -> Step:
    """A step that notes its task; the object's first handling asks for another one."""

    def note(axn: Reconcile[Any]) -> None:
        tasks.append(asyncio.current_task())
        if after and len(tasks) == 1:
            axn.requeue_after(after)

    return note


def test_a_slot_that_is_cancelled_while_it_waits_is_replaced(clock: Clock) -> None:
    """As by a timer that a handler left; the slot that ends had the alarm for the next timer of a key."""
    tasks: list[asyncio.Task[Any] | None] = []

    async def main() -> None:
        worker = with_slots(1, noted(tasks, after=5.0))
        await lists(worker.router.primary[0], *named(1))
        async with at_work(worker):
            await asyncio.sleep(1)
            (slot,) = tasks
            assert slot is not None
            slot.cancel()
            await asyncio.sleep(1)
            assert slot.done()
            assert len(worker._slots._tasks) == 1
            await asyncio.sleep(5)
            assert len(tasks) == 2

    clock.run(main)


def test_a_key_that_becomes_ready_while_its_slot_is_being_cancelled_is_handled(clock: Clock) -> None:
    tasks: list[asyncio.Task[Any] | None] = []

    async def main() -> None:
        worker = with_slots(1, noted(tasks))
        await lists(worker.router.primary[0], *named(1))
        async with at_work(worker):
            await asyncio.sleep(1)
            (slot,) = tasks
            assert slot is not None
            slot.cancel()
            queue(worker, W1)
            await asyncio.sleep(1)
            assert len(tasks) == 2

    clock.run(main)


def test_all_tasks_can_be_cancelled_at_once(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    """As `asyncio.run` does at its end."""

    async def main() -> None:
        worker = with_slots(2)
        await lists(worker.router.primary[0], *named(2))
        running = asyncio.create_task(worker.run())
        await asyncio.sleep(1)
        assert len(worker._slots._tasks) >= 1
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.wait(others)
        assert running.cancelled()
        assert not worker._slots._tasks

    clock.run(main)
    assert caplog.records == []


def test_a_slot_goes_on_after_an_error_that_no_handler_raised(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    class BreaksOnce(Histogram):
        broken = False

        def observe(self, seconds: float, exemplar: object = None) -> None:
            if not self.broken:
                self.broken = True
                raise ValueError

    async def main() -> int:
        worker = with_slots(1, noted([], after=5.0))
        worker.meters.seconds = BreaksOnce()
        await lists(worker.router.primary[0], *named(2))
        async with at_work(worker):
            await asyncio.sleep(10)
        return worker.handled

    assert clock.run(main) == 3, "both, and the one that asked for it once more"
    assert [record.message for record in caplog.records] == ["a worker failed: please report this"]


@pytest.mark.parametrize("defect", [RuntimeError, PanicException])
def test_a_defect_of_the_queue_ends_the_run_instead_of_a_slot(clock: Clock, defect: type[BaseException]) -> None:
    """Who started the worker is told, and starts it again."""

    def broken(*, now: float) -> Work[Key] | None:
        raise defect

    async def main() -> None:
        worker = with_slots(3)
        await lists(worker.router.primary[0], *named(3))
        worker.router.queue.take = broken  # type: ignore[method-assign]
        with pytest.raises(defect):
            await asyncio.wait_for(worker.run(), 100.0)
        assert not worker._slots._tasks

    clock.run(main)


# --- how long the loop is kept ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("slots", [1, 10])
def test_handlers_that_never_wait_give_the_loop_its_turns(clock: Clock, slots: int) -> None:
    """Regression: each of ten slots went on for its own 2 ms, so that everything else waited for 20 ms."""
    took, keys = 0.0001, 2_000

    def computes(axn: Reconcile[Any]) -> None:
        clock.now += took

    async def main() -> list[float]:
        worker = with_slots(slots, computes)
        await lists(worker.router.primary[0], *named(keys))
        turns = []
        async with at_work(worker):
            while worker.handled < keys:
                began = clock.now
                await asyncio.sleep(0)
                turns.append(clock.now - began)
        return turns

    turns = clock.run(main)
    assert max(turns) <= slots_module.TURN_SECONDS + 2 * slots * took
    # Nor is each key a turn: that would cost as much as a task.
    assert len(turns) < keys / 5


# --- who is woken -----------------------------------------------------------------------------------------------------


class Side:
    """A step that takes a second, and notes how many keys are handled side by side."""

    def __init__(self, *, again: float = 0.0) -> None:
        self.again = again
        self.now = 0
        self.most = 0

    async def __call__(self, axn: Reconcile[Any]) -> None:
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(1)
        self.now -= 1
        if self.again:
            axn.requeue_after(self.again)


def counted(worker: Worker) -> list[Key | None]:
    """What the slots get from the queue, from now on."""
    take, taken = worker.router.queue.take, []

    def counting(*, now: float) -> Work[Key] | None:
        work = take(now=now)
        taken.append(None if work is None else work.key)
        return work

    worker.router.queue.take = counting  # type: ignore[method-assign]
    return taken


def test_idle_slots_are_woken_one_at_a_time(clock: Clock) -> None:
    side = Side()

    async def main() -> None:
        worker = with_slots(5, side)
        await lists(worker.router.primary[0], *named(5))
        async with at_work(worker):
            await asyncio.sleep(5)
            assert side.most == 5
            assert (len(worker._slots._tasks), len(worker.running)) == (5, 0)
            taken = counted(worker)
            queue(worker, W1)
            await asyncio.sleep(5)
            assert taken == [W1, None]
            taken.clear()
            worker.router.queue.set_timer(W2, Reason.REQUEUE, at=clock.now + 5.0)
            queue(worker, W1)
            await asyncio.sleep(10)
            assert taken == [W1, None, W2, None], "one looks when a timer is due, too"

    clock.run(main)


def test_as_many_keys_as_there_are_slots_are_handled_side_by_side_when_that_many_are_ready(clock: Clock) -> None:
    side = Side()

    async def main() -> float:
        worker = with_slots(3, side)
        await lists(worker.router.primary[0], *named(9))
        began = clock.now
        async with at_work(worker):
            while worker.handled < 9:  # noqa: ASYNC110  a worker tells nobody
                await asyncio.sleep(0.1)
        return clock.now - began

    assert clock.run(main) == pytest.approx(3.0, abs=0.2)
    assert side.most == 3


def test_keys_whose_timers_are_due_at_once_are_handled_side_by_side(clock: Clock) -> None:
    side = Side(again=10.0)

    async def main() -> None:
        worker = with_slots(3, side)
        await lists(worker.router.primary[0], *named(3))
        async with at_work(worker):
            await asyncio.sleep(5)
            side.most = 0
            await asyncio.sleep(8)
            assert side.most == 3
            assert worker.handled == 6

    clock.run(main)


@pytest.mark.parametrize("loop", LOOPS)
def test_timers_that_are_due_while_other_slots_rest_do_not_end_the_worker(loop: str) -> None:
    """Regression: uvloop's handle of such a moment has no `when`, and the worker cancelled all of its handlers."""
    handled: list[str] = []

    async def asks_again(axn: Reconcile[Any]) -> None:
        handled.append(axn.key.name)
        await asyncio.sleep(0.001)
        axn.requeue_after(0.002 + 0.0001 * len(handled) % 0.002)

    async def main() -> None:
        worker = with_slots(10, asks_again)
        await lists(worker.router.primary[0], *named(20))
        async with at_work(worker):
            await until(lambda: len(handled) > 1_000)

    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        runner.run(main())


@pytest.mark.parametrize("shown", [True, False], ids=["when they are shown", "when the time is over"])
def test_keys_that_waited_for_their_own_writes_are_handled_side_by_side(clock: Clock, shown: bool) -> None:
    side = Side()

    async def main() -> None:
        worker = with_slots(3, side)
        router, stream = worker.router, worker.router.primary[0]
        keys = [Key("default", f"w{number}") for number in (1, 2, 3)]
        await lists(stream, *named(3))
        async with at_work(worker):
            await asyncio.sleep(5)
            side.most = 0
            for key in keys:
                router.own_writes.begin_write(owner=key)
                router.own_writes.end_write(WIDGET, key, "20", owner=key)
            queue(worker, *keys)
            await asyncio.sleep(1)
            assert (side.most, router.queue.statistics(now=clock.now).parked) == (0, 3)
            if shown:
                await stream._step(watch.Line(bookmark(20)))
            await asyncio.sleep(1.5 if shown else 6.5)
            assert (side.most, worker.handled) == (3, 6)
            assert router.own_writes.missed == (0 if shown else 3)

    clock.run(main)


def test_ten_thousand_keys_make_no_more_tasks_than_there_are_slots(clock: Clock) -> None:
    made: list[asyncio.Task[Any]] = []

    async def yields(axn: Reconcile[Any]) -> None:
        await asyncio.sleep(0)

    async def main() -> int:
        def counting(loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> asyncio.Task[Any]:
            made.append(asyncio.Task(coroutine, loop=loop, **options))
            return made[-1]

        worker = with_slots(10, yields)
        await lists(worker.router.primary[0], *named(10_000))
        asyncio.get_running_loop().set_task_factory(counting)
        async with at_work(worker):
            while worker.handled < 10_000:  # noqa: ASYNC110  a worker tells nobody
                await asyncio.sleep(0.01)
        return len([task for task in made if task.get_name() == worker.name])

    assert clock.run(main) == 10


# --- the end of a term, and the next one ------------------------------------------------------------------------------


def timers() -> list[asyncio.TimerHandle]:
    """The timers of the loop."""
    scheduled: Iterable[asyncio.TimerHandle] = asyncio.get_running_loop()._scheduled  # type: ignore[attr-defined]
    return [timer for timer in scheduled if not timer.cancelled()]


async def stopped(worker: Worker, running: asyncio.Task[None]) -> None:
    worker.stop()
    await running


async def cancelled(worker: Worker, running: asyncio.Task[None]) -> None:
    running.cancel()
    await asyncio.wait({running})


@pytest.mark.parametrize("end", [stopped, cancelled])
def test_no_timer_and_no_task_is_left_after_the_end(clock: Clock, end: Callable[..., Any]) -> None:
    """One key waits for its timer, one is being handled, one came too late."""

    async def handle(axn: Reconcile[Any]) -> None:
        if axn.key == W1:
            axn.requeue_after(3600.0)
        else:
            await asyncio.sleep(10)

    async def main() -> None:
        worker = with_slots(3, handle)
        await lists(worker.router.primary[0], *named(2))
        running = asyncio.create_task(worker.run())
        await asyncio.sleep(1)
        assert (len(worker._slots._tasks), len(worker.running)) == (2, 1)
        await end(worker, running)
        queue(worker, Key("default", "w3"))
        await asyncio.sleep(0)

        assert asyncio.all_tasks() == {asyncio.current_task()}
        assert timers() == []
        assert not worker._slots._tasks
        assert not worker.running

    clock.run(main)


@pytest.mark.parametrize("keys", [1, 2])
@pytest.mark.parametrize("end", ["stop", "cancel"])
def test_a_slot_that_gives_the_loop_a_turn_when_the_term_ends_takes_no_further_key(
    clock: Clock, end: str, keys: int
) -> None:
    """Regression: with another key it took that one, and without one it waited for ever, and the end for it."""
    handled: list[str] = []

    async def main() -> None:
        def ends(axn: Reconcile[Any]) -> None:
            handled.append(axn.key.name)
            clock.now += 1.0
            if end == "stop":
                asyncio.get_running_loop().call_soon(worker.stop)
            else:
                running.cancel()  # a task hears of that a turn later

        worker = with_slots(1, ends)
        await lists(worker.router.primary[0], *named(keys))
        running = asyncio.create_task(worker.run())
        await asyncio.wait({running}, timeout=100.0)
        assert running.done()

    clock.run(main)
    assert handled == ["w1"]


def test_a_second_term_waits_for_the_streams_although_the_first_one_ended_before(clock: Clock) -> None:
    """Regression: the first term's wait was cancelled, which counted as its end, and keys were given out."""
    handled: list[str] = []

    def notes(axn: Reconcile[Any]) -> None:
        handled.append(axn.key.name)

    async def main() -> None:
        config_map = Owned("v1", "ConfigMap")
        children = Stream(NO_CLIENT, config_map, namespace=None, options=watch.WatchOptions())
        worker = with_slots(2, notes, owned={config_map: [children]})
        running = asyncio.create_task(worker.run())
        await asyncio.sleep(1)
        await stopped(worker, running)
        async with at_work(worker):
            await asyncio.sleep(1)
            await lists(worker.router.primary[0], thing("w1"), thing("w2"))
            await asyncio.sleep(1)
            assert handled == []
            await lists(children)
            await asyncio.sleep(1)
            assert sorted(handled) == ["w1", "w2"]

    clock.run(main)


def test_after_a_term_that_ended_before_the_first_list_a_second_term_has_no_more_slots_than_it_may(
    clock: Clock,
) -> None:
    """A wait for the streams that is left of the first term would begin the second one twice."""
    running: set[Key] = set()
    at_a_time: list[int] = []

    async def counts(axn: Reconcile[Any]) -> None:
        running.add(axn.key)
        at_a_time.append(len(running))
        await asyncio.sleep(1)
        running.remove(axn.key)

    async def main() -> None:
        worker = with_slots(1, counts)
        async with at_work(worker):
            await asyncio.sleep(1)
        async with at_work(worker):
            await asyncio.sleep(1)
            await lists(worker.router.primary[0], *named(4))
            await asyncio.sleep(10)

    clock.run(main)
    assert at_a_time == [1] * 4


def test_a_handler_that_does_not_end_is_cancelled_when_the_shutdown_timeout_is_over(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    class Patient(Quiet):
        shutdown_timeout = 20.0

    async def hangs(axn: Reconcile[Any]) -> None:
        await asyncio.Event().wait()

    async def main() -> float:
        worker = worker_of(hangs, controller=Patient())
        await lists(worker.router.primary[0], *named(1))
        running = asyncio.create_task(worker.run())
        await asyncio.sleep(1)
        began = clock.now
        async with asyncio.timeout(100):
            await stopped(worker, running)
        return clock.now - began

    assert clock.run(main) == pytest.approx(20.0)
    assert "cancelled running handlers: grace period exceeded" in caplog.text


def test_a_second_term_handles_what_only_waits_for_its_backoff(clock: Clock) -> None:
    """Regression: no slot began to wait, as nothing was ready; the deletion waited for another object's change."""
    actions: list[Action] = []

    async def hangs_once(axn: Reconcile[Any]) -> None:
        actions.append(axn.action)
        if len(actions) == 2:
            await asyncio.Event().wait()

    async def main() -> None:
        worker = with_slots(1, hangs_once)
        stream = worker.router.primary[0]
        await lists(stream, thing("w1"))
        async with at_work(worker):
            await asyncio.sleep(1)
            await says(stream, "DELETED", thing("w1", version=11))
            await asyncio.sleep(1)
        assert actions == [Action.ADD, Action.DELETE]
        async with at_work(worker):
            await asyncio.sleep(1)

    clock.run(main)
    assert actions == [Action.ADD, Action.DELETE, Action.DELETE]
