"""Costs of a call to a handler, of handing a key to a task, and of a step; without a server.

    python -m bench.calls

Each row is CPU time of the whole process for one call, in microseconds, of the fastest of several rounds, on both event
loops. A row is there for each place in the runtime that does more than the shortest code would, to save time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

import uvloop

from bonny.calling import call
from bonny.core.queue import Priority, Queue, Reason, Work
from bonny.engine.reconcile import Reconcile
from bonny.engine.slots import Slots
from bonny.pipeline import run_step
from bonny.resource import Key
from tests.support.tokens import token_of

ROUNDS: Final = 7
CALLS: Final = 20_000
KEYS: Final = 20_000
SECONDS: Final = 30.0
LOOPS: Final[dict[str, Callable[[], asyncio.AbstractEventLoop]]] = {
    "asyncio": asyncio.new_event_loop,
    "uvloop": uvloop.new_event_loop,
}


async def never_waits() -> None:
    """A handler that reads and registers only."""


async def waits_once() -> None:
    """A handler that gives the event loop a turn."""
    await asyncio.sleep(0)


async def idle_step(_: Reconcile[Any]) -> None:
    """A step that finds nothing to do."""


async def in_a_timeout(handler: Callable[[], Awaitable[None]]) -> None:
    """The shortest code with a timeout."""
    async with asyncio.timeout(SECONDS):
        await handler()


async def microseconds(once: Callable[[], Awaitable[object]], *, times: int, each: int = 1) -> float:
    """CPU time of `once`, which does its work `each` times: the fastest of `ROUNDS` rounds of `times`."""
    rounds = []
    for _ in range(ROUNDS):
        began = time.process_time()
        for _ in range(times):
            await once()
        rounds.append((time.process_time() - began) / times / each * 1e6)
    return min(rounds)


def filled() -> Queue[Key]:
    queue: Queue[Key] = Queue()
    for number in range(KEYS):
        queue.add(Key("default", f"k{number}"), Reason.CHANGED, now=0.0, priority=Priority.LIVE)
    return queue


async def by_slots() -> None:
    """Each key in one of ten tasks that stay."""
    queue, left, ended = filled(), KEYS, asyncio.Event()

    async def handle(work: Work[Key]) -> None:
        nonlocal left
        queue.done(work.key, now=0.0)
        left -= 1
        if not left:
            ended.set()

    slots = Slots(queue, handle, count=10, name="bench")
    slots.start()
    await ended.wait()
    await slots.cancel()


async def by_tasks() -> None:
    """Each key in a task of its own."""
    queue = filled()

    async def handle(work: Work[Key]) -> None:
        queue.done(work.key, now=0.0)

    while (work := queue.take(now=0.0)) is not None:
        await asyncio.create_task(handle(work))


async def rows() -> list[tuple[str, float]]:
    """All rows for the running event loop."""
    found = []
    for name, handler in (("never waits", never_waits), ("waits once", waits_once)):
        ways: dict[str, Callable[[], Awaitable[object]]] = {
            "awaited, without a timeout": handler,
            "in asyncio.timeout": lambda handler=handler: in_a_timeout(handler),
            "by bonny.calling": lambda handler=handler: call(handler, seconds=SECONDS),
        }
        found += [(f"a handler that {name}: {way}", await microseconds(do, times=CALLS)) for way, do in ways.items()]
    found.append(("a key, in slots", await microseconds(by_slots, times=1, each=KEYS)))
    found.append(("a key, in a task of its own", await microseconds(by_tasks, times=1, each=KEYS)))
    token = token_of({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "w", "uid": "u"}})
    one_step = await microseconds(lambda: run_step(token, idle_step), times=CALLS)
    found.append(("a step with nothing to do", one_step))
    return found


def main() -> None:
    """Print a table: a line a row, a column an event loop."""
    columns: dict[str, dict[str, float]] = {}
    for loop, factory in LOOPS.items():
        with asyncio.Runner(loop_factory=factory) as runner:
            columns[loop] = dict(runner.run(rows()))
    print(f"{'us of CPU each':54}" + "".join(f"{loop:>10}" for loop in columns))
    for row in columns["asyncio"]:
        print(f"{row:54}" + "".join(f"{column[row]:10.2f}" for column in columns.values()))


if __name__ == "__main__":
    main()
