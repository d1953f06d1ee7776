"""Workloads: what is done to the contestants, and what is measured of them.

All begin without any object and end with a look at the children. A workload ends with an error when a contestant has
left an object without its child or its status.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from functools import partial
from statistics import quantiles
from typing import Final

from bench.core.workloads import of_server
from bench.harness import traffic
from bench.harness.contestants import CONTROLLER_RUNTIME, KOPF, KUBE_RS, Contestant
from bench.harness.measure import cpu_seconds, resident_megabytes
from bench.harness.ready import Awaited, until_ready
from bench.harness.report import Figures, Goal, Outcome, on_both_loops
from bench.harness.rounds import Bench, interleaved
from bench.harness.run import Run
from bench.harness.traffic import CONFIG_MAPS, PATH
from bench.harness.writes import Writes, sent, settled
from bonny.resource import Resource
from bonny_dev.crd.definition import crds
from bonny_dev.sandbox import Sandbox
from tests.support.handwritten import Widget

__all__ = ["CPU_PER_OBJECT", "P50", "RESIDENT", "WRITES", "create", "latency", "unchanged"]

SPEC: Final[Resource] = {"size": 1}
WARM: Final = "warm"
CPU_PER_OBJECT: Final = "CPU us/object"
WRITES: Final = "writes/object"
RESIDENT: Final = "RSS MB"
P50: Final = "p50 ms"
P99: Final = "p99 ms"
RESTART: Final = "writes in a restart"
PERIODS: Final = 3
RESYNC: Final = f"writes in {PERIODS} resync periods"
# The steady churn that Kubernetes' scalability thresholds allow for.
PER_SECOND: Final = 20.0
# Long enough for the slowest to handle all objects once.
PERIOD_SECONDS: Final = 10.0
QUICK_PERIOD_SECONDS: Final = 2.0
EMPTY_SECONDS: Final = 300.0
DELETE_SECONDS: Final = 120.0


def create(bench: Bench) -> Outcome:
    """Many creations at once: CPU of the contestant and write requests for each object."""
    _define(bench)
    goals = (
        Goal(metric=WRITES, limit=2.0),
        *on_both_loops(CPU_PER_OBJECT, stock=0.2, uvloop=0.18, against=KOPF),
        *on_both_loops(CPU_PER_OBJECT, stock=0.85, uvloop=0.75, against=CONTROLLER_RUNTIME),
        *on_both_loops(CPU_PER_OBJECT, stock=1.8, uvloop=1.6, against=KUBE_RS),
    )
    return Outcome("create", bench.objects, interleaved(bench, lambda each: _created(bench, each)), goals)


def latency(bench: Bench) -> Outcome:
    """Creations at a steady rate: from the answer to a creation until the status is seen."""
    _define(bench)
    goals = (
        *on_both_loops(P50, stock=1.0, uvloop=1.0, against=CONTROLLER_RUNTIME),
        *on_both_loops(P99, stock=1.2, uvloop=1.1, against=CONTROLLER_RUNTIME),
        *on_both_loops(CPU_PER_OBJECT, stock=1.0, uvloop=0.9, against=CONTROLLER_RUNTIME),
    )
    return Outcome("latency", bench.objects, interleaved(bench, lambda each: _at_a_rate(bench, each)), goals)


def unchanged(bench: Bench) -> Outcome:
    """Objects that were handled and did not change since: write requests of a restart, and of resync periods."""
    _define(bench)
    goals = (Goal(metric=RESTART, limit=0.0), Goal(metric=RESYNC, limit=0.0))
    return Outcome("unchanged", bench.objects, interleaved(bench, lambda each: _left_alone(bench, each)), goals)


def _created(bench: Bench, contestant: Contestant) -> Figures:
    sandbox, names = bench.sandbox, _names(bench)
    _empty(sandbox)
    with bench.start(contestant, objects=bench.objects) as run:
        asyncio.run(_warmed_up(bench, run))
        before, spent, server = settled(sandbox), cpu_seconds(run.pid), cpu_seconds(sandbox.apiserver.pid)
        run.mark()
        seconds = asyncio.run(_all_at_once(bench, run, names))
        run.mark()
        server = cpu_seconds(sandbox.apiserver.pid) - server
        # What goes on behind the last status, such as the echoes of own writes, belongs to it.
        after = settled(sandbox)
        spent = cpu_seconds(run.pid) - spent
        resident = resident_megabytes(run.pid)
    _check_children(sandbox, names)
    return {
        CPU_PER_OBJECT: spent / bench.objects * 1e6,
        **of_server(spent, server),
        **by_target(after - before, objects=bench.objects),
        "first creation to last status s": seconds,
        RESIDENT: resident,
        "API server's CPU ms/object": server / bench.objects * 1e3,
    }


def _at_a_rate(bench: Bench, contestant: Contestant) -> Figures:
    names = _names(bench)
    _empty(bench.sandbox)
    with bench.start(contestant, objects=bench.objects) as run:
        asyncio.run(_warmed_up(bench, run))
        settled(bench.sandbox)
        spent = cpu_seconds(run.pid)
        run.mark()
        seconds = asyncio.run(_one_by_one(bench, run, names))
        run.mark()
        settled(bench.sandbox)
        spent = cpu_seconds(run.pid) - spent
    _check_children(bench.sandbox, names)
    p50, p99 = percentiles(seconds)
    return {P50: p50 * 1e3, P99: p99 * 1e3, "largest ms": max(seconds) * 1e3, CPU_PER_OBJECT: spent / len(names) * 1e6}


def _left_alone(bench: Bench, contestant: Contestant) -> Figures:
    """Three lives: one that handles all objects, a stock one, and one with short resync periods."""
    sandbox, names = bench.sandbox, _names(bench)
    _empty(sandbox)
    with bench.start(contestant, objects=bench.objects) as run:
        asyncio.run(_all_at_once(bench, run, names))
        before = settled(sandbox)
    with bench.start(contestant, objects=bench.objects) as run:
        run.seen(1)
        restart = settled(sandbox) - before
        figures = {RESTART: float(restart.total()), "CPU s of a restart": cpu_seconds(run.pid)}
    if contestant.resyncs:
        period = QUICK_PERIOD_SECONDS if bench.quick else PERIOD_SECONDS
        settings = {"BENCH_RESYNC_SECONDS": str(period)}
        with bench.start(contestant, objects=bench.objects, settings=settings) as run:
            run.seen(1)
            before = sent(sandbox)
            # However often some were handled by now, all shall be handled so many more times.
            run.seen(run.largest + PERIODS)
            figures[RESYNC] = float((sent(sandbox) - before).total())
    _check_children(sandbox, names)
    return figures


# --- parts of them ----------------------------------------------------------------------------------------------------


async def _warmed_up(bench: Bench, run: Run) -> None:
    """Let the contestant handle one object, so that its start is over."""
    await _all_at_once(bench, run, [WARM])


async def _all_at_once(bench: Bench, run: Run, names: Sequence[str]) -> float:
    """Create these as fast as the API server takes them; returns the seconds until all are ready."""
    awaited, since = Awaited(names), traffic.version_of(bench.sandbox, PATH)
    began = time.monotonic()
    await asyncio.gather(
        traffic.created(bench.sandbox, names, SPEC), until_ready(run, bench.sandbox, awaited, since=since)
    )
    return max(awaited.at.values()) - began


async def _one_by_one(bench: Bench, run: Run, names: Sequence[str]) -> list[float]:
    """Create these at a steady rate; returns the seconds from each one's answer until it is ready."""
    awaited, since = Awaited(names), traffic.version_of(bench.sandbox, PATH)
    answered: dict[str, float] = {}
    began = time.monotonic()
    async with traffic.session(bench.sandbox) as http:

        async def one(number: int, name: str) -> None:
            # By the clock, not by the answer before: a slow answer does not make the rate lower.
            await asyncio.sleep(began + number / PER_SECOND - time.monotonic())
            await traffic.send(http, "POST", PATH, traffic.widget(name, SPEC))
            answered[name] = time.monotonic()

        await asyncio.gather(
            until_ready(run, bench.sandbox, awaited, since=since),
            *(one(number, name) for number, name in enumerate(names)),
        )
    return [awaited.at[name] - answered[name] for name in names]


def by_target(writes: Writes, *, objects: int) -> Figures:
    """Write requests for each object, by what was written. One creation of each object is the bench's own."""
    children = sum(count for (_, resource, _), count in writes.items() if resource == "configmaps")
    statuses = sum(count for (_, _, subresource), count in writes.items() if subresource == "status")
    total = writes.total() - objects
    return {
        WRITES: total / objects,
        "of them children": children / objects,
        "of them statuses": statuses / objects,
        "of them others": (total - children - statuses) / objects,
    }


def percentiles(values: Sequence[float]) -> tuple[float, float]:
    """The median and the 99th percentile."""
    cuts = quantiles(values, n=100, method="inclusive")
    return cuts[49], cuts[98]


def _define(bench: Bench) -> None:
    traffic.define(bench.sandbox, crds([Widget], "example.com"))


def _names(bench: Bench) -> list[str]:
    return [f"w{number}" for number in range(bench.objects)]


def _empty(sandbox: Sandbox) -> None:
    """Delete all Widgets and ConfigMaps; there is no garbage collector here."""
    for path in (PATH, CONFIG_MAPS):
        sandbox.eventually(partial(_is_emptied, sandbox, path), within_seconds=EMPTY_SECONDS)


def _is_emptied(sandbox: Sandbox, path: str) -> bool:
    sandbox.request("DELETE", path, timeout=DELETE_SECONDS)
    return not sandbox.request("GET", f"{path}?limit=1").body["items"]


def _check_children(sandbox: Sandbox, names: Sequence[str]) -> None:
    """Raises: `RuntimeError` when an object has no ConfigMap of its own with its size."""
    children = sandbox.request("GET", CONFIG_MAPS).body["items"]
    missing = set(names) - published(children)
    if missing:
        raise RuntimeError(f"{len(missing)} objects have no child, such as {min(missing)}")


def published(children: Sequence[Resource]) -> set[str]:
    """The names of those that have an owner of their own name and its size."""
    return {
        child["metadata"]["name"]
        for child in children
        if child.get("data") == {"size": str(SPEC["size"])}
        and any(owner["name"] == child["metadata"]["name"] for owner in child["metadata"].get("ownerReferences", ()))
    }
