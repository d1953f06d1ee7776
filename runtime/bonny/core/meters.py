"""Meters: what is counted and timed on the way of a change, as plain numbers; one observation takes 0.2 us.

You need it to count what happens often. What is told of it, and under which names: `bonny.run.metrics`.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Final, NamedTuple

from ..errors import BonnyError, Retry, Terminal

# From a handler that only compares to one that waits for a machine to be bought; half a decade a bucket, because each
# bucket is a series for each controller.
BOUNDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)


class Exemplar(NamedTuple):
    """The trace and the span in which something was observed, in hexadecimal digits; `at` is Unix time, in seconds."""

    trace_id: str
    span_id: str
    at: float


class Histogram:
    """How many observations lie within which of `BOUNDS`, in seconds."""

    __slots__ = ("counts", "exemplars", "sum")

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS) + 1)
        """For each bound, what is not above it, but above the one before; last, what is above all."""

        self.sum = 0.0
        self.exemplars: dict[int, tuple[float, Exemplar]] = {}
        """By the place of their bound: the last observation with a trace."""

    def observe(self, seconds: float, exemplar: Exemplar | None = None) -> None:
        """Count one more."""
        place = bisect_left(BOUNDS, seconds)
        self.counts[place] += 1
        self.sum += seconds
        if exemplar is not None:
            self.exemplars[place] = (seconds, exemplar)

    @property
    def count(self) -> int:
        """All observations."""
        return sum(self.counts)


class ReconcileCounts:
    """How the keys of one controller were worked off. What is in none of the counts succeeded."""

    __slots__ = ("errors", "queued", "requeued", "requeued_after", "seconds", "terminal", "timeouts")

    def __init__(self) -> None:
        self.seconds = Histogram()
        """From being taken from the queue to being given back."""

        self.queued = Histogram()
        """From being ready to being taken."""

        self.errors = self.terminal = self.timeouts = 0
        """Failures; `terminal` and `timeouts` are among the errors."""

        self.requeued = self.requeued_after = 0
        """Those that asked for another handling: as soon as may be, or after a time."""

    def failed(self, error: Exception) -> None:
        """Count a handling that ended with `error`, which may only ask for another one."""
        if isinstance(error, Retry):
            if error.after is None:
                self.requeued += 1
            else:
                self.requeued_after += 1
            return
        self.errors += 1
        if isinstance(error, Terminal):
            self.terminal += 1
        if isinstance(error, BonnyError) and isinstance(error, TimeoutError):
            self.timeouts += 1
