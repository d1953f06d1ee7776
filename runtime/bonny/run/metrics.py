"""Metrics: the figures of a running operator under /metrics, read from its parts when they are asked for.

Names of controller-runtime, client-go and all clients of Prometheus stand for what they mean there, so that dashboards
and alerts made for them work; those that begin with `bonny_` have no peer. Every series of a controller and of a stream
is there from the start, at zero. Labels are names of what the operator declares, and of closed sets: never of objects.

What a scrape costs does not depend on how many objects there are (docs/decisions/0025).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from ..client.metering import Requests
from ..core.queue import Statistics
from ..core.watch import ErrorKind
from ..engine.stream import Stream
from ..engine.worker import Worker
from ..events import EventRecorder
from ..servers.periodic import PeriodicTasks
from ..servers.server import Server
from ..servers.watcher import Watcher
from ..telemetry.prometheus import END, Family, Format, Metric, Type, each, exposition, foreign, process_families
from .event_loop import LoopMonitor

if TYPE_CHECKING:
    from ..scheduler.server import SchedulerServer

__all__ = ["families", "text"]

COUNTER, GAUGE, HISTOGRAM = Type.COUNTER, Type.GAUGE, Type.HISTOGRAM


class _Queue(NamedTuple):
    worker: Worker
    statistics: Statistics
    held: int
    held_seconds: float
    longest_seconds: float


class _Stream(NamedTuple):
    stream: Stream
    objects: int
    age: float
    silent: float


# fmt: off
CONTROLLERS: Final[tuple[Metric, ...]] = (
    ("controller_runtime_reconcile_errors_total", COUNTER, "Handlings that failed.", "worker.meters.errors"),
    ("controller_runtime_terminal_reconcile_errors_total", COUNTER, "Failures for good.", "worker.meters.terminal"),
    ("controller_runtime_reconcile_timeouts_total", COUNTER, "Handlings out of time.", "worker.meters.timeouts"),
    ("controller_runtime_reconcile_time_seconds", HISTOGRAM, "How long handlings took.", "worker.meters.seconds"),
    ("controller_runtime_active_workers", GAUGE, "Handlings under way.", "held"),
    ("controller_runtime_max_concurrent_reconciles", GAUGE, "Handlings at most.", "worker.max_concurrent"),
)
QUEUES: Final[tuple[Metric, ...]] = (
    ("workqueue_depth", GAUGE, "Keys that wait for a worker.", "statistics.ready"),
    ("workqueue_adds_total", COUNTER, "Keys that became ready.", "worker.router.queue.adds"),
    ("workqueue_retries_total", COUNTER, "Keys that came back for another try.", "worker.router.queue.retries"),
    ("workqueue_queue_duration_seconds", HISTOGRAM, "How long keys waited for a worker.", "worker.meters.queued"),
    ("workqueue_work_duration_seconds", HISTOGRAM, "How long workers held keys.", "worker.meters.seconds"),
    ("workqueue_unfinished_work_seconds", GAUGE, "How long keys have been held by now, all together.", "held_seconds"),
    ("workqueue_longest_running_processor_seconds", GAUGE, "How long the first of them has been.", "longest_seconds"),
    ("bonny_queue_oldest_seconds", GAUGE, "How long the oldest ready key has waited.", "statistics.oldest"),
    ("bonny_queue_delayed", GAUGE, "Keys that wait after a failure.", "statistics.delayed"),
    ("bonny_queue_timers", GAUGE, "Keys that come again at a time.", "statistics.timers"),
    ("bonny_barrier_waiting", GAUGE, "Keys that wait for a stream to show their writes.", "statistics.parked"),
    ("bonny_barrier_waits_total", COUNTER, "How often keys had to wait for that.", "worker.router.barrier_waits"),
    ("bonny_barrier_missed_total", COUNTER, "How often they did so in vain.", "worker.router.barriers_missed"),
)
STREAMS: Final[tuple[Metric, ...]] = (
    ("bonny_stream_synced", GAUGE, "Whether a complete list is in memory.", "stream.synced"),
    ("bonny_stream_age_seconds", GAUGE, "For how long the watch has been open; 0 while none is.", "age"),
    ("bonny_stream_silent_seconds", GAUGE, "Time since the server gave a sign, or a wait was begun.", "silent"),
    ("bonny_stream_lists_total", COUNTER, "Complete lists; without trouble there is one.", "stream.lists"),
    ("bonny_store_objects", GAUGE, "Objects in memory.", "objects"),
    ("bonny_store_bytes", GAUGE, "Their size, as the server wrote them.", "stream.store.bytes"),
)
OTHERS: Final[tuple[Metric, ...]] = (
    ("bonny_events_unsent", GAUGE, "Events that the API server does not know of yet.", "recorder.correlator.unsent"),
    ("bonny_tasks_halted_total", COUNTER, "Periodic tasks that were halted by an error.", "tasks.failed"),
    ("bonny_client_throttled_seconds_total", COUNTER, "Waits after a 429.", "requests.throttled_seconds"),
    ("bonny_event_loop_blocked_seconds_total", COUNTER, "Time in which the event loop was blocked, for 3 s or longer.",
     "monitor.blocked_seconds"),
)
# fmt: on
QUEUE: Final = ("name", "controller")
# Not "namespace", which is the name of the label by which Prometheus tells where it scrapes.
STREAM: Final = ("reader", "resource", "watched", "selector", "form")


class Parts(NamedTuple):
    """What is looked at; `name` is the operator's."""

    name: str
    workers: Sequence[Worker]
    streams: Sequence[Stream]
    servers: Iterable[Server]
    recorder: EventRecorder
    tasks: PeriodicTasks
    requests: Requests
    monitor: LoopMonitor
    schedulers: Sequence[SchedulerServer] = ()


def text(parts: Parts, form: Format = Format.TEXT) -> str:
    """All figures, as Prometheus reads them."""
    theirs = foreign(form)
    ours = exposition((*families(parts), *(() if theirs else process_families())), form)
    return ours + theirs + (END if form is Format.OPEN else "")


def families(parts: Parts) -> Iterator[Family]:
    """All figures but those of the process."""
    now = time.monotonic()
    watchers = [server for server in parts.servers if isinstance(server, Watcher)]
    workers = _named([*parts.workers, *(watcher.worker for watcher in watchers)])
    queues = {name: _queue(worker, now) for name, worker in workers.items()}
    results = {(name, result): n for name, queue in queues.items() for result, n in _results(queue.worker).items()}
    told = "Handlings, by how they ended."
    yield Family("controller_runtime_reconcile_total", COUNTER, told, ("controller", "result"), results)
    yield from each(CONTROLLERS, ("controller",), {(name,): queue for name, queue in queues.items()})
    yield from each(QUEUES, QUEUE, {(name, name): queue for name, queue in queues.items()})

    streams = {("controllers", *_labels(stream)): _stream(stream, now) for stream in parts.streams}
    for watcher in watchers:
        streams |= {(str(watcher), *_labels(stream)): _stream(stream, now) for stream in watcher.streams}
    yield from each(STREAMS, STREAM, streams)
    troubles = {(*names, kind): (stream.stream, kind) for names, stream in streams.items() for kind in ErrorKind}
    counts = {names: stream.errors[kind] for names, (stream, kind) in troubles.items()}
    told = "How often a stream could not go on."
    yield Family("bonny_stream_troubles_total", COUNTER, told, (*STREAM, "kind"), counts)
    current = {
        names: stream.error is not None and stream.error.kind is kind for names, (stream, kind) in troubles.items()
    }
    yield Family("bonny_stream_trouble", GAUGE, "Whether it cannot go on now.", (*STREAM, "kind"), current)

    if parts.schedulers:
        from ..scheduler.metrics import families as of_schedulers  # noqa: PLC0415  loaded only where there is one

        yield from of_schedulers(parts.schedulers)

    requests, labels = parts.requests, ("code", "method", "host")
    answers = {(code, method, requests.host): count for (method, code), count in requests.answers.items()}
    yield Family("rest_client_requests_total", COUNTER, "Requests to the API server.", labels, answers)
    seconds = {(method, requests.host): histogram for method, histogram in requests.seconds.items()}
    told = "How long requests took; a watch: until it was open."
    yield Family("rest_client_request_duration_seconds", HISTOGRAM, told, ("verb", "host"), seconds)

    counted = {
        (name,): getattr(parts.recorder.correlator, name) for name in ("recorded", "limited", "refused", "dropped")
    }
    told = "Occurrences of events: all, and those that will not be seen."
    yield Family("bonny_events_total", COUNTER, told, ("outcome",), counted)
    yield from each(OTHERS, (), {(): parts})
    tasks = {("running",): parts.tasks.registered, ("halted",): len(parts.tasks.halted)}
    yield Family(
        "bonny_tasks", GAUGE, "Periodic tasks; of those that an error halted, the last 100.", ("state",), tasks
    )
    leading = {(parts.name,): parts.tasks.leading}
    yield Family("leader_election_master_status", GAUGE, "Whether this process does the work.", ("name",), leading)


def _queue(worker: Worker, now: float) -> _Queue:
    held = [now - since for since in worker.running]
    return _Queue(worker, worker.router.queue.statistics(now=now), len(held), sum(held), max(held, default=0.0))


def _stream(stream: Stream, now: float) -> _Stream:
    return _Stream(stream, len(stream.store), now - (stream.opened or now), now - stream.last_contact)


def _named(workers: Sequence[Worker]) -> dict[str, Worker]:
    """By the name of the controller, and the kind where it has several: there is a worker for each."""
    names = [worker.name for worker in workers]
    return {
        worker.name if names.count(worker.name) == 1 else f"{worker.name}/{worker.kind.resource}": worker
        for worker in workers
    }


def _results(worker: Worker) -> dict[str, int]:
    """By the names that controller-runtime gives them."""
    meters = worker.meters
    others = {"error": meters.errors, "requeue": meters.requeued, "requeue_after": meters.requeued_after}
    return {"success": meters.seconds.count - sum(others.values()), **others}


def _labels(stream: Stream) -> tuple[str, ...]:
    kind = stream.kind
    resource = f"{kind.plural}.{kind.version}.{kind.group}".rstrip(".")  # as kubectl takes it
    selector = f"{kind.label_selector};{kind.field_selector}".strip(";")
    return resource, stream.namespace or "", selector, "metadata" if kind.metadata_only else "object"
