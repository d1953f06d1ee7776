"""Loop monitor: which code blocks the event loop is logged."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import os
import pdb  # noqa: T100  what the test is about
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from bonny.run import event_loop
from bonny.run.event_loop import LoopMonitor
from bonny.telemetry.logging import about, configure
from tests.support.loops import LOOPS
from tests.support.processes import RUNTIME

PATIENCE = 30.0
RUNNER = asyncio.runners.__file__
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(RUNTIME)}


@pytest.fixture
def lines() -> Iterator[Callable[[], list[dict[str, Any]]]]:
    """The log as machines read it."""
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    stream = io.StringIO()
    configure(stream=stream)
    yield lambda: [json.loads(line) for line in stream.getvalue().splitlines()]
    root.handlers[:], root.level = before, level


@pytest.fixture
def monitor(monkeypatch: pytest.MonkeyPatch) -> LoopMonitor:
    monkeypatch.setattr(event_loop, "BLOCKED_SECONDS", 0.3)
    monkeypatch.setattr(event_loop, "LOOK_SECONDS", 0.05)
    return LoopMonitor()


def until(holds: Callable[[], object]) -> None:
    """Block the thread until it holds."""
    ends = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < ends
        time.sleep(0.01)


def on_uvloop() -> bool:
    """Whether the loop shows what it runs only by frames, with those that started it."""
    return not isinstance(asyncio.get_running_loop(), asyncio.BaseEventLoop)


@pytest.mark.both_loops
async def test_code_that_blocks_the_loop_is_logged_once_per_blockage_with_its_object_and_its_stack(
    monitor: LoopMonitor, lines: Callable[[], list[dict[str, Any]]]
) -> None:
    async def slow_handler(secret: str) -> None:
        about(controller="Widgets", object="default/w1")
        before = len(lines())
        until(lambda: len(lines()) > before)
        time.sleep(0.3)  # noqa: ASYNC251  as long again: a second line would be there by then
        assert secret

    with monitor:
        for _ in range(2):
            await asyncio.create_task(slow_handler("hunter2"))
            async with asyncio.timeout(PATIENCE):
                while (beats := monitor.blocked_seconds) < 0.3:  # noqa: ASYNC110  a thread counts
                    await asyncio.sleep(0.01)
            await asyncio.sleep(0.2)  # some looks that find the loop free

    told = lines()
    assert [line["message"] for line in told] == ["the event loop is blocked"] * 2
    assert {(line["controller"], line["object"]) for line in told} == {("Widgets", "default/w1")}
    assert len({line["reconcile_id"] for line in told}) == 2
    for line in told:
        assert line["seconds"] >= 0.3
        stack = line["stack"].partition(" < " + RUNNER)[0] if on_uvloop() else line["stack"]
        assert re.search(rf"{re.escape(__file__)}:\d+ \S*slow_handler$", stack), line["stack"]
    assert "hunter2" not in str(told)
    assert beats >= 0.6


class Person(io.StringIO):
    """At the prompt of a debugger: thinks for many looks of the monitor, and lets the handler go on."""

    def readline(self, _: int | None = -1) -> str:
        time.sleep(1.0)  # nothing is to happen meanwhile; 0.3 s are too long without a debugger
        return "continue\n"


@pytest.mark.both_loops
async def test_a_person_at_the_prompt_of_a_debugger_is_not_disturbed(
    monitor: LoopMonitor, lines: Callable[[], list[dict[str, Any]]]
) -> None:
    at_prompt: list[dict[str, Any]] = []

    async def handler() -> None:
        pdb.Pdb(stdin=Person(), stdout=io.StringIO(), nosigint=True, readrc=False).set_trace()
        at_prompt.extend(lines())
        until(lines)

    with monitor:
        await asyncio.create_task(handler())

    (line,) = lines()
    assert at_prompt == []
    assert line["seconds"] < 1.0, "the time at the prompt does not count"


@pytest.mark.both_loops
async def test_a_callback_that_is_written_in_c_is_named(
    monitor: LoopMonitor, lines: Callable[[], list[dict[str, Any]]]
) -> None:
    lock = threading.Lock()
    lock.acquire()
    done = asyncio.Event()

    async def handler() -> None:
        about(controller="Widgets", object="default/w1")
        asyncio.get_running_loop().call_soon(lock.acquire, True, PATIENCE)
        asyncio.get_running_loop().call_soon(done.set)

    def release() -> None:
        until(lines)
        lock.release()

    helper = threading.Thread(target=release)
    helper.start()
    with monitor:
        await asyncio.create_task(handler())
        await done.wait()
    helper.join()
    (line,) = lines()
    if on_uvloop():  # it shows no callback that is written in C, and no context of a callback
        assert line["stack"]
    else:
        assert (line["object"], line["stack"]) == ("default/w1", "lock.acquire")


@pytest.mark.both_loops
async def test_code_that_holds_the_interpreters_lock_is_named_afterwards(
    monitor: LoopMonitor, lines: Callable[[], list[dict[str, Any]]]
) -> None:
    """A regular expression that backtracks for ever is the usual case. No thread runs meanwhile, this one neither.

    The machine may run the monitor's thread only when the code has ended. Then the line names nothing, so the code
    blocks again.
    """

    async def adds_up() -> None:
        about(object="default/w1")
        sum(range(50_000_000))  # more than 0.3 s of CPU time

    def named() -> list[dict[str, Any]]:
        return [line for line in lines() if "adds_up" in line["stack"]]

    blockages = 0
    with monitor:
        async with asyncio.timeout(PATIENCE):
            while not named():
                await asyncio.sleep(0.2)
                blockages += 1
                await asyncio.create_task(adds_up())
                await asyncio.sleep(0.2)
    assert len(lines()) <= blockages, "each is logged once"
    assert named()[0]["object"] == "default/w1"
    assert monitor.blocked_seconds >= event_loop.BLOCKED_SECONDS


@pytest.mark.both_loops
async def test_a_loop_that_is_busy_with_many_short_steps_is_not_blocked(
    monitor: LoopMonitor, lines: Callable[[], list[dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_loop, "BLOCKED_SECONDS", 0.8)

    async def busy() -> None:
        ends = time.monotonic() + 2.4  # three times as long as a blockage must last
        while time.monotonic() < ends:  # noqa: ASYNC110  to be busy is the point
            await asyncio.sleep(0)

    with monitor:
        await asyncio.gather(*(busy() for _ in range(10)))
    assert (lines(), monitor.blocked_seconds) == ([], 0.0)


STOPPED = """
import asyncio, sys
from bonny.run import event_loop
from bonny.run.event_loop import LoopMonitor
event_loop.BLOCKED_SECONDS, event_loop.LOOK_SECONDS = 1.0, 0.1

async def main():
    monitor = LoopMonitor()
    with monitor:
        print("ready", flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
        await asyncio.sleep(0.5)
    print(monitor.blocked_seconds)

with asyncio.Runner(loop_factory=event_loop.loop_factory(sys.argv[1])) as runner:
    runner.run(main())
"""


@pytest.mark.parametrize("loop", LOOPS)
def test_a_process_that_was_stopped_is_not_reported_as_blocked(loop: str) -> None:
    command = [sys.executable, "-c", STOPPED, loop]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGSTOP)
        os.waitpid(process.pid, os.WUNTRACED)
        time.sleep(2.0)  # twice as long as a blockage must last
        process.send_signal(signal.SIGCONT)
        said, _ = process.communicate("go on\n", timeout=PATIENCE)
    assert float(said) == 0.0
