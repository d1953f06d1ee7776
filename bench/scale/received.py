"""Received: bytes and CPU of one of four replicas, beside a process with all objects and one with a quarter of them.

Each object is changed once, at the same rate: an event for it, a child that is applied and its event, a status and its
event. Bytes are all that the API server sends, TLS and the answers to own writes included, counted by a relay in front
of each replica.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from bench.harness import traffic
from bench.harness.measure import fine_cpu_seconds
from bench.harness.report import Figures, Goal, Outcome, Round
from bench.harness.rounds import Bench
from bonny.resource import Resource
from bonny_dev.crd.definition import crds
from bonny_dev.sandbox import Sandbox
from bonny_dev.sandbox.guard import Guard
from tests.support.processes import OperatorProcess
from tests.support.relay import Relay
from tests.support.sharing import BUCKETS, Replicas

from . import operator
from .sharing import named, span, start, until

__all__ = ["received"]

GATE: Final = "--feature-gates=ShardedListAndWatch=true"
PATH: Final = f"/apis/{operator.GROUP}/v1/namespaces/default/parents"
# With it a Parent, and its child, are 1 KB as the API server sends them.
TEXT: Final = "x" * 450
REPLICAS: Final = 4
ALL: Final = named(1)
GATED: Final = "gated"
# Its CPU is the least that a replica can use: the fewer changes a second, the more CPU for each of them.
PART: Final = "1 replica, a quarter of the load"
# A fifth of a core for the one process, and more with more objects: all of them are changed within these seconds.
CHANGES_PER_SECOND: Final = 100.0
MOST_SECONDS: Final = 20.0
BYTES, CPU_SECONDS = "MB received by the busiest", "CPU s of the busiest"
_numbers = count(1)


def received(bench: Bench) -> Outcome:
    """Bytes and CPU of one process with all objects, and of the busiest of four, without and with the gate."""
    part = named(REPLICAS)
    rounds: list[dict[str, Figures]] = [{} for _ in range(bench.rounds)]
    with Sandbox(apiserver_flags=[GATE], progress=print) as gated:
        for sandbox, columns in ((bench.sandbox, (ALL, part)), (gated, (f"{ALL}, {GATED}", f"{part}, {GATED}"))):
            traffic.define(sandbox, crds([operator.Parent], operator.GROUP), path=PATH)
            for number, figures in enumerate(rounds):
                for column, replicas in list(zip(columns, (1, REPLICAS), strict=True))[:: -1 if number % 2 else 1]:
                    figures[column] = _measured(bench, sandbox, replicas)
        for figures in rounds:
            figures[PART] = _measured(bench, bench.sandbox, 1, part=REPLICAS)
    goals = [
        Goal(metric=BYTES, limit=0.65, of=part, against=ALL),
        Goal(metric=CPU_SECONDS, limit=0.5, of=part, against=ALL),
        Goal(metric=BYTES, limit=0.3, of=f"{part}, {GATED}", against=f"{ALL}, {GATED}"),
        Goal(metric=CPU_SECONDS, limit=0.3, of=f"{part}, {GATED}", against=f"{ALL}, {GATED}"),
    ]
    return Outcome("received", bench.objects, [_ordered(figures, goals) for figures in rounds], goals)


def _ordered(figures: dict[str, Figures], goals: list[Goal]) -> Round:
    """Each process with all objects beside the four replicas that are compared with it; `PART` at the end."""
    names = [name for goal in goals for name in (goal.against, goal.of) if name is not None]
    return {name: figures[name] for name in (*names, PART)}


def _measured(bench: Bench, sandbox: Sandbox, replicas: int, *, part: int = 1) -> Figures:
    name = f"received-{next(_numbers)}"
    objects, per_second = bench.objects // part, max(CHANGES_PER_SECOND, bench.objects / MOST_SECONDS) / part
    with ExitStack() as stack:
        relays: dict[str, Relay] = {}

        def begin(pod: str) -> OperatorProcess:
            relays[pod] = stack.enter_context(Relay())
            return stack.enter_context(_started(bench, sandbox, name, pod, relays[pod], shares=replicas > 1))

        shared = Replicas(name, sandbox, begin, Path("/dev/null"))
        stack.callback(shared.remove)
        # New ones: an object keeps the name of each operator that wrote its status, 300 bytes each.
        _create(sandbox, objects)
        stack.callback(sandbox.request, "DELETE", PATH)
        stack.callback(sandbox.request, "DELETE", traffic.CONFIG_MAPS)
        size = next(_numbers)
        pods = {"r0": shared.start("r0")} if replicas == 1 else start(shared, replicas)
        _change(sandbox, objects, size, per_second)
        _until_handled(sandbox, size)
        # A replica that gave buckets back opens its watches again; from then on it receives its part alone.
        span(1.0 if bench.quick else 5.0)
        before = {pod: (relays[pod].received, fine_cpu_seconds(each.process.pid)) for pod, each in pods.items()}
        size = next(_numbers)
        _change(sandbox, objects, size, per_second)
        _until_handled(sandbox, size)
        span(1.0)  # events of the last writes
        read = [relays[pod].received - before[pod][0] for pod in pods]
        spent = [fine_cpu_seconds(each.process.pid) - before[pod][1] for pod, each in pods.items()]
        return {
            BYTES: max(read) / 1e6,
            CPU_SECONDS: max(spent),
            "MB received by all": sum(read) / 1e6,
            "CPU s of all": sum(spent),
        }


@contextmanager
def _started(
    bench: Bench, sandbox: Sandbox, name: str, pod: str, relay: Relay, *, shares: bool
) -> Iterator[OperatorProcess]:
    """A process whose requests go through the relay."""
    server = urlsplit(sandbox.url)
    relay.targets = (server.port or 443,)
    guard = Guard(bench.guard.folder / f"{name}-{pod}")
    try:
        kubeconfig = guard.folder / "kubeconfig"
        text = sandbox.kubeconfig.read_text("utf-8")
        kubeconfig.write_text(text.replace(sandbox.url, f"{server.scheme}://{server.hostname}:{relay.port}"), "utf-8")
        environment = {
            "BONNY_POD_NAME": pod,
            "BONNY_POD_NAMESPACE": "default",
            "BONNY_LEADER_ELECTION": "true",
            "BONNY_LOG_LEVEL": "info",
            "SCALE_NAME": name,
            "SCALE_BUCKETS": str(BUCKETS if shares else 0),
        }
        command = [sys.executable, "-m", operator.__name__]
        yield OperatorProcess(guard, command, kubeconfig=kubeconfig, cwd=None, settings=environment)
    finally:
        guard.close()


def _create(sandbox: Sandbox, objects: int) -> None:
    bodies = (
        json.dumps(
            {
                "apiVersion": f"{operator.GROUP}/v1",
                "kind": "Parent",
                "metadata": {"name": f"p{number}"},
                "spec": {"text": TEXT},
            }
        ).encode()
        for number in range(objects)
    )
    asyncio.run(traffic.send_all(sandbox, "POST", ((PATH, body) for body in bodies)))


def _change(sandbox: Sandbox, objects: int, size: int, per_second: float) -> None:
    body = json.dumps({"spec": {"size": size}}).encode()
    paths = (f"{PATH}/p{number}" for number in range(objects))
    asyncio.run(traffic.paced(sandbox, "PATCH", ((path, body) for path in paths), per_second=per_second))


def _until_handled(sandbox: Sandbox, size: int) -> None:
    """Wait until the status of each object shows that it was handled. It is written after the child."""

    def handled() -> bool:
        items: list[Resource] = sandbox.request("GET", PATH).body["items"]
        return all((each.get("status") or {}).get("size") == size for each in items)

    until(handled)
