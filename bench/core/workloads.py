"""Workloads: the load that contestants get, and the measurements.

A workload ends with an error when a contestant has not seen all objects within its time.
Elsewhere: the restart of an operator that owns children (`restart`).
"""

from __future__ import annotations

import asyncio
import itertools
import json
import signal
import time
from collections.abc import Sequence
from statistics import median
from typing import Any, Final

from bench.harness import traffic
from bench.harness.contestants import BONNY, CONTROLLER_RUNTIME, KOPF, Contestant
from bench.harness.measure import cpu_seconds, fine_cpu_seconds, peak_megabytes, resident_megabytes
from bench.harness.report import Figures, Goal, Outcome, Round, exponent, on_both_loops
from bench.harness.rounds import Bench, interleaved
from bench.harness.run import Run
from bench.harness.traffic import PATH
from bench.harness.writes import asked
from bonny.resource import Resource

from .contestants import MAKERS

__all__ = [
    "CPU",
    "CPU_PER_EVENT",
    "FIRST_CPU",
    "OF_SERVER",
    "RESIDENT",
    "WALL",
    "events",
    "idle",
    "large",
    "memory",
    "of_server",
    "scaling",
    "start",
    "sync",
]

CPU_PER_EVENT: Final = "CPU us/event"
# The API server does the same for everyone: this ratio repeats better than CPU on a machine that is not quiet.
OF_SERVER: Final = "CPU, of the API server's"
WALL: Final = "exec to last call s"
FIRST: Final = "exec to first call s"
FIRST_CPU: Final = "CPU s to first call"
CPU: Final = "CPU s"
RESIDENT: Final = "RSS MB"
PEAK: Final = "peak RSS MB"
EACH: Final = "RSS bytes/further object"
# Work after the last call, such as a garbage collection, belongs to it.
SETTLE_SECONDS: Final = 1.0
# Between the last call of a start and the look at its CPU and memory.
REST_SECONDS: Final = 10.0
QUICK_REST_SECONDS: Final = 1.0
IDLE_SECONDS: Final = 60.0
QUICK_IDLE_SECONDS: Final = 2.0
# The object of `large` that changes while all others rest, and how often it does.
CHANGED: Final = "changed"
CHANGES: Final = 11
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
    _create(bench)
    sizes = itertools.count(2)

    def measured(contestant: Contestant) -> Figures:
        size = next(sizes)
        with bench.start(contestant, objects=bench.objects) as run:
            run.seen(size - 1)
            time.sleep(SETTLE_SECONDS)
            run.mark()
            before, server = cpu_seconds(run.pid), cpu_seconds(bench.sandbox.apiserver.pid)
            answered = traffic.update(bench.sandbox, bench.objects, size=size)
            calls = run.seen(size)
            time.sleep(SETTLE_SECONDS)
            spent, server = cpu_seconds(run.pid) - before, cpu_seconds(bench.sandbox.apiserver.pid) - server
            run.mark()
        return {
            CPU_PER_EVENT: spent / bench.objects * 1e6,
            **of_server(spent, server),
            "last write to last call ms": max(calls.last - answered, 0.0) * 1e3,
        }

    goals = (
        *on_both_loops(CPU_PER_EVENT, stock=0.75, uvloop=0.65, against=CONTROLLER_RUNTIME),
        Goal(metric=CPU_PER_EVENT, limit=0.2, against=KOPF),
    )
    return Outcome("events", bench.objects, interleaved(bench, measured), goals)


def sync(bench: Bench) -> Outcome:
    """A start with many objects, the handler does nothing: wall and CPU from exec to its call for the last one."""
    _create(bench)
    goals = (
        Goal(metric=WALL, limit=1.3, against=CONTROLLER_RUNTIME),
        *on_both_loops(CPU, stock=0.7, uvloop=0.7, against=CONTROLLER_RUNTIME),
        Goal(metric=FIRST, limit=2.0),
        *on_both_loops(RESIDENT, stock=60.0, uvloop=62.0),
    )
    rounds = interleaved(bench, lambda contestant: _started(bench, contestant, objects=bench.objects))
    return Outcome("sync", bench.objects, rounds, goals)


def start(bench: Bench) -> Outcome:
    """A start with a few objects: what a contestant uses until its first call."""
    _create(bench)

    def measured(contestant: Contestant) -> Figures:
        with bench.start(contestant, objects=bench.objects) as run:
            first, spent = run.first(1), cpu_seconds(run.pid)
            run.seen(1)
            return {FIRST: first - run.began, FIRST_CPU: spent, RESIDENT: resident_megabytes(run.pid)}

    return Outcome(
        "start", bench.objects, interleaved(bench, measured), on_both_loops(FIRST_CPU, stock=0.3, uvloop=0.3)
    )


def idle(bench: Bench) -> Outcome:
    """Objects that do not change: CPU of the process and requests in one minute."""
    _create(bench)
    seconds = QUICK_IDLE_SECONDS if bench.quick else IDLE_SECONDS

    def measured(contestant: Contestant) -> Figures:
        with bench.start(contestant, objects=bench.objects) as run:
            run.seen(1)
            time.sleep(_rest(bench))
            before, requests = fine_cpu_seconds(run.pid), asked(bench.sandbox)
            time.sleep(seconds)
            spent = fine_cpu_seconds(run.pid) - before
            return {
                f"CPU ms in {seconds:g} s": spent * 1e3,
                f"requests in {seconds:g} s": float(asked(bench.sandbox) - requests),
            }

    return Outcome("idle", bench.objects, interleaved(bench, measured), ())


def large(bench: Bench) -> Outcome:
    """A start with very many objects, and then changes of a single one."""
    _create(bench)
    asyncio.run(traffic.created(bench.sandbox, [CHANGED], {**SPEC, "size": 0}))
    sizes = itertools.count(2)

    def measured(contestant: Contestant) -> Figures:
        with bench.start(contestant, objects=bench.objects) as run:
            figures = _after_start(bench, run)
            delays = [_changed(bench, run, size) for size in itertools.islice(sizes, CHANGES)]
            return {**figures, "one event: update to call ms": median(delays) * 1e3}

    rounds = interleaved(bench, measured)
    ours = [contestant for contestant in bench.contestants if contestant.name == BONNY]
    return Outcome("large", bench.objects, rounds, (), _collections(bench, ours[0]) if ours else {})


def _changed(bench: Bench, run: Run, size: int) -> float:
    """Change one object; returns the seconds from sending that until the handler was called for it."""
    began = time.time()
    body = {"spec": {"size": size}}
    bench.sandbox.request("PATCH", f"{PATH}/{CHANGED}", body, content_type="application/merge-patch+json")
    return run.first(size) - began


def _collections(bench: Bench, contestant: Contestant) -> Figures:
    """One more start of ours: the time that it spent in Python's garbage collector."""
    file = bench.guard.folder / "collections"
    settings = {"BENCH_COLLECTIONS": str(file)}
    with bench.start(contestant, objects=bench.objects, settings=settings) as run:
        run.seen(1)
        run.process.send_signal(signal.SIGUSR1)
        bench.sandbox.eventually(file.exists)
    sums: dict[str, Any] = json.loads(file.read_text("utf-8"))
    return {
        "garbage collection during the first list ms": sums["ms"],
        "of them full collections": float(sums["full"]),
        "a full collection afterwards ms": sums["ms of a full one"],
    }


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
    metrics = (WALL, CPU, RESIDENT)
    rounds: list[Round] = [
        {BONNY: {f"{metric} at {objects:,}": each[objects][metric] for metric in metrics for objects in each}}
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


def of_server(spent: float, server: float) -> Figures:
    """CPU of a contestant, divided by that of the API server unless that is less than one tick of its clock."""
    return {OF_SERVER: spent / server} if server else {}


def _create(bench: Bench) -> None:
    """Define Widgets and create as many as the bench asks for."""
    traffic.define(bench.sandbox, DEFINITION)
    traffic.create(bench.sandbox, range(bench.objects), SPEC)


def _started(bench: Bench, contestant: Contestant, *, objects: int) -> Figures:
    """One start, measured until all objects were seen and some rest."""
    with bench.start(contestant, objects=objects) as run:
        return _after_start(bench, run)


def _after_start(bench: Bench, run: Run) -> Figures:
    calls = run.seen(1)
    run.mark()
    time.sleep(_rest(bench))
    return {
        WALL: calls.last - run.began,
        FIRST: calls.first - run.began,
        CPU: cpu_seconds(run.pid),
        RESIDENT: resident_megabytes(run.pid),
        PEAK: peak_megabytes(run.pid),
    }


def _rest(bench: Bench) -> float:
    return QUICK_REST_SECONDS if bench.quick else REST_SECONDS
