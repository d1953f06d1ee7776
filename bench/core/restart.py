"""Restart: an operator comes back to objects whose children and status are as it left them, but for a few.

Only ours: each object has a ConfigMap and a status. While the operator was down, five children were edited, five were
deleted, and an object was created whose name comes last in every list.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any, Final

from bonny.api.crd import crds
from bonny.resource import Resource
from bonny.sandbox import Sandbox
from tests.support.handwritten import operator
from tests.support.processes import writes

from . import widgets
from .contestants import BONNY, CHILDREN
from .measure import cpu_seconds, resident_megabytes
from .report import Figures, Goal, Outcome, Round
from .workloads import Bench

__all__ = ["restart"]

CONFIG_MAPS: Final = "/api/v1/namespaces/default/configmaps"
SPOILT: Final = 10
# A repair for each spoilt child; a child and a status for the new object.
NEEDED: Final = SPOILT + 2
UNNEEDED_WRITES: Final = "unneeded writes"
HANDLED: Final = "exec to new object handled s"
REPAIRED: Final = "exec to children repaired s"
QUIET_SECONDS: Final = 5.0
# The API server takes about 10 ms of a processor for an object with a child and a status.
SECONDS_PER_OBJECT: Final = 0.1
START_SECONDS: Final = 60.0


def restart(bench: Bench) -> Outcome:
    """Writes of a restart, and how soon what is to be done is done. Raises: `TimeoutError` when it is not."""
    widgets.define(bench.sandbox, crds(operator.crds, operator.group))
    widgets.create(bench.sandbox, range(bench.objects), {"size": 1})
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
    left = {f"w{number}" for number in range(bench.objects)}

    def seen(_: str, resource: Resource) -> bool:
        if _is_reconciled(resource):
            left.discard(resource["metadata"]["name"])
        return not left

    version = widgets.version_of(bench.sandbox, widgets.PATH)
    with bench.start(CHILDREN, objects=bench.objects):
        async with asyncio.timeout(START_SECONDS + SECONDS_PER_OBJECT * bench.objects):
            await widgets.follow(bench.sandbox, widgets.PATH, version, seen)


async def _restarted(bench: Bench, number: int) -> Figures:
    sandbox = bench.sandbox
    late = f"z{number}"
    step = bench.objects // SPOILT
    spoilt = {f"w{step * place + number}" for place in range(SPOILT)}
    sandbox.apply({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": late}, "spec": {"size": 1}})
    _spoil(sandbox, sorted(spoilt))
    versions = {path: widgets.version_of(sandbox, path) for path in (widgets.PATH, CONFIG_MAPS)}
    before = _sent(sandbox)

    def handled(_: str, resource: Resource) -> bool:
        return bool(resource["metadata"]["name"] == late) and _is_reconciled(resource)

    def repaired(kind: str, resource: Resource) -> bool:
        if kind != "DELETED" and resource.get("data") == {"size": "1"}:
            spoilt.discard(resource["metadata"]["name"])
        return not spoilt

    with bench.start(CHILDREN, objects=bench.objects) as run:
        async with asyncio.timeout(START_SECONDS + SECONDS_PER_OBJECT * bench.objects):
            handled_at, repaired_at = await asyncio.gather(
                widgets.follow(sandbox, widgets.PATH, versions[widgets.PATH], handled),
                widgets.follow(sandbox, CONFIG_MAPS, versions[CONFIG_MAPS], repaired),
            )
        after = _quiet(sandbox)
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


def _is_reconciled(resource: Resource) -> bool:
    conditions = resource.get("status", {}).get("conditions", ())
    return any(known["type"] == "Reconciled" and known["status"] == "True" for known in conditions)


def _sent(sandbox: Sandbox) -> int:
    return sum(writes(sandbox, "widgets", "configmaps").values())


def _quiet(sandbox: Sandbox) -> int:
    """The number of writes once no more of them come."""
    seen, since = _sent(sandbox), time.monotonic()
    while time.monotonic() - since < QUIET_SECONDS:
        time.sleep(0.5)
        now = _sent(sandbox)
        if now != seen:
            seen, since = now, time.monotonic()
    return seen
