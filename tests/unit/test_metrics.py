"""Metrics: the text that Prometheus reads, and what a scrape costs."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, cast

import prometheus_client
import prometheus_client.openmetrics.parser
import prometheus_client.parser
import pytest

import bonny
from bonny.core.meters import BOUNDS, Exemplar, Histogram, ReconcileCounts
from bonny.core.objects import decode_item
from bonny.core.queue import Priority, Reason
from bonny.core.watch import Gone, Put
from bonny.errors import BonnyError, Retry, Terminal
from bonny.resource import Key
from bonny.run.metrics import families
from bonny.run.process import Process
from bonny.telemetry.prometheus import counter, exposition, gauge, histogram
from tests.support.metered import First, assembled, full_name, labels_of

MANY = 100_000
# A promise of the operator: nothing holds its loop for longer. It takes a tenth of that on a quiet machine.
LOOP_SECONDS = 0.05
TEXT, OPEN = "text/plain;version=0.0.4", "application/openmetrics-text;version=1.0.0"


def samples(process: Process) -> dict[str, dict[tuple[str, ...], float]]:
    """By metric and by the values of its labels; of a histogram its count."""
    return {
        full_name(family): {
            tuple(sample.labels.values()): sample.value
            for sample in family.samples
            if family.type != "histogram" or sample.name.endswith("_count")
        }
        for family in families(process)
    }


def written(*made: Any, accept: str = TEXT) -> str:
    return exposition(made, accept)[0].decode()


# --- text -------------------------------------------------------------------------------------------------------------


def test_a_metric_is_written_with_its_help_its_type_and_its_labels() -> None:
    family = counter("kettles_total", "Kettles.", ("of", "in"), {("tin", "x"): 3, ("a", "b"): 0.5})
    assert written(family).startswith(
        "# HELP kettles_total Kettles.\n# TYPE kettles_total counter\n"
        'kettles_total{in="x",of="tin"} 3.0\nkettles_total{in="b",of="a"} 0.5\n'
    )


def test_what_a_label_must_not_hold_is_escaped() -> None:
    family = gauge("kettles", "Kettles.", ("of",), {('a "b"\\\n',): 1})
    assert 'kettles{of="a \\"b\\"\\\\\\n"} 1.0\n' in written(family)


def test_the_buckets_of_a_histogram_hold_what_is_not_above_them() -> None:
    seconds = Histogram()
    for value in (0.0, BOUNDS[0], BOUNDS[1], BOUNDS[-1], BOUNDS[-1] + 1):
        seconds.observe(value)

    lines = written(histogram("time_seconds", "Time.", ("of",), {("x",): seconds})).splitlines()

    assert f'time_seconds_bucket{{le="{BOUNDS[0]}",of="x"}} 2.0' in lines
    assert f'time_seconds_bucket{{le="{BOUNDS[1]}",of="x"}} 3.0' in lines
    assert f'time_seconds_bucket{{le="{BOUNDS[-1]}",of="x"}} 4.0' in lines
    last = lines.index('time_seconds_bucket{le="+Inf",of="x"} 5.0')
    assert lines[last + 1 : last + 3] == ['time_seconds_count{of="x"} 5.0', f'time_seconds_sum{{of="x"}} {seconds.sum}']


async def test_the_parser_of_prometheus_client_reads_all_of_it() -> None:
    process = await assembled()
    process.tasks.client.requests.under_way("GET", "/version", None)

    read = {family.name: family for family in prometheus_client.parser.text_string_to_metric_families(page(process))}

    assert {name.removesuffix("_total") for name in samples(process)} < set(read)


def page(process: Process, accept: str = TEXT) -> str:
    return process.exposition(accept)[0].decode()


def test_prometheus_client_is_loaded_by_the_first_scrape() -> None:
    """It takes 30 ms to import, and an operator that is not scraped has no use for it."""
    code = "import sys, bonny.main; print(sorted(name for name in sys.modules if name.startswith('prometheus')))"
    path = str(Path(bonny.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout == "[]\n"


# --- values -----------------------------------------------------------------------------------------------------------


async def test_every_series_of_controllers_and_streams_is_there_from_the_start() -> None:
    """An alert on a rate sees the first failure only if there was a zero before."""
    found = samples(await assembled())

    names = {"ConfigMaps", "Both/secrets", "Both/deployments.apps", "Pods"}
    results = {
        (name, result) for name in names for result in ("success", "error", "requeue", "requeue_after", "waiting")
    }
    assert found["controller_runtime_reconcile_total"] == dict.fromkeys(results, 0)
    assert set(found["controller_runtime_reconcile_time_seconds"]) == {(name,) for name in names}
    assert set(found["workqueue_depth"]) == {(name, name) for name in names}
    streams = {
        ("controllers", "configmaps.v1", "", "", "object"),
        ("controllers", "secrets.v1", "", "", "object"),
        ("controllers", "deployments.v1.apps", "", "a=b", "object"),
        ("Pods", "pods.v1", "", "", "object"),
    }
    assert set(found["bonny_stream_synced"]) == streams
    assert len(found["bonny_stream_failures_total"]) == 10 * len(streams)
    assert set(found["bonny_events_total"].values()) == {0}


async def test_no_metric_is_there_twice_and_every_sample_has_all_labels() -> None:
    made = list(families(await assembled()))
    assert len({family.name for family in made}) == len(made)
    assert all(set(sample.labels) - {"le"} == labels_of(family) for family in made for sample in family.samples)
    counters = {sample.name for family in made if family.type == "counter" for sample in family.samples}
    assert counters
    assert all(name.endswith("_total") for name in counters)
    assert not any(family.name.endswith("_total") for family in made)


async def test_every_series_of_a_scheduler_is_there_from_the_start_by_the_names_of_kube_scheduler() -> None:
    found = samples(await assembled(First))

    queues = ("active", "backoff", "unschedulable")
    assert found["scheduler_pending_pods"] == {("first", queue): 0 for queue in queues}
    results = {("first", result) for result in ("scheduled", "unschedulable", "error")}
    assert found["scheduler_schedule_attempts_total"] == dict.fromkeys(results, 0)
    assert set(found["scheduler_scheduling_attempt_duration_seconds"]) == results
    assert set(found["scheduler_scheduling_algorithm_duration_seconds"]) == {("first",)}
    bindings = {("first", "Bind", status) for status in ("Success", "Error")}
    assert set(found["scheduler_framework_extension_point_duration_seconds"]) == bindings
    assert found["bonny_scheduler_bindings"] == {("first",): 0}
    # A closed set, but one of which most is never met.
    assert found["scheduler_unschedulable_pods"] == {}


@pytest.mark.parametrize(
    ("error", "counts"),
    [
        (Retry(), (0, 0, 0, 1, 0)),
        (Retry(after=3), (0, 0, 0, 0, 1)),
        (Terminal("no"), (1, 1, 0, 0, 0)),
        (ValueError("no"), (1, 0, 0, 0, 0)),
        (TimeoutError("of a socket of the handler's own"), (1, 0, 0, 0, 0)),
    ],
)
def test_how_a_handling_ended_is_counted(error: Exception, counts: tuple[int, ...]) -> None:
    meters = ReconcileCounts()
    meters.failed(error)
    found = (meters.errors, meters.terminal, meters.timeouts, meters.requeued, meters.requeued_after)
    assert found == counts


def test_a_handler_that_ran_out_of_time_is_counted_as_such() -> None:
    class Late(BonnyError, TimeoutError): ...

    meters = ReconcileCounts()
    meters.failed(Late("late"))
    assert (meters.errors, meters.timeouts) == (1, 1)


class Broken:
    """A collector that cannot be read."""

    def describe(self) -> list[Any]:
        return []

    def collect(self) -> list[Any]:
        raise RuntimeError("not now")


@pytest.mark.parametrize("accept", [TEXT, OPEN])
async def test_metrics_of_prometheus_client_are_there_once_and_a_broken_one_hides_none_of_ours(
    monkeypatch: pytest.MonkeyPatch, accept: str
) -> None:
    process = await assembled()
    registry = prometheus_client.CollectorRegistry()
    registry.register(prometheus_client.PROCESS_COLLECTOR)
    monkeypatch.setattr(prometheus_client, "REGISTRY", registry)
    prometheus_client.Counter("theirs", "Theirs.", registry=registry).inc()
    text = page(process, accept)
    assert text.count("\ntheirs_total 1.0\n") == 1
    assert text.count("\nprocess_cpu_seconds_total ") == 1

    registry.register(cast("Any", Broken()))
    text = page(process, accept)
    assert text.count("\nprocess_cpu_seconds_total ") == 1
    assert "theirs" not in text
    assert "\nbonny_tasks{" in text
    assert text.count("# EOF") == (accept == OPEN)
    assert text.endswith("# EOF\n") is (accept == OPEN)


async def test_before_the_start_there_are_the_metrics_of_the_process_only() -> None:
    process = await assembled()
    process._started = False
    text = page(process)
    assert "\nprocess_cpu_seconds_total " in text
    assert "bonny_" not in text


# --- OpenMetrics ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        ("", "text/plain; version=0.0.4"),
        ("*/*", "text/plain; version=0.0.4"),
        ("text/plain;version=0.0.4;q=0.5,*/*;q=0.1", "text/plain; version=0.0.4"),
        # Of Prometheus 2.42, and of 3.
        (
            "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,*/*",
            "application/openmetrics-text; version=1.0.0",
        ),
        (
            "text/plain;version=0.0.4;q=0.2, application/openmetrics-text;version=1.0.0;escaping=allow-utf-8",
            "application/openmetrics-text; version=1.0.0",
        ),
    ],
)
def test_a_scraper_gets_openmetrics_when_it_asks_for_it(accept: str, content_type: str) -> None:
    assert exposition((), accept)[1].startswith(f"{content_type}; charset=utf-8")


async def test_both_formats_have_the_same_values() -> None:
    process = await assembled()
    classic = parsed(prometheus_client.parser, page(process))
    opened = parsed(prometheus_client.openmetrics.parser, page(process, OPEN))
    ours = set(samples(process))
    assert {sample for sample in classic if sample[0] in ours} == {sample for sample in opened if sample[0] in ours}
    # Ages differ by the time between the two.
    changed = {name for (name, _), value in classic.items() ^ opened.items() if name in ours}
    assert all(name.endswith("_seconds") for name in changed)


def parsed(parser: Any, text: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in parser.text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_the_last_handling_of_each_bucket_leads_to_its_trace_and_only_openmetrics_says_so() -> None:
    seconds = Histogram()
    seconds.observe(0.002)
    for number, value in enumerate((0.003, 0.004, 1000.0)):
        seconds.observe(value, Exemplar(f"{number:032x}", f"{number:016x}", at=1700000000.0 + number))
    family = histogram("time_seconds", "Time.", ("of",), {("x",): seconds})

    read = next(iter(prometheus_client.openmetrics.parser.text_string_to_metric_families(written(family, accept=OPEN))))

    found = {sample.labels["le"]: sample.exemplar for sample in read.samples if sample.exemplar is not None}
    assert set(found) == {"0.005", "+Inf"}
    assert found["0.005"].labels == {"trace_id": f"{1:032x}", "span_id": f"{1:016x}"}
    assert (found["0.005"].value, float(found["0.005"].timestamp)) == (0.004, 1700000001.0)
    assert found["+Inf"].value == 1000.0
    assert "#" not in written(family).splitlines()[2]
    assert "trace_id" not in written(family)


# --- cost -------------------------------------------------------------------------------------------------------------


async def test_a_scrape_does_not_hold_the_loop_however_many_objects_and_keys_there_are() -> None:
    process = await assembled()
    queue, store = process.workers[0].router.queue, next(iter(process.streams)).store
    item = decode_item(b'{"metadata":{"name":"one","namespace":"n","uid":"u","resourceVersion":"1"}}')
    store._items = {Key("n", str(number)): item for number in range(MANY)}
    for number in range(MANY):
        queue.add(Key("n", str(number)), Reason.ADDED, now=0.0, priority=Priority.LOW)

    took = min(timed(process) for _ in range(10))

    assert samples(process)["workqueue_depth"]["ConfigMaps", "ConfigMaps"] == MANY
    assert took < LOOP_SECONDS


def timed(process: Process) -> float:
    """Seconds of the processor: the machine may be busy with something else."""
    began = time.thread_time()
    page(process)
    return time.thread_time() - began


async def test_the_bytes_of_a_store_are_those_of_its_objects() -> None:
    store = next(iter((await assembled()).streams)).store

    def item(name: str, version: int, size: int) -> Any:
        meta = f'"name":"{name}","namespace":"n","uid":"{name}","resourceVersion":"{version}"'
        return decode_item(f'{{"metadata":{{{meta}}},"data":"{"x" * size}"}}'.encode())

    for change in (Put(item("a", 1, 10), True), Put(item("b", 2, 20), True), Put(item("a", 3, 50), True)):
        list(store.apply(cast("Any", change)))
    assert store.bytes == sum(len(held.raw) for held in store)

    list(store.apply(Gone(item("a", 4, 500))))
    list(store.apply(Gone(item("b", 5, 0))))
    assert (len(store), store.bytes) == (0, 0)
