"""Calling user code: `async def` on the loop, `def` in a thread, for a bounded time; whatever it does, others go on."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import gc
import logging
import threading
import time
import weakref
from collections.abc import Iterator
from functools import partial
from typing import Any, cast

import pytest

from bonny.calling import LONGEST_TEXT, HandlerTimeout, call, report, text_of
from bonny.errors import BonnyError, Terminal
from tests.support.loops import LOOPS
from tests.support.raising import Frozen, Hostile, PanicException, Unprintable, UnprintablePanic
from tests.support.virtual import Clock
from tests.support.waiting import until

WHO: contextvars.ContextVar[str] = contextvars.ContextVar("WHO")


@pytest.fixture
def _no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


async def test_arguments_and_context_reach_either_kind_of_handler_and_its_result_comes_back() -> None:
    WHO.set("the caller")

    async def on_the_loop(*arguments: int) -> tuple[Any, ...]:
        return (*arguments, WHO.get(), threading.current_thread() is threading.main_thread())

    def in_a_thread(*arguments: int) -> tuple[Any, ...]:
        return (*arguments, WHO.get(), threading.current_thread() is threading.main_thread())

    assert await call(on_the_loop, 1, 2) == (1, 2, "the caller", True)
    assert await call(partial(on_the_loop, 1), 2) == (1, 2, "the caller", True)
    assert await call(in_a_thread, 1, 2) == (1, 2, "the caller", False)


async def test_a_handler_on_the_loop_is_cancelled_when_its_time_is_over() -> None:
    ended = []

    async def hangs() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    with pytest.raises(HandlerTimeout, match=r"within 0\.01 s") as caught:
        await call(hangs, seconds=0.01)
    assert ended == ["cancelled"]
    assert caught.value.thread is None


def test_what_a_handler_does_before_its_first_wait_counts_towards_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)

    async def handler() -> None:
        clock.now += 20.0
        await asyncio.sleep(60.0)

    async def main() -> float:
        began = clock.now
        with pytest.raises(HandlerTimeout):
            await call(handler, seconds=30.0)
        return clock.now - began

    assert clock.run(main) == pytest.approx(30.0)


@pytest.mark.parametrize("waits", [0, 1, 3])
async def test_a_handler_is_the_same_whether_and_how_often_it_waits(waits: int) -> None:
    """Results, errors and cancellations pass both ways."""
    caught: list[str] = []

    async def handler() -> int:
        for _ in range(waits):
            await asyncio.sleep(0)
        failing = asyncio.get_running_loop().create_future()
        failing.set_exception(ValueError("of what it waits for"))
        try:
            await failing
        except ValueError as error:
            caught.append(str(error))
        return await asyncio.wait_for(asyncio.sleep(0, result=waits), timeout=5.0)

    assert await call(handler, seconds=30.0) == waits
    assert caught == ["of what it waits for"]


@pytest.mark.parametrize("loop", LOOPS)
def test_a_handler_that_ended_after_its_time_does_not_take_the_deadlines_of_others_with_it(loop: str) -> None:
    """Regression: on uvloop its timeout was given to a limit that had ended, and the deadlines behind it were lost."""

    async def ignores_its_cancellation() -> str:
        await asyncio.sleep(0)
        cast("asyncio.Task[object]", asyncio.current_task()).cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(60)
        time.sleep(0.05)  # noqa: ASYNC251  it keeps the loop until its time is over
        return "done"

    async def main() -> list[object]:
        calls = call(ignores_its_cancellation, seconds=0.02), call(asyncio.Event().wait, seconds=0.03)
        return await asyncio.wait_for(asyncio.gather(*calls, return_exceptions=True), 5.0)

    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        result, error = runner.run(main())
    assert result == "done"
    assert isinstance(error, HandlerTimeout)


async def test_a_thread_goes_on_when_its_time_is_over_and_is_in_the_error() -> None:
    release = threading.Event()

    def hangs() -> None:
        release.wait(20)
        raise ValueError("nobody waits for this any more")

    with pytest.raises(HandlerTimeout) as caught:
        await call(hangs, seconds=0.01)
    thread = caught.value.thread
    assert thread is not None
    assert not thread.done()
    release.set()
    await until(thread.done)


async def test_a_timeout_of_the_handlers_own_is_an_error_like_any_other() -> None:
    async def raises() -> None:
        raise TimeoutError("mine")

    with pytest.raises(TimeoutError, match="mine") as caught:
        await call(raises, seconds=5)
    assert not isinstance(caught.value, HandlerTimeout)


async def test_who_is_cancelled_from_outside_stays_cancelled() -> None:
    async def hangs() -> None:
        await asyncio.sleep(60)

    release = threading.Event()
    for handler in (hangs, lambda: release.wait(20)):
        task = asyncio.create_task(call(handler))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    release.set()


@pytest.mark.parametrize("on", ["the loop", "a thread"])
@pytest.mark.usefixtures("_no_collector")
async def test_what_a_handler_held_when_it_raised_is_freed_with_its_error(on: str) -> None:
    """An error that is part of a cycle keeps whole objects in memory until the collector comes."""

    class Large:
        pass

    def raises() -> None:
        large = Large()
        held.append(weakref.ref(large))
        raise ValueError("no")

    async def raises_on_the_loop() -> None:
        raises()

    held: list[weakref.ref[Large]] = []
    with pytest.raises(ValueError, match="no") as caught:
        await call(raises_on_the_loop if on == "the loop" else raises)
    del caught
    await until(lambda: held[0]() is None)


@pytest.mark.parametrize(
    ("error", "traceback"), [(Terminal("never"), False), (BonnyError("ours"), False), (KeyError("theirs"), True)]
)
def test_only_errors_of_others_are_logged_with_a_traceback(
    caplog: pytest.LogCaptureFixture, error: Exception, traceback: bool
) -> None:
    report(logging.getLogger("bonny.test").warning, "it failed", error, {"object": "default/w1"})
    (record,) = caplog.records
    assert (record.getMessage(), record.levelname) == ("it failed", "WARNING")
    assert (vars(record)["object"], vars(record)["error"]) == ("default/w1", str(error))
    assert bool(record.exc_info) is traceback


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("no"), "no"),
        (ValueError(), "ValueError"),
        (Unprintable(), "Unprintable"),
        (Hostile(), "Hostile"),
        (UnprintablePanic(), "UnprintablePanic"),
        (PanicException("no"), "no"),
        (Frozen(), "Frozen"),
    ],
)
def test_every_error_has_a_text(error: BaseException, text: str, caplog: pytest.LogCaptureFixture) -> None:
    """Regression: a run of a Reconciler ended with all its objects when the text of one error raised."""
    assert text_of(error) == text_of(error, notes="") == text
    report(logging.getLogger("bonny.test").warning, "it failed", error, {})
    assert vars(caplog.records[0])["error"] == text


def test_a_long_text_is_cut_with_its_notes() -> None:
    """Regression: an error of 5 MB made log lines of 10 MB, at each try."""
    error = ValueError("x" * LONGEST_TEXT)
    assert text_of(error) == "x" * LONGEST_TEXT
    error.add_note("y")
    assert text_of(error, notes="") == "x" * LONGEST_TEXT + "..."
    assert len(text_of(ValueError("x" * 5_000_000))) == LONGEST_TEXT + 3


def test_notes_are_chosen_by_how_they_begin_and_broken_ones_left_out() -> None:
    error = ValueError("first")
    error.add_note("also: second")
    error.add_note("in step third")
    assert text_of(error) == "first"
    assert text_of(error, notes="also: ") == "first; also: second"
    assert text_of(error, notes="") == "first; also: second; in step third"
    error.__notes__ = cast("Any", 5)
    assert text_of(error, notes="") == "first"
