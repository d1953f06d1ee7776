"""Workloads: what is done to the contestants, and what is measured of them.

A workload ends with an error when a contestant has not seen all objects within its time.
Elsewhere: the restart of an operator that owns children (`restart`).
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from statistics import median
from typing import Final

from bench.harness import traffic
from bench.harness.contestants import BONNY, CONTROLLER_RUNTIME, KOPF, Contestant
from bench.harness.measure import cpu_seconds, peak_megabytes, resident_megabytes
from bench.harness.report import Figures, Goal, Outcome, Round, exponent
from bench.harness.rounds import Bench, interleaved
from bonny.resource import Resource

from .contestants import MAKERS

__all__ = ["events", "memory", "scaling", "sync"]

CPU_PER_EVENT: Final = "CPU us/event"
WALL: Final = "exec to last call s"
FIRST: Final = "exec to first call s"
CPU: Final = "CPU s"
RESIDENT: Final = "RSS MB"
PEAK: Final = "peak RSS MB"
EACH: Final = "RSS bytes/further object"
# What goes on behind the last call, such as a garbage collection, belongs to it.
SETTLE_SECONDS: Final = 1.0
# Between the last call of a start and the look at its CPU and memory.
REST_SECONDS: Final = 10.0
QUICK_REST_SECONDS: Final = 1.0
MEMORY_FACTOR: Final = 5
SCALING: Final = (0.02, 0.1, 0.4, 1.0)
# In proportion is 1; the rest is what the caches of a busy processor add to the largest size.
IN_PROPORTION: Final = 1.1
# The text makes 900 bytes of what the API server sends for one object, managedFields included.
SPEC: Final[Resource] = {"size": 1, "text": "x" * 450}

DEFINITION: Final[Resource] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"kind": "Widget", "plural": "widgets", "singular": "widget", "listKind": "WidgetList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {"size": {"type": "integer"}, "text": {"type": "string"}},
                            }
                        },
                    }
                },
            }
        ],
    },
}


def events(bench: Bench) -> Outcome:
    """One update of each object, the handler does nothing: CPU of the process for each of them."""
    traffic.define(bench.sandbox, DEFINITION)
    traffic.create(bench.sandbox, range(bench.objects), SPEC)
    sizes = itertools.count(2)

    def measured(contestant: Contestant) -> Figures:
        size = next(sizes)
        with bench.start(contestant, objects=bench.objects) as run:
            run.seen(size - 1)
            time.sleep(SETTLE_SECONDS)
            run.mark()
            before = cpu_seconds(run.pid)
            answered = traffic.update(bench.sandbox, bench.objects, size=size)
            calls = run.seen(size)
            time.sleep(SETTLE_SECONDS)
            spent = cpu_seconds(run.pid) - before
            run.mark()
        return {
            CPU_PER_EVENT: spent / bench.objects * 1e6,
            "last write to last call ms": max(calls.last - answered, 0.0) * 1e3,
        }

    goals = (
        Goal(metric=CPU_PER_EVENT, limit=0.7, against=CONTROLLER_RUNTIME),
        Goal(metric=CPU_PER_EVENT, limit=0.2, against=KOPF),
    )
    return Outcome("events", bench.objects, interleaved(bench, measured), goals)


def sync(bench: Bench) -> Outcome:
    """A start with many objects, the handler does nothing: wall and CPU from exec to its call for the last one."""
    traffic.define(bench.sandbox, DEFINITION)
    traffic.create(bench.sandbox, range(bench.objects), SPEC)
    goals = (
        Goal(metric=WALL, limit=1.3, against=CONTROLLER_RUNTIME),
        Goal(metric=CPU, limit=0.9, against=CONTROLLER_RUNTIME),
        Goal(metric=FIRST, limit=2.0),
        Goal(metric=RESIDENT, limit=120.0),
    )
    rounds = interleaved(bench, lambda contestant: _started(bench, contestant, objects=bench.objects))
    return Outcome("sync", bench.objects, rounds, goals)


def memory(bench: Bench) -> Outcome:
    """What each further object takes of our memory: the difference of two starts, with five times as many objects."""
    few, many = bench.objects, bench.objects * MEMORY_FACTOR
    rounds: list[Round] = []
    for starts in _grown(bench, (few, many)):
        each = (starts[many][RESIDENT] - starts[few][RESIDENT]) * 2**20 / (many - few)
        at_both = {f"{RESIDENT} at {objects:,}": figures[RESIDENT] for objects, figures in starts.items()}
        rounds.append({BONNY: {**at_both, EACH: each}})
    return Outcome("memory", many, rounds, (Goal(metric=EACH, limit=2_500.0),))


def scaling(bench: Bench) -> Outcome:
    """How our first sync grows with the number of objects. A start with a single object is the fixed part of it."""
    sizes = [max(round(bench.objects * part), 2) for part in SCALING]
    starts = _grown(bench, (1, *sizes))
    rounds: list[Round] = [
        {BONNY: {f"{metric} at {objects:,}": each[objects][metric] for metric in (WALL, CPU) for objects in each}}
        for each in starts
    ]
    overall: dict[str, float] = {}
    for metric in (WALL, CPU):
        medians = {objects: median(each[objects][metric] for each in starts) for objects in (1, *sizes)}
        growth = exponent(medians, fixed=medians.pop(1))
        if growth is not None:
            overall[f"exponent of {metric}"] = growth
    goals = tuple(Goal(metric=f"exponent of {metric}", limit=IN_PROPORTION) for metric in (WALL, CPU))
    return Outcome("scaling", bench.objects, rounds, goals, overall)


def _grown(bench: Bench, sizes: Sequence[int]) -> list[dict[int, Figures]]:
    """Start ours with more and more objects: for each round the figures by number of objects."""
    ours = MAKERS[BONNY]()
    rounds: list[dict[int, Figures]] = [{} for _ in range(bench.rounds)]
    traffic.define(bench.sandbox, DEFINITION)
    created = 0
    for objects in sizes:
        traffic.create(bench.sandbox, range(created, objects), SPEC)
        created = objects
        for starts in rounds:
            starts[objects] = _started(bench, ours, objects=objects)
    return rounds


def _started(bench: Bench, contestant: Contestant, *, objects: int) -> Figures:
    """One start, measured until all objects were seen and some rest."""
    with bench.start(contestant, objects=objects) as run:
        calls = run.seen(1)
        run.mark()
        time.sleep(QUICK_REST_SECONDS if bench.quick else REST_SECONDS)
        return {
            WALL: calls.last - run.began,
            FIRST: calls.first - run.began,
            CPU: cpu_seconds(run.pid),
            RESIDENT: resident_megabytes(run.pid),
            PEAK: peak_megabytes(run.pid),
        }
