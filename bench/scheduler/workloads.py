"""Workloads: what is done to the schedulers, and what is measured of them.

Each run begins with the same nodes and without pods. Pods are created, and seen to be bound by a watch, in the same way
for everybody. A run counts only if every pod was bound and no node is overcommitted.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterable
from functools import partial
from typing import Any, Final

from bench.harness import traffic
from bench.harness.contestants import Contestant
from bench.harness.measure import cpu_seconds, peak_megabytes
from bench.harness.report import Figures, Goal, Outcome, on_both_loops
from bench.harness.rounds import Bench, interleaved
from bench.harness.run import Run, patience
from bench.harness.writes import settled
from bench.pipeline.workloads import percentiles
from bonny.resource import Resource
from bonny_dev.sandbox import Sandbox

from . import world
from .contestants import KUBE_SCHEDULER

__all__ = ["Bound", "backlog", "live"]

NODES: Final = "/api/v1/nodes"
PODS: Final = "/api/v1/namespaces/default/pods"
EVENTS: Final = "/apis/events.k8s.io/v1/namespaces/default/events"
WRITTEN: Final = ("pods", "events")
MILLISECONDS: Final = "ms/pod"
CPU_PER_POD: Final = "CPU us/pod"
P50: Final = "p50 ms"
P99: Final = "p99 ms"
# One pod of each shape: what a scheduler does once for a shape is its start.
WARM: Final = world.SHAPES
EMPTY_SECONDS: Final = 300.0
DELETE_SECONDS: Final = 120.0


def backlog(bench: Bench) -> Outcome:
    """All pods are there when the scheduler starts: how fast they are bound, and what that costs."""
    _register(bench)
    goals = (
        Goal(metric=MILLISECONDS, limit=0.5, against=KUBE_SCHEDULER),
        *on_both_loops(CPU_PER_POD, stock=0.35, uvloop=0.3, against=KUBE_SCHEDULER),
    )
    return Outcome("backlog", bench.objects, interleaved(bench, lambda each: _worked_off(bench, each)), goals)


def live(bench: Bench) -> Outcome:
    """Pods come at a steady rate: from the moment when one is sent until a watch shows that it is bound."""
    _register(bench)
    goals = (Goal(metric=P99, limit=100.0), *on_both_loops(CPU_PER_POD, stock=0.35, uvloop=0.3, against=KUBE_SCHEDULER))
    return Outcome("live", bench.objects, interleaved(bench, lambda each: _at_a_rate(bench, each)), goals)


class Bound:
    """Pods without a node; called with the events of a watch, until it returns True."""

    def __init__(self, names: Iterable[str]) -> None:
        self.left = set(names)
        self.at: dict[str, float] = {}
        """When each was first seen to be bound (monotonic seconds)."""

    def __call__(self, kind: str, resource: Resource) -> bool:
        name = resource["metadata"]["name"]
        if kind != "DELETED" and name in self.left and resource["spec"].get("nodeName"):
            self.left.discard(name)
            self.at[name] = time.monotonic()
        return not self.left


def _worked_off(bench: Bench, contestant: Contestant) -> Figures:
    sandbox, numbers = bench.sandbox, range(bench.objects)
    _empty(sandbox)
    asyncio.run(traffic.send_all(sandbox, "POST", ((PODS, world.pod(number)) for number in numbers)))
    since = traffic.version_of(sandbox, PODS)
    before, server = settled(sandbox, *WRITTEN), cpu_seconds(sandbox.apiserver.pid)
    bound, began = Bound(map(_name, numbers)), time.monotonic()
    with bench.start(contestant, objects=bench.objects) as run:
        asyncio.run(_until_bound(run, sandbox, bound, since=since))
        # What goes on behind the last binding, such as its event, belongs to it.
        writes = settled(sandbox, *WRITTEN) - before
        run.mark()
        spent, peak = cpu_seconds(run.pid), peak_megabytes(run.pid)
    first, last = min(bound.at.values()), max(bound.at.values())
    rate = (bench.objects - 1) / (last - first)
    return {
        "pods/s from the first to the last": rate,
        MILLISECONDS: 1e3 / rate,
        "exec to first s": first - began,
        CPU_PER_POD: spent / bench.objects * 1e6,
        "peak MB": peak,
        "writes/pod": writes.total() / bench.objects,
        "fullest node %": 100 * world.check(_pods(sandbox), wanted=bench.objects),
        "API server's CPU ms/pod": (cpu_seconds(sandbox.apiserver.pid) - server) / bench.objects * 1e3,
    }


def _at_a_rate(bench: Bench, contestant: Contestant) -> Figures:
    sandbox, numbers = bench.sandbox, range(WARM, WARM + bench.objects)
    _empty(sandbox)
    with bench.start(contestant, objects=bench.objects) as run:
        asyncio.run(_one_by_one(bench, run, range(WARM)))
        settled(sandbox, *WRITTEN)
        started = cpu_seconds(run.pid)
        run.mark()
        seconds, answers = asyncio.run(_one_by_one(bench, run, numbers))
        run.mark()
        settled(sandbox, *WRITTEN)
        spent, peak = cpu_seconds(run.pid) - started, peak_megabytes(run.pid)
    p50, p99 = percentiles(list(seconds.values()))
    return {
        P50: p50 * 1e3,
        P99: p99 * 1e3,
        "largest ms": max(seconds.values()) * 1e3,
        "p99 ms of the creation alone": percentiles(list(answers.values()))[1] * 1e3,
        CPU_PER_POD: spent / bench.objects * 1e6,
        f"CPU s of the start and of {WARM} pods": started,
        "peak MB": peak,
        "fullest node %": 100 * world.check(_pods(sandbox), wanted=WARM + bench.objects),
    }


# --- parts of them ----------------------------------------------------------------------------------------------------


async def _until_bound(run: Run, sandbox: Sandbox, bound: Bound, *, since: str) -> None:
    """Watch from the version `since` until all are bound.

    Raises: `RuntimeError`, with the last lines of the contestant, when that takes too long.
    """
    try:
        async with asyncio.timeout(patience(len(bound.left))):
            await traffic.follow(sandbox, PODS, since, bound)
    except TimeoutError as error:
        raise run.failure(f"left {len(bound.left)} pods without a node") from error


async def _one_by_one(bench: Bench, run: Run, numbers: Iterable[int]) -> tuple[dict[str, float], dict[str, float]]:
    """Create these pods at a steady rate.

    Returns: by name, the seconds from sending each until it is bound, and those until its creation is answered.
    """
    pods = {_name(number): world.pod(number) for number in numbers}
    bound, since = Bound(pods), traffic.version_of(bench.sandbox, PODS)
    sent: dict[str, float] = {}
    answered: dict[str, float] = {}
    began = time.monotonic()
    async with traffic.session(bench.sandbox) as http:

        async def one(place: int, name: str) -> None:
            # By the clock, not by the answer before: a slow answer does not make the rate lower.
            await asyncio.sleep(began + place / bench.sizes["rate"] - time.monotonic())
            sent[name] = time.monotonic()
            await traffic.send(http, "POST", PODS, pods[name])
            answered[name] = time.monotonic()

        await asyncio.gather(
            _until_bound(run, bench.sandbox, bound, since=since), *(one(*each) for each in enumerate(pods))
        )
    return (
        {name: bound.at[name] - at for name, at in sent.items()},
        {name: answered[name] - at for name, at in sent.items()},
    )


def _register(bench: Bench) -> None:
    """Create the nodes."""
    nodes = [world.node(number) for number in range(bench.sizes["nodes"])]
    asyncio.run(traffic.send_all(bench.sandbox, "POST", ((NODES, json.dumps(node).encode()) for node in nodes)))
    # Admission taints what is new as not ready.
    patches = ((node["metadata"]["name"], {"spec": {"taints": node["spec"].get("taints")}}) for node in nodes)
    ready = ((f"{NODES}/{name}", json.dumps(patch).encode()) for name, patch in patches)
    asyncio.run(traffic.send_all(bench.sandbox, "PATCH", ready))


def _name(number: int) -> str:
    return f"p{number}"


def _pods(sandbox: Sandbox) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = sandbox.request("GET", PODS, timeout=DELETE_SECONDS).body["items"]
    return found


def _empty(sandbox: Sandbox) -> None:
    """Delete all pods, for which no kubelet has to agree, and all events."""
    for path in (PODS, EVENTS):
        sandbox.eventually(partial(_is_emptied, sandbox, path), within_seconds=EMPTY_SECONDS)


def _is_emptied(sandbox: Sandbox, path: str) -> bool:
    sandbox.request("DELETE", f"{path}?gracePeriodSeconds=0", timeout=DELETE_SECONDS)
    return not sandbox.request("GET", f"{path}?limit=1").body["items"]
