"""Snapshot: the memory of a process as plain values; of objects, their names. Ages and waits are seconds.

`clock` is the monotonic clock of the process, and `now` its wall clock: other times are of one of them.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from ..resource import Key
from .runs import History

if TYPE_CHECKING:
    from ..engine.stream import Stream
    from ..engine.worker import Worker
    from ..run.process import Process


def overview(process: Process, history: History) -> dict[str, Any]:
    """The whole process: streams, queues, slots, and a request of each sort."""
    names = {"operator": process.operator.name, "version": process.operator.version, "pod": process.config.pod_name}
    state = {"leading": process.tasks.leading, "notes": process.readiness().lines, "clock": time.monotonic()}
    streams = [*process.streams, *(each for run in process.extras for each in run.streams)]
    parts = {"streams": [*map(_stream, streams)], "controllers": [*map(_controller, process.workers)]}
    return {**names, **state, **parts, "requests": [*history.requests.values()]}


def _stream(stream: Stream) -> dict[str, Any]:
    shown = {name: getattr(stream, name) for name in ("synced", "last_contact", "opened", "error", "errors")}
    return {"name": str(stream), "objects": len(stream.store), **shown}


def _controller(worker: Worker) -> dict[str, Any]:
    queue, meters = worker.router.queue.statistics(now=time.monotonic()), worker.meters
    numbers = {"slots": worker.max_concurrent, "succeeded": worker.handled, "errors": meters.errors}
    mean = meters.seconds.sum / max(meters.seconds.count, 1)
    return {"name": worker.name, "kind": worker.kind.resource, "queue": queue, "mean": mean, **numbers}


def outcomes(workers: list[Worker], history: History, since: int) -> dict[str, Any]:
    """The last run of each object where one began or ended after the version `since`; `whole`: it is all there is."""
    queues = {(each.name, each.kind.resource): each.router.queue for each in workers}
    runs, clock = [], time.monotonic()
    for (*names, key), (*_, run) in reversed(history.runs.items()):
        if run.version <= since:
            break
        place = queues[names[0], names[1]].position(key, now=clock)
        wait = place.seconds if place.state == "delayed" else place.timer_seconds
        runs.append((*names, str(key), run.outcome, run.at, run.seconds, run.error, run.tries, wait))
    return {"version": history.version, "whole": since < history.first, "now": time.time(), "runs": runs}


def one(worker: Worker, key: Key, history: History) -> dict[str, Any]:
    """One object: where it is in the queue, and its last runs, newest first."""
    queue = worker.router.queue.position(key, now=time.monotonic())
    runs = history.runs.get((worker.name, worker.kind.resource, key), ())
    return {"queue": queue._asdict(), "runs": [*reversed(runs)]}
