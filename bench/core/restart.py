"""Restart: an operator comes back to objects whose children and status are as it left them, but for a few.

Only ours: each object has a ConfigMap and a status. While the operator was down, five children were edited, five were
deleted, and an object was created whose name comes last in every list.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from bench.harness import traffic
from bench.harness.contestants import BONNY
from bench.harness.measure import cpu_seconds, resident_megabytes
from bench.harness.ready import Awaited, is_ready, until_ready
from bench.harness.report import Figures, Goal, Outcome, Round
from bench.harness.rounds import Bench
from bench.harness.run import patience
from bench.harness.traffic import CONFIG_MAPS
from bench.harness.writes import sent, settled
from bonny.resource import Resource
from bonny_dev.crd.definition import crds
from bonny_dev.sandbox import Sandbox
from tests.support.handwritten import operator

from .contestants import CHILDREN

__all__ = ["restart"]

SPOILT: Final = 10
# A repair for each spoilt child; a child and a status for the new object.
NEEDED: Final = SPOILT + 2
UNNEEDED_WRITES: Final = "unneeded writes"
HANDLED: Final = "exec to new object handled s"
REPAIRED: Final = "exec to children repaired s"


def restart(bench: Bench) -> Outcome:
    """Writes of a restart, and how soon what is to be done is done. Raises: `TimeoutError` when it is not."""
    traffic.define(bench.sandbox, crds(operator.crds, operator.group))
    traffic.create(bench.sandbox, range(bench.objects), {"size": 1})
    asyncio.run(_settled(bench))
    rounds: list[Round] = [{BONNY: asyncio.run(_restarted(bench, number))} for number in range(bench.rounds)]
    goals = (
        Goal(metric=UNNEEDED_WRITES, limit=0.0),
        Goal(metric=HANDLED, limit=2.0),
        Goal(metric=REPAIRED, limit=5.0),
    )
    return Outcome("restart", bench.objects, rounds, goals)


async def _settled(bench: Bench) -> None:
    """The first life of the operator: every object gets its child and its status."""
    awaited = Awaited(f"w{number}" for number in range(bench.objects))
    since = traffic.version_of(bench.sandbox, traffic.PATH)
    with bench.start(CHILDREN, objects=bench.objects) as run:
        await until_ready(run, bench.sandbox, awaited, since=since)


async def _restarted(bench: Bench, number: int) -> Figures:
    sandbox = bench.sandbox
    late = f"z{number}"
    step = bench.objects // SPOILT
    spoilt = {f"w{step * place + number}" for place in range(SPOILT)}
    sandbox.apply({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": late}, "spec": {"size": 1}})
    _spoil(sandbox, sorted(spoilt))
    versions = {path: traffic.version_of(sandbox, path) for path in (traffic.PATH, CONFIG_MAPS)}
    before = sent(sandbox).total()

    def handled(_: str, resource: Resource) -> bool:
        return bool(resource["metadata"]["name"] == late) and is_ready(resource)

    def repaired(kind: str, resource: Resource) -> bool:
        if kind != "DELETED" and resource.get("data") == {"size": "1"}:
            spoilt.discard(resource["metadata"]["name"])
        return not spoilt

    with bench.start(CHILDREN, objects=bench.objects) as run:
        async with asyncio.timeout(patience(bench.objects)):
            handled_at, repaired_at = await asyncio.gather(
                traffic.follow(sandbox, traffic.PATH, versions[traffic.PATH], handled),
                traffic.follow(sandbox, CONFIG_MAPS, versions[CONFIG_MAPS], repaired),
            )
        after = settled(sandbox).total()
        return {
            HANDLED: handled_at - run.began,
            REPAIRED: repaired_at - run.began,
            UNNEEDED_WRITES: float(after - before - NEEDED),
            "CPU s until quiet": cpu_seconds(run.pid),
            "RSS MB": resident_megabytes(run.pid),
        }


def _spoil(sandbox: Sandbox, names: list[str]) -> None:
    """Edit one half of these ConfigMaps and delete the other."""
    for place, name in enumerate(names):
        if place % 2:
            sandbox.delete("v1", "ConfigMap", name)
        else:
            edit: dict[str, Any] = {"data": {"size": "spoilt"}}
            sandbox.request("PATCH", f"{CONFIG_MAPS}/{name}", edit, content_type="application/merge-patch+json")
