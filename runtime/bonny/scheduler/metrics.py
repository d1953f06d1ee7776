"""Metrics of schedulers, under kube-scheduler's names where they mean the same; a profile is a scheduler."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeVar

from prometheus_client.core import Metric

from ..core.meters import Histogram
from ..telemetry.prometheus import counter, gauge, histogram
from .pending import PodState
from .server import SchedulerServer

V = TypeVar("V", int, Histogram)

PROFILE: Final = ("profile",)


def families(servers: Sequence[SchedulerServer]) -> Iterator[Metric]:
    """All metrics of these schedulers."""
    choices = {(server.scheduler.name,): server.cycle.meters.choices for server in servers}
    text = "Seconds that the choice of a node took."
    yield histogram("scheduler_scheduling_algorithm_duration_seconds", text, PROFILE, choices)
    busy = {(server.scheduler.name,): len(server.cycle.tasks) for server in servers}
    yield gauge("bonny_scheduler_bindings", "Bindings and conditions of pods that are being written.", PROFILE, busy)

    def by(read: Callable[[SchedulerServer], Mapping[str, V]]) -> dict[tuple[str, str], V]:
        return {(server.scheduler.name, value): n for server in servers for value, n in read(server).items()}

    waiting = by(lambda server: {state: n for state, n in server.statistics().items() if state is not PodState.TAKEN})
    text = "Pods without a node: to be tried at once (active), after a time (backoff), after a change (unschedulable)."
    yield gauge("scheduler_pending_pods", text, (*PROFILE, "queue"), waiting)
    text = "Pods that fit on no node, by the check that fails; one pod may count for several."
    yield gauge("scheduler_unschedulable_pods", text, (*PROFILE, "plugin"), by(lambda server: server.unschedulable()))
    results, seconds = (*PROFILE, "result"), by(lambda server: server.cycle.meters.seconds)
    text = "Seconds that an attempt to schedule a pod took, binding included."
    yield histogram("scheduler_scheduling_attempt_duration_seconds", text, results, seconds)
    attempts = {values: taken.count for values, taken in seconds.items()}
    yield counter("scheduler_schedule_attempts_total", "Attempts to schedule a pod by result.", results, attempts)
    bindings = {(of, "Bind", status): taken for (of, status), taken in by(lambda of: of.cycle.meters.bindings).items()}
    labels = (*PROFILE, "extension_point", "status")
    text = "Seconds that the binding of a pod took."
    yield histogram("scheduler_framework_extension_point_duration_seconds", text, labels, bindings)
