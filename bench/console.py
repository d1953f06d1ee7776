"""Costs of the console: memory of a full history, CPU of a run that is remembered, and of the answers to the page.

    python -m bench.console

It needs no server. Each object has the runs that are kept of it, and each run two requests.
"""

from __future__ import annotations

import asyncio
import time
import tracemalloc
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, Final

import msgspec

from bonny.console import snapshot
from bonny.console.runs import OBJECTS, RUNS, History
from bonny.core.queue import Reason
from bonny.core.records import Action
from bonny.resource import Key

ROUNDS: Final = 5
CALLS: Final = 20_000
WRITES: Final = (
    "/api/v1/namespaces/default/configmaps/{}",
    "/apis/example.com/v1/namespaces/default/widgets/{}/status",
)


async def nothing() -> None:
    """A reconcile that does nothing."""


def token(name: str) -> Any:
    """As much of a token as the history reads."""
    return SimpleNamespace(
        action=Action.MODIFY, reasons=frozenset({Reason.CHANGED}), tries=0, key=Key("default", name), waiting=None
    )


async def filled() -> History:
    """A history that is full."""
    history = History(None)

    async def writes(name: str) -> None:
        for path in WRITES:
            if ended := history.request("PATCH", path.format(name), host="server"):
                ended(200, None)

    for number in range(OBJECTS):
        for _ in range(RUNS):
            await history.reconcile(token(f"w{number}"), writes(f"w{number}"), controller="WidgetController")
    return history


async def microseconds(run: Callable[[], Awaitable[None]]) -> float:
    """CPU of one of many calls; the fastest of several rounds."""
    rounds = []
    for _ in range(ROUNDS):
        began = time.process_time()
        for _ in range(CALLS):
            await run()
        rounds.append((time.process_time() - began) / CALLS * 1e6)
    return min(rounds)


async def measure() -> dict[str, float]:
    """The rows of the table."""
    tracemalloc.start()
    history = await filled()
    memory = tracemalloc.get_traced_memory()[0] / 1e6
    tracemalloc.stop()
    axn = token("w0")
    plain = await microseconds(nothing)
    remembered = await microseconds(lambda: history.reconcile(axn, nothing(), controller="WidgetController"))
    worker: Any = SimpleNamespace(name="WidgetController")
    seconds, answer = [], b""
    for _ in range(ROUNDS):
        began = time.process_time()
        answer = msgspec.json.encode(snapshot.outcomes(worker, history))
        seconds.append(time.process_time() - began)
    return {
        f"memory of {OBJECTS:,} objects with {RUNS} runs, MB": memory,
        "CPU of a remembered run, us": remembered - plain,
        "CPU of the list of outcomes, ms": min(seconds) * 1e3,
        "the list of outcomes, MB": len(answer) / 1e6,
    }


def main() -> None:
    """Print the table."""
    for name, value in asyncio.run(measure()).items():
        print(f"{name:45}{value:8.2f}")


if __name__ == "__main__":
    main()
