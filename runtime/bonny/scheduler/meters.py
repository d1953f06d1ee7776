"""Meters: how a scheduler's attempts went, as plain numbers. `bonny.scheduler.metrics` names them."""

from __future__ import annotations

from enum import StrEnum

from ..core.meters import Histogram


class Result(StrEnum):
    """How an attempt ended; the values of kube-scheduler's label."""

    SCHEDULED = "scheduled"
    UNSCHEDULABLE = "unschedulable"
    ERROR = "error"
    """Of the selection, or of the binding."""


class Attempts:
    """The meters of one scheduler. A pod that was deleted meanwhile does not count."""

    def __init__(self) -> None:
        self.choices = Histogram()
        """Selecting a node and checking it."""

        self.bindings: dict[str, Histogram] = {status: Histogram() for status in ("Success", "Error")}
        """From asking for a binding to its answer."""

        self.seconds: dict[str, Histogram] = {result: Histogram() for result in Result}
        """From the beginning of the choice to the end of the attempt."""
