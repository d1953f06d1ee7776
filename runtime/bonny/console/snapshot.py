"""Snapshot: the memory of a process as plain values; of objects, their names. Ages and waits are seconds."""

from __future__ import annotations

import time
from itertools import chain
from typing import TYPE_CHECKING, Any

from ..engine.worker import Worker
from ..resource import Key
from .runs import History

if TYPE_CHECKING:
    from ..engine.stream import Stream
    from ..run.process import Process


def overview(process: Process, history: History) -> dict[str, Any]:
    """The whole process: streams, queues and slots."""
    return {
        "operator": process.operator.name,
        "version": process.operator.version,
        "pod": process.config.pod_name,
        "leading": process.tasks.leading,
        "streams": [_stream(each) for each in (*process.streams, *chain(*(run.streams for run in process.extras)))],
        "controllers": [_controller(each, history) for each in process.workers],
    }


def _stream(stream: Stream) -> dict[str, Any]:
    now, error = time.monotonic(), stream.error
    return {
        "name": str(stream),
        "synced": stream.synced,
        "objects": len(stream.store),
        "silent": now - stream.last_contact,
        "open": None if stream.opened is None else now - stream.opened,
        "error": error and f"{error.kind.value} ({error.verb} {error.status}: {error.message})",
        "failing": error and now - error.since,
    }


def _controller(worker: Worker, history: History) -> dict[str, Any]:
    counts, meters = worker.router.queue.statistics(now=time.monotonic()), worker.meters
    running = history.running(worker.name)
    return {
        "name": worker.name,
        "kind": worker.kind.resource,
        "slots": worker.max_concurrent,
        "busy": len(worker.running),
        "running": [{"object": str(key), "seconds": time.time() - run.at} for key, run in running],
        "ready": counts.ready,
        "delayed": counts.delayed,
        "timers": counts.timers,
        "oldest": counts.oldest,
        "succeeded": worker.handled,
        "errors": meters.errors,
        "mean": meters.seconds.sum / max(meters.seconds.count, 1),
    }


def outcomes(worker: Worker, history: History) -> dict[str, Any]:
    """The outcome of the last run of each object of a controller, by the object's name."""
    last = ((key, runs[-1]) for (name, key), runs in history.runs.items() if name == worker.name)
    return {str(key): {"outcome": run.outcome, "at": run.at, "error": run.error} for key, run in last}


def one(worker: Worker, key: Key, history: History) -> dict[str, Any]:
    """One object: where it is in the queue, and its last runs, newest first."""
    record = worker.router.records.get(key)
    return {
        "watched": worker.router.item(key) is not None,
        "stopped": record is not None and record.stopped is not None,
        "queue": worker.router.queue.position(key, now=time.monotonic())._asdict(),
        "runs": list(reversed(history.runs.get((worker.name, key), ()))),
    }
