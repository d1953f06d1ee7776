"""Metrics: the values of a running operator under /metrics, read from its parts at the scrape.

Names of controller-runtime, client-go and kube-scheduler mean the same as there; names that begin with `bonny_` have no
peer. Every series of a controller and of a stream exists from the start, at zero. Labels are names that the operator
declares, and closed sets: never names of objects.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Final, NamedTuple

from prometheus_client.core import Metric

from ..client.metering import Requests
from ..core.meters import ReconcileCounts
from ..core.queue import Statistics
from ..core.watch import ErrorKind
from ..engine.router import Router
from ..engine.stream import Stream
from ..engine.worker import Worker
from ..servers.watcher import Watcher
from ..telemetry.prometheus import Labels, Row, counter, each, gauge, histogram

if TYPE_CHECKING:
    from .process import Process


class _Queue(NamedTuple):
    meters: ReconcileCounts
    router: Router
    statistics: Statistics
    slots: int
    running: list[float]
    """For how long each reconcile in progress has run."""

    paused: int


# fmt: off
CONTROLLERS: Final[tuple[Row[_Queue], ...]] = (
    (counter, "controller_runtime_reconcile_errors_total", "Reconciles that failed.", lambda of: of.meters.errors),
    (counter, "controller_runtime_terminal_reconcile_errors_total", "Reconciles that ended with Terminal.",
     lambda of: of.meters.terminal),
    (counter, "controller_runtime_reconcile_timeouts_total", "Reconciles that exceeded their timeout.",
     lambda of: of.meters.timeouts),
    (histogram, "controller_runtime_reconcile_time_seconds", "Seconds that a reconcile took.",
     lambda of: of.meters.seconds),
    (gauge, "bonny_paused_objects", "Objects whose handlers rest because of the annotation bonny.dev/paused.",
     lambda of: of.paused),
    (gauge, "controller_runtime_active_workers", "Reconciles in progress.", lambda of: len(of.running)),
    (gauge, "controller_runtime_max_concurrent_reconciles", "Maximum number of concurrent reconciles.",
     lambda of: of.slots),
)
QUEUES: Final[tuple[Row[_Queue], ...]] = (
    (gauge, "workqueue_depth", "Keys that are ready and wait for a worker.", lambda of: of.statistics.ready),
    (counter, "workqueue_adds_total", "Keys that became ready for a worker.", lambda of: of.router.queue.adds),
    (counter, "workqueue_retries_total", "Keys that were queued again for another try.",
     lambda of: of.router.queue.retries),
    (histogram, "workqueue_queue_duration_seconds", "Seconds that a ready key waited for a worker.",
     lambda of: of.meters.queued),
    (histogram, "workqueue_work_duration_seconds", "Seconds that a worker spent on a key.",
     lambda of: of.meters.seconds),
    (gauge, "workqueue_unfinished_work_seconds", "Seconds that all reconciles in progress have run, added up.",
     lambda of: sum(of.running)),
    (gauge, "workqueue_longest_running_processor_seconds",
     "Seconds that the longest-running reconcile has been in progress.", lambda of: max(of.running, default=0.0)),
    (gauge, "bonny_queue_oldest_seconds", "Seconds that the oldest ready key has waited for a worker.",
     lambda of: of.statistics.oldest),
    (gauge, "bonny_queue_delayed", "Keys that wait for another try.", lambda of: of.statistics.delayed),
    (gauge, "bonny_queue_timers", "Keys that will be queued at a set time.", lambda of: of.statistics.timers),
    (gauge, "bonny_barrier_waiting", "Keys that wait for their own write to appear in the watch.",
     lambda of: of.statistics.parked),
    (counter, "bonny_barrier_waits_total", "Times a key waited for its own write to appear in the watch.",
     lambda of: of.router.own_writes.waits),
    (counter, "bonny_barrier_missed_total",
     "Times a key gave up waiting (5 s) for its own write to appear in the watch.",
     lambda of: of.router.own_writes.missed),
)
STREAMS: Final[tuple[Row[Stream], ...]] = (
    (gauge, "bonny_stream_synced", "1 while all objects of the stream are in memory.", lambda of: of.synced),
    (gauge, "bonny_stream_age_seconds", "Seconds that the watch has been open; 0 while it is closed.",
     lambda of: time.monotonic() - of.opened if of.opened is not None else 0.0),
    (gauge, "bonny_stream_silent_seconds",
     "Seconds since the API server last sent something, or since a pause before the next request began.",
     lambda of: time.monotonic() - of.last_contact),
    (counter, "bonny_stream_lists_total", "Complete lists of the stream; 1 unless a watch could not be resumed.",
     lambda of: of.lists),
    (gauge, "bonny_store_objects", "Objects of the stream in memory.", lambda of: len(of.store)),
    (gauge, "bonny_store_bytes", "Bytes of the objects of the stream in memory, as the API server sent them.",
     lambda of: of.store.bytes),
)
# fmt: on
CONTROLLER: Final = ("controller",)
QUEUE: Final = ("name", "controller")
OUTCOMES: Final = ("recorded", "limited", "refused", "dropped")
# Not "namespace": Prometheus uses that label for the namespace of the pod that it scrapes.
STREAM: Final = ("reader", "resource", "watched", "selector", "form")


def families(process: Process) -> Iterator[Metric]:
    """All metrics except the default registry of prometheus-client."""
    watchers = [server for server in process.servers if isinstance(server, Watcher)]
    yield from _of_controllers([*process.workers, *(watcher.worker for watcher in watchers)])
    streams = {("controllers", *_labels(stream)): stream for stream in process.streams}
    for watcher in watchers:
        streams |= {(str(watcher), *_labels(stream)): stream for stream in watcher.streams}
    yield from _of_streams(streams)
    for extra in process.extras:
        yield from extra.families()
    yield from _of_requests(process.tasks.client.requests)
    correlator = process.recorder.correlator
    events = {(outcome,): getattr(correlator, outcome) for outcome in OUTCOMES}
    text = "Kubernetes Events: all (recorded), and events that are never written (limited, refused, dropped)."
    yield counter("bonny_events_total", text, ("outcome",), events)
    text = "Kubernetes Events that wait to be written; one that repeats counts each time."
    yield gauge("bonny_events_unsent", text, (), {(): correlator.unsent})
    halted = {(): process.tasks.failed}
    yield counter("bonny_tasks_halted_total", "Periodic tasks that an error halted.", (), halted)
    text = "Seconds in which the event loop was blocked for 3 s or longer."
    yield counter("bonny_event_loop_blocked_seconds_total", text, (), {(): process.monitor.blocked_seconds})
    tasks = {("running",): process.tasks.registered, ("halted",): len(process.tasks.halted)}
    text = "Periodic tasks by state; at most 100 halted ones are counted."
    yield gauge("bonny_tasks", text, ("state",), tasks)
    text = "1 while this process does the work: it is the leader, or runs without leader election."
    yield gauge("leader_election_master_status", text, ("name",), {(process.operator.name,): process.tasks.leading})


def _of_controllers(workers: Sequence[Worker]) -> Iterator[Metric]:
    by_name = _by_name(workers)
    results = {(name, result): n for name, worker in by_name.items() for result, n in _results(worker.meters).items()}
    yield counter("controller_runtime_reconcile_total", "Reconciles by result.", (*CONTROLLER, "result"), results)
    queues = {name: _queue(worker) for name, worker in by_name.items()}
    yield from each(CONTROLLERS, CONTROLLER, {(name,): queue for name, queue in queues.items()})
    yield from each(QUEUES, QUEUE, {(name, name): queue for name, queue in queues.items()})


def _of_streams(streams: Mapping[Labels, Stream]) -> Iterator[Metric]:
    yield from each(STREAMS, STREAM, streams)
    kinds = [*product(streams.items(), ErrorKind)]
    counts = {(*labels, kind): stream.errors[kind] for (labels, stream), kind in kinds}
    text = "Times the stream began to fail, by reason."
    yield counter("bonny_stream_failures_total", text, (*STREAM, "kind"), counts)
    current = {(*labels, kind): kind is (stream.error and stream.error.kind) for (labels, stream), kind in kinds}
    yield gauge("bonny_stream_failing", "1 while the stream fails for this reason.", (*STREAM, "kind"), current)


def _of_requests(requests: Requests) -> Iterator[Metric]:
    answers = {(code, method, requests.host): n for (method, code), n in requests.answers.items()}
    text = "Requests to the API server by status code and method."
    yield counter("rest_client_requests_total", text, ("code", "method", "host"), answers)
    seconds = {(method, requests.host): taken for method, taken in requests.seconds.items()}
    text = "Seconds that a request to the API server took; a watch counts until it is open."
    yield histogram("rest_client_request_duration_seconds", text, ("verb", "host"), seconds)
    text = "Seconds that requests waited because the API server answered 429."
    yield counter("bonny_client_throttled_seconds_total", text, (), {(): requests.throttled_seconds})


def _by_name(workers: Sequence[Worker]) -> dict[str, Worker]:
    """Workers by the name of their controller, and by the kind, too, where it has several: each has a worker."""
    names = [worker.name for worker in workers]
    return {
        worker.name if names.count(worker.name) == 1 else f"{worker.name}/{worker.kind.resource}": worker
        for worker in workers
    }


def _queue(worker: Worker) -> _Queue:
    now = time.monotonic()
    statistics = worker.router.queue.statistics(now=now)
    running = [now - since for since in worker.running.values()]
    return _Queue(worker.meters, worker.router, statistics, worker.max_concurrent, running, len(worker.paused))


def _results(meters: ReconcileCounts) -> dict[str, int]:
    """Reconciles by the results that controller-runtime has, and `waiting`."""
    others = {"error": meters.errors, "requeue": meters.requeued, "requeue_after": meters.requeued_after}
    others["waiting"] = meters.waiting
    return {"success": meters.seconds.count - sum(others.values()), **others}


def _labels(stream: Stream) -> Labels:
    kind = stream.kind
    resource = f"{kind.plural}.{kind.version}.{kind.group}".rstrip(".")  # as kubectl takes it
    selector = f"{kind.label_selector};{kind.field_selector}".strip(";")
    return resource, stream.namespace or "", selector, "metadata" if kind.metadata_only else "object"
