"""Process: what one run of an operator leaves behind, and when it calls itself dead."""

from __future__ import annotations

import asyncio
import time
from typing import Any, cast

import pytest

from bonny import Controller, Kind, Operator
from bonny.client.config import Connection
from bonny.config import Config
from bonny.core.watch import WatchOptions
from bonny.process import Process


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


@pytest.mark.parametrize("restart", ["temporary", "permanent"])
async def test_a_controller_that_is_not_started_again_makes_the_operator_unready_and_not_dead(
    restart: str, monkeypatch: pytest.MonkeyPatch
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
    task = made._spawn(worker, restart=worker.restart)
    made._work = [task]
    await failed.wait()
    await asyncio.sleep(0)

    assert made.health().ok
    assert any("is not started again" in line for line in made.readiness().lines) is (restart == "temporary")
    task.cancel()


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
    (stream,) = made.reflectors.values()

    stream.last_contact = time.monotonic() - silent

    assert made.health().ok is alive
