"""Metrics: the text that Prometheus reads, and what a scrape costs."""

from __future__ import annotations

import time
from typing import Any, cast

import prometheus_client
import prometheus_client.openmetrics.parser
import prometheus_client.parser
import pytest

from bonny.core.meters import BOUNDS, Exemplar, Histogram, ReconcileCounts
from bonny.core.objects import decode_item
from bonny.core.queue import Priority, Reason
from bonny.core.watch import Gone, Put
from bonny.errors import BonnyError, Retry, Terminal
from bonny.resource import Key
from bonny.run.metrics import Parts, families, text
from bonny.telemetry.prometheus import END, Family, Format, Type, exposition
from tests.support.metered import First, parts

MANY = 100_000
# A promise of the operator: nothing holds its loop for longer. It takes a twentieth of that on a quiet machine.
LOOP_SECONDS = 0.05


def samples(made: Parts) -> dict[str, dict[tuple[str, ...], float | Histogram]]:
    return {family.name: dict(family.samples) for family in families(made)}


# --- text -------------------------------------------------------------------------------------------------------------


def test_a_figure_is_written_with_its_help_its_type_and_its_labels() -> None:
    family = Family("kettles_total", Type.COUNTER, "Kettles.", ("of", "in"), {("tin", "x"): 3, ("a", "b"): 0.5})
    assert exposition([family]) == (
        "# HELP kettles_total Kettles.\n# TYPE kettles_total counter\n"
        'kettles_total{of="tin",in="x"} 3\nkettles_total{of="a",in="b"} 0.5\n'
    )


def test_what_a_label_must_not_hold_is_escaped() -> None:
    family = Family("kettles", Type.GAUGE, "Kettles.", ("of",), {('a "b"\\\n',): 1})
    assert exposition([family]).endswith('kettles{of="a \\"b\\"\\\\\\n"} 1\n')


def test_the_buckets_of_a_histogram_hold_what_is_not_above_them() -> None:
    seconds = Histogram()
    for value in (0.0, BOUNDS[0], BOUNDS[1], BOUNDS[-1], BOUNDS[-1] + 1):
        seconds.observe(value)

    lines = exposition([Family("time_seconds", Type.HISTOGRAM, "Time.", ("of",), {("x",): seconds})]).splitlines()

    assert f'time_seconds_bucket{{of="x",le="{BOUNDS[0]}"}} 2' in lines
    assert f'time_seconds_bucket{{of="x",le="{BOUNDS[1]}"}} 3' in lines
    assert f'time_seconds_bucket{{of="x",le="{BOUNDS[-1]}"}} 4' in lines
    assert lines[-3:] == [
        'time_seconds_bucket{of="x",le="+Inf"} 5',
        f'time_seconds_sum{{of="x"}} {seconds.sum}',
        'time_seconds_count{of="x"} 5',
    ]


async def test_the_parser_of_prometheus_client_reads_all_of_it() -> None:
    made = await parts()
    made.requests.under_way("GET", "/version", None)
    written = exposition(families(made))

    read = {family.name: family for family in prometheus_client.parser.text_string_to_metric_families(written)}

    assert {name.removesuffix("_total") for name in samples(made)} == set(read)


# --- figures ----------------------------------------------------------------------------------------------------------


async def test_every_series_of_controllers_and_streams_is_there_from_the_start() -> None:
    """An alert on a rate sees the first failure only if there was a zero before."""
    found = samples(await parts())

    names = {"ConfigMaps", "Both/secrets", "Both/deployments.apps", "Pods"}
    results = {(name, result) for name in names for result in ("success", "error", "requeue", "requeue_after")}
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
    assert len(found["bonny_stream_troubles_total"]) == 10 * len(streams)
    assert set(found["bonny_events_total"].values()) == {0}


async def test_no_metric_is_there_twice_and_every_sample_has_all_labels() -> None:
    made = list(families(await parts()))
    assert len({family.name for family in made}) == len(made)
    assert all(len(values) == len(family.labels) for family in made for values in family.samples)
    assert all(family.name.endswith("_total") == (family.type is Type.COUNTER) for family in made)


async def test_every_series_of_a_scheduler_is_there_from_the_start_by_the_names_of_kube_scheduler() -> None:
    found = samples(await parts(First))

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


@pytest.mark.parametrize("form", Format)
async def test_metrics_of_prometheus_client_are_told_too_and_a_broken_one_hides_none_of_ours(
    monkeypatch: pytest.MonkeyPatch, form: Format
) -> None:
    made = await parts()
    registry = prometheus_client.CollectorRegistry()
    monkeypatch.setattr(prometheus_client, "REGISTRY", registry)
    prometheus_client.Counter("theirs", "Theirs.", registry=registry).inc()
    assert "\ntheirs_total 1.0\n" in text(made, form)
    assert "process_cpu_seconds_total" not in text(made, form), "theirs has it"

    registry.register(cast("Any", Broken()))
    assert "process_cpu_seconds_total" in text(made, form)
    assert "theirs" not in text(made, form)
    assert text(made, form).count("# EOF") == (form is Format.OPEN)
    assert text(made, form).endswith("# EOF\n") is (form is Format.OPEN)


# --- OpenMetrics ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("", Format.TEXT),
        ("*/*", Format.TEXT),
        ("text/plain;version=0.0.4;q=0.5,*/*;q=0.1", Format.TEXT),
        # Of Prometheus 2.42, and of 3.
        (
            "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,*/*",
            Format.OPEN,
        ),
        (
            "text/plain;version=0.0.4;q=0.2, application/openmetrics-text;version=1.0.0;escaping=allow-utf-8",
            Format.OPEN,
        ),
    ],
)
def test_a_scraper_gets_openmetrics_when_it_asks_for_it(accept: str, form: Format) -> None:
    assert Format.accepted(accept) is form


async def test_both_formats_tell_the_same_figures() -> None:
    made = await parts()
    classic = parsed(prometheus_client.parser, exposition(families(made)))
    opened = parsed(prometheus_client.openmetrics.parser, exposition(families(made), Format.OPEN) + END)
    assert set(classic) == set(opened)
    # Ages differ by the time between the two.
    changed = {name for (name, _), value in classic.items() ^ opened.items()}
    assert all(name.endswith("_seconds") for name in changed)


def parsed(parser: Any, written: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in parser.text_string_to_metric_families(written)
        for sample in family.samples
    }


def test_the_last_handling_of_each_bucket_leads_to_its_trace_and_only_openmetrics_says_so() -> None:
    seconds = Histogram()
    seconds.observe(0.002)
    for number, value in enumerate((0.003, 0.004, 1000.0)):
        seconds.observe(value, Exemplar(f"{number:032x}", f"{number:016x}", at=1700000000.0 + number))
    family = Family("time_seconds", Type.HISTOGRAM, "Time.", ("of",), {("x",): seconds})

    (read,) = prometheus_client.openmetrics.parser.text_string_to_metric_families(
        exposition([family], Format.OPEN) + END
    )

    found = {sample.labels["le"]: sample.exemplar for sample in read.samples if sample.exemplar is not None}
    assert set(found) == {"0.005", "+Inf"}
    assert found["0.005"].labels == {"trace_id": f"{1:032x}", "span_id": f"{1:016x}"}
    assert (found["0.005"].value, float(found["0.005"].timestamp)) == (0.004, 1700000001.0)
    assert found["+Inf"].value == 1000.0
    assert "#" not in exposition([family]).splitlines()[2]
    assert "trace_id" not in exposition([family])


# --- cost -------------------------------------------------------------------------------------------------------------


async def test_a_scrape_does_not_hold_the_loop_however_many_objects_and_keys_there_are() -> None:
    made = await parts()
    queue, store = made.workers[0].router.queue, made.streams[0].store
    item = decode_item(b'{"metadata":{"name":"one","namespace":"n","uid":"u","resourceVersion":"1"}}')
    store._items = {Key("n", str(number)): item for number in range(MANY)}
    for number in range(MANY):
        queue.add(Key("n", str(number)), Reason.ADDED, now=0.0, priority=Priority.LOW)

    took = min(timed(made) for _ in range(5))

    assert samples(made)["workqueue_depth"]["ConfigMaps", "ConfigMaps"] == MANY
    assert took < LOOP_SECONDS


def timed(made: Parts) -> float:
    began = time.perf_counter()
    text(made)
    return time.perf_counter() - began


async def test_the_bytes_of_a_store_are_those_of_its_objects() -> None:
    store = (await parts()).streams[0].store

    def item(name: str, version: int, size: int) -> Any:
        meta = f'"name":"{name}","namespace":"n","uid":"{name}","resourceVersion":"{version}"'
        return decode_item(f'{{"metadata":{{{meta}}},"data":"{"x" * size}"}}'.encode())

    for change in (Put(item("a", 1, 10), True), Put(item("b", 2, 20), True), Put(item("a", 3, 50), True)):
        list(store.apply(cast("Any", change)))
    assert store.bytes == sum(len(held.raw) for held in store)

    list(store.apply(Gone(item("a", 4, 500))))
    list(store.apply(Gone(item("b", 5, 0))))
    assert (len(store), store.bytes) == (0, 0)
