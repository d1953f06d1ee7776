"""What it costs that an operator can be watched: events, figures, traces, imports; without a server.

    python -m bench.telemetry

Each row is CPU time of the whole process for one call, threads that export included, of the fastest of several rounds;
for an import, of the median of several processes, and what it adds to resident memory.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from statistics import median
from typing import Any, Final, NamedTuple

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON, Sampler

from bench.harness.contestants import ROOT
from bonny.client.metering import Requests
from bonny.compat import measure, span
from bonny.core.meters import Exemplar, Histogram, ReconcileCounts
from bonny.core.queue import Priority, Reason
from bonny.core.records import Action
from bonny.engine.reconcile import Reconcile
from bonny.otel.spans import OtelSpans
from bonny.pipeline import Pipeline
from bonny.resource import Key
from bonny.telemetry import attach, detach, execute, tracing
from tests.support.metered import assembled
from tests.support.tokens import token_of

ROUNDS: Final = 7
SECONDS: Final = 0.1
STEPS: Final = 8
"""As many as the default pipeline has, with two to spare."""

KEYS: Final = 100_000

EVENT: Final = "bench.moment"
TOLD: Final[Mapping[str, object]] = {"task": "bench"}


class Row(NamedTuple):
    """What was measured, in nanoseconds unless it says otherwise."""

    what: str
    value: float


def fastest(call: Callable[[], object], *, seconds: float) -> float:
    """Nanoseconds of one call: of the fastest round, without the loop around it. A round takes `seconds` or more."""

    def timed(times: int, called: Callable[[], object]) -> float:
        began = time.process_time()
        for _ in range(times):
            called()
        return time.process_time() - began

    times = 1
    while timed(times, call) < seconds:
        times *= 2
    taken = min(timed(times, call) for _ in range(ROUNDS))
    return max(taken - min(timed(times, nothing) for _ in range(ROUNDS)), 0.0) / times * 1e9


def nothing() -> None:
    """What the loop of `fastest` takes by itself."""


# --- events -----------------------------------------------------------------------------------------------------------


def listener(name: str, measurements: Mapping[str, float], metadata: Mapping[str, object], config: object) -> None:
    """Does nothing."""


@contextmanager
def listening(*names: str, times: int = 1) -> Iterator[None]:
    ids = [f"{name} {number}" for name in names for number in range(times)]
    for id_ in ids:
        attach(id_, id_.rpartition(" ")[0], listener)
    yield
    for id_ in ids:
        detach(id_)


def spanned() -> None:
    with span(EVENT, TOLD):
        pass


def events(seconds: float) -> Iterator[Row]:
    def told() -> None:
        execute(EVENT, {"duration": 1.0}, TOLD)

    yield Row("execute, nobody listens", fastest(told, seconds=seconds))
    for count in (1, 5):
        with listening(EVENT, times=count):
            yield Row(f"execute, listeners: {count}", fastest(told, seconds=seconds))
    yield Row("span, nobody listens", fastest(spanned, seconds=seconds))
    with listening(f"{EVENT}.start", f"{EVENT}.stop"):
        yield Row("span, listeners: 1", fastest(spanned, seconds=seconds))
    yield Row("measure", fastest(lambda: measure(int), seconds=seconds))


# --- figures ----------------------------------------------------------------------------------------------------------


def figures(seconds: float) -> Iterator[Row]:
    histogram, handlings, requests = Histogram(), ReconcileCounts(), Requests()
    exemplar = Exemplar("0" * 32, "0" * 16, at=0.0)

    def handling() -> None:
        handlings.queued.observe(0.01)
        handlings.seconds.observe(0.01)

    def request() -> None:
        with requests.under_way("GET", "/api/v1/namespaces/n/configmaps/m") as under_way:
            under_way.answered(200)

    yield Row(
        "one more in a counter", fastest(lambda: setattr(handlings, "errors", handlings.errors + 1), seconds=seconds)
    )
    yield Row("an observation of a histogram", fastest(lambda: histogram.observe(0.01), seconds=seconds))
    yield Row("the same with an exemplar", fastest(lambda: histogram.observe(0.01, exemplar), seconds=seconds))
    yield Row("what a handling adds", fastest(handling, seconds=seconds))
    yield Row("what a request adds", fastest(request, seconds=seconds))
    process = asyncio.run(assembled())
    for accept in ("text/plain", "application/openmetrics-text"):
        lines = process.exposition(accept)[0].count(b"\n")
        scrape = fastest(partial(process.exposition, accept), seconds=seconds)
        yield Row(f"a scrape of {lines} lines ({accept})", scrape)
    for priority, told in ((Priority.LOW, "of a first list"), (Priority.LIVE, "that changed")):
        process = asyncio.run(assembled())
        for number in range(KEYS):
            process.workers[0].router.queue.add(Key("n", str(number)), Reason.CHANGED, now=0.0, priority=priority)
        yield Row(f"the same with {KEYS:,} keys {told} in a queue", fastest(process.exposition, seconds=seconds))


# --- traces -----------------------------------------------------------------------------------------------------------


class Nowhere(SpanExporter):
    """Takes what it is given."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:  # noqa: ARG002  the base's shape
        return SpanExportResult.SUCCESS


def step(axn: Reconcile[Any]) -> None:
    """Does nothing."""


def axn() -> Reconcile[Any]:
    metadata = {"name": "m", "namespace": "n", "uid": "u"}
    return token_of({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}, action=Action.MODIFY)


async def handled(pipeline: Pipeline, requests: Requests) -> None:
    """What a worker does with one key, but for the queue: eight steps, the first of which sends two requests."""
    made = axn()
    run = _run(pipeline, requests, made)
    await (run if tracing.spans is None else tracing.spans.reconcile(made, run, controller="Bench"))


async def _run(pipeline: Pipeline, requests: Requests, made: Reconcile[Any]) -> None:
    for _ in range(2):
        with requests.under_way("PATCH", "/api/v1/namespaces/n/configmaps/m") as request:
            request.answered(200)
    await pipeline.run(made)


def places() -> None:
    """What is asked on the way of the same handling while nobody wants traces."""
    for _ in range(STEPS + 3):
        if tracing.spans is not None:
            raise AssertionError
    tracing.observed.get()


def traces(seconds: float) -> Iterator[Row]:
    pipeline, requests = Pipeline([step] * STEPS), Requests()

    name = f"a handling of {STEPS} steps and 2 requests"
    yield Row("what traces add to it while they are off", fastest(places, seconds=seconds))
    yield Row(f"{name}, traces off", fastest(driven(lambda: handled(pipeline, requests)), seconds=seconds))
    for sampler, told in ((ALWAYS_OFF, "on, none sampled"), (ALWAYS_ON, "on, all sampled")):
        with traced(sampler):
            yield Row(f"{name}, {told}", fastest(driven(lambda: handled(pipeline, requests)), seconds=seconds))


def driven(call: Callable[[], Awaitable[None]]) -> Callable[[], None]:
    """Runs a coroutine that waits for nothing, without a loop."""

    def run() -> None:
        waiting = call().__await__()
        for _ in waiting:
            raise AssertionError("it waits for something")

    return run


@contextmanager
def traced(sampler: Sampler) -> Iterator[None]:
    """As the environment sets it up, but for where the spans go."""
    provider = TracerProvider(sampler=sampler, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(Nowhere()))
    tracing.switch(OtelSpans(provider))
    yield
    tracing.switch(None)
    provider.shutdown()


# --- imports ----------------------------------------------------------------------------------------------------------

# The library that writes /metrics is imported by the first scrape, not at the start.
IMPORTS: Final = """
import os, sys, time

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

import bonny.main
print(len(sys.modules))
began, before = time.process_time_ns(), resident()
import prometheus_client.core, prometheus_client.exposition
print(time.process_time_ns() - began)
print(resident() - before)
"""
PROCESSES: Final = 5


def imports() -> Iterator[Row]:
    rows = ("modules after the import of bonny.main", "the import of prometheus-client after it", "the same, bytes")
    run = partial(
        subprocess.run,
        [sys.executable, "-c", IMPORTS],
        env={**os.environ, "PYTHONPATH": str(ROOT / "runtime")},
        check=True,
        capture_output=True,
        text=True,
    )
    outputs = [run().stdout.split() for _ in range(PROCESSES)]
    for what, values in zip(rows, zip(*outputs, strict=True), strict=True):
        yield Row(what, median(map(int, values)))


# --- table ------------------------------------------------------------------------------------------------------------


def main(words: Sequence[str] | None = None) -> int:
    """Print the table; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench.telemetry", description="What watching an operator costs.")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="for each round of a row (default %(default)s)")
    seconds = parser.parse_args(words).seconds
    sections = {"events": events(seconds), "figures": figures(seconds), "traces": traces(seconds), "imports": imports()}
    for title, rows in sections.items():
        print(f"{title:64}{'ns':>12}")
        for row in rows:
            print(f"  {row.what:62}{row.value:12,.0f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
