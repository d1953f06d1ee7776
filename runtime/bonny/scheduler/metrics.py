"""Metrics of schedulers, under kube-scheduler's names where they mean the same; a profile is a scheduler."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeVar

from ..core.meters import Histogram
from ..telemetry.prometheus import Family, Metric, Type, each
from .pending import PodState
from .server import SchedulerServer

__all__ = ["families"]

COUNTER, GAUGE, HISTOGRAM = Type.COUNTER, Type.GAUGE, Type.HISTOGRAM

_Figure = TypeVar("_Figure", int, Histogram)

SCHEDULERS: Final[tuple[Metric, ...]] = (
    ("scheduler_scheduling_algorithm_duration_seconds", HISTOGRAM, "How long choices took.", "meters.choices"),
    ("bonny_scheduler_bindings", GAUGE, "Bindings and reports of pods without a node that are on their way.", "busy"),
)
PROFILE: Final = ("profile",)
LINES: Final = {PodState.READY: "active", PodState.WAITING: "backoff", PodState.PARKED: "unschedulable"}


def families(servers: Sequence[SchedulerServer]) -> Iterator[Family]:
    """All metrics of these schedulers."""
    yield from each(SCHEDULERS, PROFILE, {(server.scheduler.name,): server for server in servers})

    def by(figures: Callable[[SchedulerServer], Mapping[str, _Figure]]) -> dict[tuple[str, str], _Figure]:
        return {(server.scheduler.name, value): n for server in servers for value, n in figures(server).items()}

    waiting = by(lambda server: {LINES[state]: n for state, n in server.statistics().items() if state in LINES})
    told = "Pods without a node: to be tried at once, after a time, and when something changed."
    yield Family("scheduler_pending_pods", GAUGE, told, (*PROFILE, "queue"), waiting)
    told = "Pods that fit nowhere, by what they fail at; one may count for several."
    unschedulable = by(lambda server: server.unschedulable())
    yield Family("scheduler_unschedulable_pods", GAUGE, told, (*PROFILE, "plugin"), unschedulable)
    ends = by(lambda server: server.meters.seconds)
    told, results = "How long attempts took, binding included.", (*PROFILE, "result")
    yield Family("scheduler_scheduling_attempt_duration_seconds", HISTOGRAM, told, results, ends)
    counts = {values: seconds.count for values, seconds in ends.items()}
    yield Family("scheduler_schedule_attempts_total", COUNTER, "Attempts, by how they ended.", results, counts)
    bindings = {(of, "Bind", status): n for (of, status), n in by(lambda server: server.meters.bindings).items()}
    told, labels = "How long bindings took.", (*PROFILE, "extension_point", "status")
    yield Family("scheduler_framework_extension_point_duration_seconds", HISTOGRAM, told, labels, bindings)
