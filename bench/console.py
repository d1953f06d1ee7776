"""Costs of the console, to the operator and to the person who looks.

    python -m bench.console

The operator's part, which needs no server: memory of a full history, and CPU of a remembered run, of a remembered
request, and of the answers to the page, which come every two seconds. Each object has the runs that are kept of it, and
each run two writes. Then, in a sandbox: the time until Chromium has painted a list of 10,000 objects, also with 100
events a second, and until `invoke why` has its answers.
"""

from __future__ import annotations

import asyncio
import io
import tempfile
import threading
import time
import tracemalloc
from collections.abc import Awaitable, Callable
from contextlib import redirect_stdout
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import msgspec

from bonny.client.api import Client
from bonny.client.config import Kubeconfig
from bonny.console import snapshot
from bonny.console.runs import OBJECTS, RUNS, History
from bonny.core.queue import Queue, Reason
from bonny.core.records import Action
from bonny.resource import RECONCILE_AT, Key
from bonny_dev.sandbox import Sandbox
from bonny_dev.why.command import why
from tests.support.chromium import CHROMIUM, chromium
from tests.support.watched import GROUP, TOKEN, Clock, clock, exchange, operator, page, watched

ROUNDS: Final = 5
CALLS: Final = 20_000
KIND: Final = "widgets.example.com"
WRITES: Final = (
    "/api/v1/namespaces/default/configmaps/{}",
    "/apis/example.com/v1/namespaces/default/widgets/{}/status",
)
# An answer every two seconds.
PER_SECOND: Final = 0.5
EVENTS: Final = 100
SHOWN_OBJECTS: Final = 10_000
OPENINGS: Final = 5
# Milliseconds from the begin of the navigation to the frame in which the rows are there.
PAINTED: Final = """new Promise((done) => {
  const look = () => document.querySelectorAll('#body tbody tr').length
    ? requestAnimationFrame(() => done(performance.now())) : requestAnimationFrame(look);
  look();
})"""


async def nothing() -> None:
    """A reconcile that does nothing."""


def token(name: str) -> Any:
    """As much of a token as the history reads."""
    told = {"action": Action.MODIFY, "reasons": frozenset({Reason.CHANGED}), "tries": 0, "waiting": None}
    return SimpleNamespace(**told, key=Key("default", name), kind=SimpleNamespace(resource=KIND))


def hear(history: History, path: str) -> None:
    """One write was answered."""
    asked = {"method": "PATCH", "path": path, "status": "200", "query": {}}
    history.hear("bonny.client.request.answered", {}, asked, None)


async def filled() -> History:
    """A history that is full."""
    history = History(None)

    async def writes(name: str) -> None:
        for path in WRITES:
            hear(history, path.format(name))

    for number in range(OBJECTS):
        for _ in range(RUNS):
            await history.reconcile(token(f"w{number}"), writes(f"w{number}"), controller="WidgetController")
    return history


async def microseconds(run: Callable[[], Awaitable[object] | None]) -> float:
    """CPU of one of many calls; the fastest of several rounds."""
    rounds = []
    for _ in range(ROUNDS):
        began = time.process_time()
        for _ in range(CALLS):
            waiting = run()
            if waiting is not None:
                await waiting
        rounds.append((time.process_time() - began) / CALLS * 1e6)
    return min(rounds)


def milliseconds(answer: Callable[[], object]) -> tuple[float, int]:
    """CPU of an answer, and its bytes."""
    seconds, body = [], b""
    for _ in range(ROUNDS):
        began = time.process_time()
        body = msgspec.json.encode(answer())
        seconds.append(time.process_time() - began)
    return min(seconds) * 1e3, len(body)


async def measure() -> dict[str, float]:
    """The operator's part."""
    tracemalloc.start()
    history = await filled()
    memory = tracemalloc.get_traced_memory()[0] / 1e6
    tracemalloc.stop()
    axn = token("w0")
    plain = await microseconds(nothing)
    remembered = await microseconds(lambda: history.reconcile(axn, nothing(), controller="WidgetController"))
    heard = await microseconds(lambda: hear(history, WRITES[0].format("w0")))
    router = SimpleNamespace(queue=Queue())
    worker: Any = SimpleNamespace(name="WidgetController", kind=SimpleNamespace(resource=KIND), router=router)
    first, first_bytes = milliseconds(lambda: snapshot.outcomes([worker], history, 0))
    # Since the last answer, two seconds ago, each event ran an object.
    for number in range(int(EVENTS / PER_SECOND)):
        await history.reconcile(token(f"w{number}"), nothing(), controller="WidgetController")
    since = history.version - 2 * int(EVENTS / PER_SECOND)
    later, later_bytes = milliseconds(lambda: snapshot.outcomes([worker], history, since))
    closed = EVENTS * (remembered - plain + len(WRITES) * heard) / 1e6
    return {
        f"memory of {OBJECTS:,} objects with {RUNS} runs, MB": memory,
        "CPU of a remembered run, us": remembered - plain,
        "CPU of a remembered request, us": heard,
        "CPU of the first answer with all outcomes, ms": first,
        "the first answer with all outcomes, kB": first_bytes / 1e3,
        f"CPU of a later answer at {EVENTS} events/s, ms": later,
        f"a later answer at {EVENTS} events/s, kB": later_bytes / 1e3,
        f"with the extra, no page open, at {EVENTS} events/s, % of a core": 100 * closed,
        f"a page open, at {EVENTS} events/s, % of a core": 100 * (closed + later * PER_SECOND / 1e3),
    }


async def first_rows(link: str) -> list[float]:
    """Milliseconds until a list of objects is painted, each time in a new page."""

    found = []
    with tempfile.TemporaryDirectory() as profile:
        async with chromium(Path(profile)) as browser:
            for _ in range(OPENINGS):
                await browser.open(link + "/clocks")
                found.append(await browser.value(PAINTED))
    return found


class Events:
    """Writes an annotation of objects in turn, a number of times a second, in a thread of its own."""

    def __init__(self, kubeconfig: Path) -> None:
        self.sent = 0
        self._kubeconfig, self._stop = kubeconfig, threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)

    def __enter__(self) -> Events:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    async def _run(self) -> None:
        kind = Clock.as_kind(GROUP)
        async with (
            Client(Kubeconfig(str(self._kubeconfig)), user_agent="bench") as client,
            asyncio.TaskGroup() as group,
        ):
            began = time.monotonic()
            while not self._stop.is_set():
                change = {"metadata": {"annotations": {RECONCILE_AT: str(self.sent)}}}
                key = Key("default", f"c{self.sent % SHOWN_OBJECTS}")
                group.create_task(client.merge_patch(kind, key, change))
                self.sent += 1
                await asyncio.sleep(max(began + self.sent / EVENTS - time.monotonic(), 0.0))


def measure_page() -> dict[str, float]:
    """With a real API server, an operator with many objects, and Chromium."""

    rows: dict[str, float] = {}
    if CHROMIUM is None:
        print("Chromium is not installed: the page is not measured")
        return rows
    with Sandbox() as sandbox, watched(sandbox) as inside:
        cluster = Kubeconfig(str(sandbox.kubeconfig))
        with page(sandbox, inside) as link:
            rows["4 objects painted, median, ms"] = sorted(asyncio.run(first_rows(link)))[OPENINGS // 2]
        asyncio.run(created(cluster, [clock(f"c{number}") for number in range(SHOWN_OBJECTS)]))
        handled = time.monotonic()
        Sandbox.eventually(lambda: idle(inside), within_seconds=600.0)
        rows["until the operator had handled them, s"] = time.monotonic() - handled
        with page(sandbox, inside) as link:
            painted = asyncio.run(first_rows(link))
            rows[f"{SHOWN_OBJECTS:,} objects painted, first time, ms"] = painted[0]
            rows[f"{SHOWN_OBJECTS:,} objects painted, median of {len(painted)}, ms"] = sorted(painted)[
                len(painted) // 2
            ]
            with Events(sandbox.kubeconfig) as events:
                began = time.monotonic()
                painted = asyncio.run(first_rows(link))
                rows["events a second"] = events.sent / (time.monotonic() - began)
            rows["meanwhile painted, median, ms"] = sorted(painted)[OPENINGS // 2]
        seconds = []
        for _ in range(ROUNDS):
            began = time.monotonic()
            with redirect_stdout(io.StringIO()):
                asyncio.run(why(cluster, operator(), "clocks/c1", namespace="watched", everything=False, as_json=True))
            seconds.append(time.monotonic() - began)
        rows["the answers of invoke why, s"] = sorted(seconds)[ROUNDS // 2]
    return rows


def idle(port: int) -> bool:
    """Whether nothing is queued."""
    found = exchange(port, "/overview", Authorization=f"Bearer {TOKEN}")
    queue = msgspec.json.decode(found[1])["controllers"][0]["queue"]
    return not queue["ready"] and not queue["working"]


async def created(cluster: Kubeconfig, objects: list[dict[str, Any]]) -> None:
    """Create objects of the watched kind, many at a time."""

    kind = Clock.as_kind(GROUP)
    async with Client(cluster, user_agent="bench") as client:
        for at in range(0, len(objects), 100):
            await asyncio.gather(*(client.create(kind, each) for each in objects[at : at + 100]))


def main() -> None:
    """Print the tables."""
    _print(asyncio.run(measure()))
    _print(measure_page())


def _print(rows: dict[str, float]) -> None:
    for name, value in rows.items():
        print(f"{name:62}{value:10.2f}", flush=True)


if __name__ == "__main__":
    main()
