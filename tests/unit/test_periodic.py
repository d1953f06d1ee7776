"""Periodic tasks: when they run, what their results mean, and how they come and go. Time is virtual but for threads."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bonny import telemetry
from bonny.client.api import Client
from bonny.client.clock import pause
from bonny.client.errors import NotLeading
from bonny.errors import OptionError
from bonny.run.supervisor import ended
from bonny.servers.periodic import REMEMBERED_HALTS, Next, PeriodicTask, PeriodicTasks, Stop, TaskRun
from bonny.servers.ticks import next_tick
from bonny_dev.sandbox.guard import Guard
from tests.support import ticking
from tests.support.heard import Heard, heard
from tests.support.virtual import Clock
from tests.support.waiting import until

NO_CLIENT = cast("Client", None)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


@pytest.fixture
def told() -> Iterator[Heard]:
    with heard(*(name for name in telemetry.EVENTS if name.startswith("bonny.task."))) as listener:
        yield listener


class Diary:
    """A handler that notes when it ran, and does what it is told."""

    def __init__(self, clock: Clock, *, takes: float = 0.0, result: object = None) -> None:
        self.times: list[float] = []
        self.states: list[Any] = []
        self._began = clock.now
        self._clock = clock
        self._takes = takes
        self._result = result

    async def run(self, run: TaskRun, *arguments: Any) -> Any:
        self.times.append(round(self._clock.now - self._began, 6))
        self.states.append(run.state)
        await asyncio.sleep(self._takes)
        if isinstance(self._result, Exception):
            raise self._result
        return self._result(run, *arguments) if callable(self._result) else self._result


def for_seconds(clock: Clock, seconds: float, *tasks: PeriodicTask, **more: Any) -> PeriodicTasks:
    """Let the tasks run for so many virtual seconds, then cancel them."""

    async def main() -> PeriodicTasks:
        made = PeriodicTasks(NO_CLIENT, tasks)
        made.leading = more.get("leading", True)
        running = asyncio.create_task(made.run())
        await asyncio.sleep(seconds)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        return made

    return clock.run(main)


# --- when they run ----------------------------------------------------------------------------------------------------


def test_a_task_runs_after_one_interval_and_then_at_each(clock: Clock) -> None:
    diary = Diary(clock)
    for_seconds(clock, 16, PeriodicTask("t", diary.run))
    assert diary.times == [5, 10, 15]


def test_the_interval_does_not_drift_however_long_the_handler_takes(clock: Clock) -> None:
    diary = Diary(clock, takes=0.037)
    for_seconds(clock, 100.05, PeriodicTask("t", diary.run, interval=0.1))
    assert diary.times == [pytest.approx(0.1 * number) for number in range(1, 1001)]


def test_ticks_that_pass_while_a_task_runs_are_left_out_and_the_others_stay_on_time(clock: Clock) -> None:
    diary = Diary(clock, takes=2.5)
    for_seconds(clock, 10.5, PeriodicTask("t", diary.run, interval=1.0))
    assert diary.times == [1, 4, 7, 10]


def test_jitter_makes_each_run_late_by_a_fraction_of_the_interval_and_never_adds_up(clock: Clock) -> None:
    diary = Diary(clock)
    for_seconds(clock, 1001, PeriodicTask("t", diary.run, interval=2.0, jitter=0.25))
    late = [at - 2.0 * number for number, at in enumerate(diary.times, start=1)]
    assert len(late) == 500
    assert 0 <= min(late) < 0.1
    assert 0.4 < max(late) <= 0.5


def test_after_a_standstill_over_three_intervals_it_runs_once_and_then_on_time(clock: Clock) -> None:
    diary = Diary(clock)

    async def main() -> None:
        tasks = PeriodicTasks(NO_CLIENT, [PeriodicTask("t", diary.run, interval=2.0)])
        running = asyncio.create_task(tasks.run())
        await asyncio.sleep(4.5)
        clock.now += 7.0  # nobody runs meanwhile, as after SIGSTOP
        await asyncio.sleep(5.0)
        running.cancel()

    clock.run(main)
    assert diary.times == [2, 4, 11.5, 12, 14, 16]


def test_tasks_do_not_wait_for_each_other(clock: Clock) -> None:
    slow, quick = Diary(clock, takes=1000.0), Diary(clock)
    for_seconds(clock, 4.5, PeriodicTask("slow", slow.run, interval=1), PeriodicTask("quick", quick.run, interval=1))
    assert (slow.times, quick.times) == ([1], [1, 2, 3, 4])


def test_a_standby_leaves_out_what_is_for_the_leader(clock: Clock) -> None:
    ours, everybodys = Diary(clock), Diary(clock)
    tasks = PeriodicTask("ours", ours.run), PeriodicTask("everybodys", everybodys.run, leader_only=False)
    for_seconds(clock, 11, *tasks, leading=False)
    assert (ours.times, everybodys.times) == ([], [5, 10])


def test_a_run_that_is_under_way_when_the_lease_is_lost_is_cancelled_and_the_next_term_runs_it_again(
    clock: Clock,
) -> None:
    ours, everybodys = Diary(clock, takes=3.0, result=Next("later")), Diary(clock, takes=3.0)

    async def main() -> tuple[bool, PeriodicTasks]:
        tasks = PeriodicTasks(
            NO_CLIENT,
            [PeriodicTask("ours", ours.run, state="first"), PeriodicTask("all", everybodys.run, leader_only=False)],
        )
        running = asyncio.create_task(tasks.run())
        await asyncio.sleep(6.0)
        tasks.leading = False
        by_themselves = not await ended(tasks.ending, seconds=0.0)
        await asyncio.sleep(5.0)
        tasks.leading = True
        await asyncio.sleep(5.0)
        running.cancel()
        return by_themselves, tasks

    by_themselves, tasks = clock.run(main)
    assert not by_themselves
    assert (ours.times, ours.states) == ([5, 15], ["first", "first"])
    assert everybodys.times == [5, 10, 15]
    assert (tasks.failed, tasks.halted) == (0, {})


@pytest.mark.parametrize("seconds", [1.0, 3.0])
def test_after_a_stop_every_run_is_waited_for_and_cancelled_when_its_time_is_over(clock: Clock, seconds: float) -> None:
    diary = Diary(clock, takes=2.0)

    async def main() -> tuple[bool, float]:
        tasks = PeriodicTasks(NO_CLIENT, [PeriodicTask("t", diary.run, leader_only=False)])
        running = asyncio.create_task(tasks.run())
        await asyncio.sleep(5.5)
        tasks.stop()
        began = clock.now
        by_themselves = not await ended(tasks.ending, seconds=seconds)
        took = clock.now - began
        await running
        return by_themselves, took

    by_themselves, took = clock.run(main)
    assert (by_themselves, took) == (seconds > 1.5, pytest.approx(min(seconds, 1.5), abs=0.01))


def test_a_run_that_will_not_be_cancelled_is_abandoned_a_second_later(clock: Clock) -> None:
    """Regression: it held up the stop until it ended by itself, or the process was killed."""
    ends = clock.now + 60.0

    async def stubborn(run: TaskRun) -> None:
        while clock.now < ends:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(ends - clock.now)

    async def main() -> tuple[float, bool, float]:
        tasks = PeriodicTasks(NO_CLIENT, [PeriodicTask("t", stubborn)])
        running = asyncio.create_task(tasks.run())
        await asyncio.sleep(5.5)
        tasks.stop()
        began = clock.now
        late = await ended(tasks.ending, seconds=2.0)
        drained, abandoned = clock.now - began, any(not run.done() for run in late)
        running.cancel()
        await asyncio.wait({running})
        took = clock.now - began
        await asyncio.sleep(60.0)
        assert all(run.done() for run in late)
        return drained, abandoned, took

    assert clock.run(main) == (pytest.approx(3.0), True, pytest.approx(4.0))


def test_a_task_whose_writes_are_refused_because_the_lease_was_lost_is_not_halted(clock: Clock) -> None:
    fenced, wrong = Diary(clock, result=NotLeading("no")), Diary(clock, result=NotLeading("no"))
    tasks = for_seconds(
        clock, 16, PeriodicTask("fenced", fenced.run), PeriodicTask("wrong", wrong.run, leader_only=False)
    )
    assert fenced.times == [5, 10, 15]
    assert wrong.times == [5], "a standby never writes"
    assert set(tasks.halted) == {"wrong"}


@given(
    start=st.floats(-1e6, 1e6),
    interval=st.floats(1e-3, 1e6),
    passed=st.floats(0, 1e9),
)
def test_the_next_tick_is_later_but_not_by_more_than_an_interval(start: float, interval: float, passed: float) -> None:
    after = start + passed
    tick = next_tick(start, interval, after=after)
    assert after < tick <= after + interval * (1 + 1e-6) + abs(after) * 1e-12
    assert next_tick(start, interval, after=tick) > tick


# --- what their results mean ------------------------------------------------------------------------------------------


def test_next_gives_the_state_of_the_next_run_and_none_keeps_it(clock: Clock, told: Heard) -> None:
    def result(run: TaskRun) -> Next | None:
        return Next(run.state + 1) if run.state < 2 else None

    diary = Diary(clock, result=result)
    for_seconds(clock, 21, PeriodicTask("t", diary.run, state=0))

    assert diary.states == [0, 1, 2, 2]
    assert told.names == ["bonny.task.registered", "bonny.task.initialized", *4 * ["bonny.task.succeeded"]]
    assert all(event.metadata == {"task": "t"} for event in told.events)
    assert all(event.measurements["duration"] >= 0 for event in told.of("bonny.task.succeeded"))


def test_stop_ends_the_task_with_its_reason_and_frees_its_id(
    clock: Clock, told: Heard, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    diary = Diary(clock, result=Stop("nothing left"))

    tasks = for_seconds(clock, 21, PeriodicTask("t", diary.run))

    assert diary.times == [5]
    assert told.events[-1].name == "bonny.task.stopped"
    assert told.events[-1].metadata == {"task": "t", "reason": "nothing left"}
    assert [vars(record)["reason"] for record in caplog.records] == ["nothing left"]
    assert tasks.register(PeriodicTask("t", diary.run))
    assert not tasks.halted


@pytest.mark.parametrize("result", [True, "ok", 0, Next, {"ok": 1}, [None]])
def test_any_other_result_halts_the_task(clock: Clock, told: Heard, result: object) -> None:
    diary, other = Diary(clock, result=lambda run: result), Diary(clock)

    tasks = for_seconds(clock, 21, PeriodicTask("t", diary.run), PeriodicTask("other", other.run))

    assert (len(diary.times), len(other.times)) == (1, 4)
    assert tasks.failed == 1
    assert tasks.halted["t"].endswith(f"returned {type(result).__name__}: return None, Next(state) or Stop(reason)")
    (failed,) = told.of("bonny.task.failed")
    assert failed.metadata["task"] == "t"
    assert str(failed.metadata["error"]) == tasks.halted["t"]


def test_an_error_halts_the_task_is_counted_logged_and_shown_until_it_is_registered_anew(
    clock: Clock, told: Heard, caplog: pytest.LogCaptureFixture
) -> None:
    diary, other = Diary(clock, result=ZeroDivisionError("by nothing")), Diary(clock)

    tasks = for_seconds(clock, 21, PeriodicTask("t", diary.run), PeriodicTask("other", other.run))

    assert (len(diary.times), len(other.times)) == (1, 4)
    assert (tasks.failed, tasks.halted) == (1, {"t": "by nothing"})
    (record,) = caplog.records
    assert (record.getMessage(), record.levelname, vars(record)["task"]) == ("task halted", "ERROR", "t")
    assert "ZeroDivisionError" in caplog.text
    (failed,) = told.of("bonny.task.failed")
    assert isinstance(failed.metadata["error"], ZeroDivisionError)
    assert tasks.register(PeriodicTask("t", diary.run))
    assert tasks.halted == {}


@pytest.mark.parametrize("leaves", [SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError()])
@pytest.mark.parametrize("on", ["the loop", "a thread"])
async def test_what_would_end_the_process_halts_the_task_alone(leaves: BaseException, on: str) -> None:
    def in_a_thread(run: TaskRun) -> None:
        raise leaves

    async def on_the_loop(run: TaskRun) -> None:
        raise leaves

    handler = on_the_loop if on == "the loop" else in_a_thread
    tasks = PeriodicTasks(NO_CLIENT, [PeriodicTask("t", handler, interval=0.01)])
    running = asyncio.create_task(tasks.run())
    await until(lambda: tasks.halted)
    assert {SystemExit: "sys.exit", KeyboardInterrupt: "KeyboardInterrupt"}.get(type(leaves), "ancel") in tasks.halted[
        "t"
    ]
    assert not running.done()
    tasks.stop()
    await running


def test_only_the_last_halted_tasks_are_remembered(clock: Clock) -> None:
    diary = Diary(clock, result=lambda run: "wrong")
    many = REMEMBERED_HALTS + 5
    made = [PeriodicTask(f"t{number}", diary.run, interval=1 + number) for number in range(many)]
    tasks = for_seconds(clock, many + 1, *made)
    assert tasks.failed == many
    assert list(tasks.halted) == [f"t{number}" for number in range(5, many)]


# --- how they come and go ---------------------------------------------------------------------------------------------


def test_a_handler_registers_a_task_with_arguments_and_ends_itself(clock: Clock, told: Heard) -> None:
    child = Diary(clock, result=lambda run, *arguments: Stop(str(arguments)))
    answers: list[bool] = []

    def result(run: TaskRun) -> None:
        task = PeriodicTask("child", child.run, arguments=({"name": "w"}, 2), interval=1.0)
        answers.extend((run.tasks.register(task), run.tasks.unregister(run.id)))

    parent = Diary(clock, result=result)
    tasks = for_seconds(clock, 21, PeriodicTask("parent", parent.run))

    assert answers == [True, True]
    assert tasks.failed == 0
    assert (parent.times, child.times) == ([5], [6])
    assert told.of("bonny.task.stopped")[0].metadata == {"task": "child", "reason": "({'name': 'w'}, 2)"}
    assert told.of("bonny.task.unregistered")[0].metadata == {"task": "parent"}


def test_an_id_that_is_taken_changes_nothing(clock: Clock, told: Heard) -> None:
    first, second = Diary(clock), Diary(clock)

    async def main() -> None:
        tasks = PeriodicTasks(NO_CLIENT, [PeriodicTask("t", first.run)])
        running = asyncio.create_task(tasks.run())
        for _ in range(20):
            await asyncio.sleep(1)
            assert not tasks.register(PeriodicTask("t", second.run, interval=1))
        running.cancel()

    clock.run(main)
    assert (first.times, second.times) == ([5, 10, 15, 20], [])
    assert len(told.of("bonny.task.registered")) == 1


def test_two_declared_tasks_of_one_id_are_refused(clock: Clock) -> None:
    diary = Diary(clock)
    with pytest.raises(OptionError, match="two tasks are called t: rename one"):
        PeriodicTasks(NO_CLIENT, [PeriodicTask("t", diary.run), PeriodicTask("t", diary.run)])


def test_a_run_that_is_under_way_when_its_task_is_unregistered_goes_on_to_its_end(clock: Clock, told: Heard) -> None:
    diary = Diary(clock, takes=3.0)

    async def main() -> None:
        tasks = PeriodicTasks(NO_CLIENT, [PeriodicTask("t", diary.run)])
        running = asyncio.create_task(tasks.run())
        await asyncio.sleep(6)
        assert tasks.unregister("t")
        assert not tasks.unregister("t")
        await asyncio.sleep(20)
        running.cancel()

    clock.run(main)
    assert diary.times == [5]
    assert told.names[-2:] == ["bonny.task.unregistered", "bonny.task.succeeded"]


def test_a_task_that_is_unregistered_and_registered_again_begins_anew(clock: Clock) -> None:
    first, second = Diary(clock), Diary(clock)

    async def main() -> None:
        tasks = PeriodicTasks(NO_CLIENT, [PeriodicTask("t", first.run)])
        running = asyncio.create_task(tasks.run())
        await asyncio.sleep(7)
        assert tasks.unregister("t")
        assert tasks.register(PeriodicTask("t", second.run, interval=2))
        await asyncio.sleep(5)
        running.cancel()

    clock.run(main)
    assert (first.times, second.times) == ([5], [9, 11])


@pytest.mark.parametrize("again", [False, True])
def test_a_run_that_fails_after_its_task_was_unregistered_halts_no_other_of_its_id(clock: Clock, again: bool) -> None:
    """Regression: /readyz called it halted for ever, even while a new one ran."""
    first, second = Diary(clock, takes=3.0, result=ValueError("late")), Diary(clock)

    async def main() -> PeriodicTasks:
        tasks = PeriodicTasks(NO_CLIENT, [PeriodicTask("t", first.run)])
        running = asyncio.create_task(tasks.run())
        await asyncio.sleep(6)
        assert tasks.unregister("t")
        if again:
            assert tasks.register(PeriodicTask("t", second.run))
        await asyncio.sleep(6)
        running.cancel()
        return tasks

    tasks = clock.run(main)
    assert (tasks.failed, tasks.halted) == (1, {})
    assert second.times == ([11] if again else [])


def test_after_stop_nothing_new_runs_and_what_runs_goes_on_to_its_end(clock: Clock) -> None:
    slow, waiting = Diary(clock, takes=3.0), Diary(clock)

    async def main() -> float:
        tasks = PeriodicTasks(
            NO_CLIENT, [PeriodicTask("slow", slow.run), PeriodicTask("waiting", waiting.run, interval=7)]
        )
        running = asyncio.create_task(tasks.run())
        await asyncio.sleep(6)
        tasks.stop()
        assert tasks.register(PeriodicTask("late", waiting.run, interval=0.1))
        await running
        return clock.now - 1000

    assert clock.run(main) == pytest.approx(8.0)
    assert (slow.times, waiting.times) == ([5], [])


def test_cancelled_in_the_middle_of_a_run_it_can_be_run_again(clock: Clock) -> None:
    diary = Diary(clock, takes=3.0)

    async def main() -> None:
        tasks = PeriodicTasks(NO_CLIENT, [PeriodicTask("t", diary.run)])
        for _ in range(2):
            running = asyncio.create_task(tasks.run())
            await asyncio.sleep(6)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running

    clock.run(main)
    assert diary.times == [5, 11]


async def test_a_def_handler_runs_in_a_thread_and_may_register_and_unregister_there(told: Heard) -> None:
    threads: list[threading.Thread] = []
    answers: list[bool] = []

    def child(run: TaskRun, number: int) -> Stop:
        threads.append(threading.current_thread())
        return Stop(f"number {number}")

    def parent(run: TaskRun) -> None:
        threads.append(threading.current_thread())
        answers.append(run.tasks.register(PeriodicTask("child", child, arguments=(7,), interval=0.01)))
        answers.append(run.tasks.unregister("parent"))

    tasks = PeriodicTasks(NO_CLIENT, [PeriodicTask("parent", parent, interval=0.01)])
    running = asyncio.create_task(tasks.run())
    await until(lambda: told.of("bonny.task.stopped"))
    tasks.stop()
    await running

    assert answers == [True, True]
    assert tasks.failed == 0
    assert told.of("bonny.task.stopped")[0].metadata == {"task": "child", "reason": "number 7"}
    assert len(threads) == 2
    assert all(thread is not threading.main_thread() and thread.daemon for thread in threads)


async def test_a_def_that_returns_a_coroutine_halts_with_a_sentence() -> None:
    async def inner() -> None: ...

    tasks = PeriodicTasks(NO_CLIENT, [PeriodicTask("t", lambda run: inner(), interval=0.01)])
    running = asyncio.create_task(tasks.run())
    await until(lambda: tasks.halted)
    tasks.stop()
    await running
    assert "declare the wrapper `async def` and await" in tasks.halted["t"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"interval": 0}, "the interval of task t is 0: use more than 0 seconds"),
        ({"interval": float("inf")}, "the interval of task t is inf"),
        ({"jitter": -0.1}, "the jitter of task t is -0.1: use a fraction from 0 to 1"),
        ({"jitter": 1.5}, "the jitter of task t is 1.5"),
    ],
)
def test_impossible_options_are_refused_in_one_sentence(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        PeriodicTask("t", print, **options)


# --- a process that stands still --------------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="needs SIGSTOP")
def test_after_sigstop_over_three_intervals_it_runs_once_and_then_on_time(tmp_path: Path) -> None:
    guard = Guard(tmp_path / "guard")
    out = guard.folder / "ticks"
    paths = os.pathsep.join(str(path) for path in (ticking.ROOT / "runtime", ticking.ROOT))
    try:
        command = [sys.executable, ticking.__file__]
        process = guard.popen(command, log_file=out, env={**os.environ, "PYTHONPATH": paths, "PYTHONUNBUFFERED": "1"})

        def runs() -> list[float]:
            """When it ran, in intervals since its start."""
            return [float(line) / ticking.INTERVAL for line in out.read_text("utf-8").splitlines()]

        def until_runs(count: int) -> None:
            ends = time.monotonic() + 20
            while len(runs()) < count:
                assert time.monotonic() < ends, out.read_text("utf-8")
                time.sleep(0.01)

        until_runs(2)
        os.kill(process.pid, signal.SIGSTOP)
        frozen = time.monotonic()
        before = len(runs())
        while time.monotonic() < frozen + 3.5 * ticking.INTERVAL:
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGCONT)
        until_runs(before + 4)
        times = runs()
    finally:
        guard.close()

    late, *after = times[before : before + 4]
    assert late - times[before - 1] > 3
    assert int(after[0]) == int(late) + 1, "the ticks in between are gone"
    assert [int(at) for at in after] == [int(after[0]) + number for number in range(3)]
    assert all(at % 1 < 0.5 for at in after), "on time"


async def test_a_cancellation_that_comes_as_a_pause_ends_is_not_lost() -> None:
    wake = asyncio.Event()
    task = asyncio.create_task(pause(60.0, wake=wake))
    await asyncio.sleep(0)

    wake.set()
    task.cancel()

    await asyncio.wait({task}, timeout=10.0)
    assert task.cancelled()
