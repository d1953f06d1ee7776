"""Meters: counters and histograms of the hot path, as plain numbers; one observation takes 0.2 us.

You need it to count frequent events; `bonny.run.metrics` names them.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Final, NamedTuple

from ..errors import BonnyError, Retry, Terminal

# Only two or three buckets per decade: each is a time series per controller.
BOUNDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)


class Exemplar(NamedTuple):
    """The trace and span of an observation, in hexadecimal digits; `at` is Unix time in seconds."""

    trace_id: str
    span_id: str
    at: float


class Histogram:
    """Counts observations in seconds by bucket (`BOUNDS`)."""

    __slots__ = ("counts", "exemplars", "sum")

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS) + 1)
        """By bucket: observations up to its bound and above the previous one; the last has those above all bounds."""

        self.sum = 0.0
        self.exemplars: dict[int, tuple[float, Exemplar]] = {}
        """By index of the bucket: the last observation with a trace."""

    def observe(self, seconds: float, exemplar: Exemplar | None = None) -> None:
        """Count one more."""
        bucket = bisect_left(BOUNDS, seconds)
        self.counts[bucket] += 1
        self.sum += seconds
        if exemplar is not None:
            self.exemplars[bucket] = (seconds, exemplar)

    @property
    def count(self) -> int:
        """All observations."""
        return sum(self.counts)


class ReconcileCounts:
    """Outcomes of the reconciles of one controller. Reconciles in none of the counts succeeded."""

    __slots__ = ("errors", "queued", "requeued", "requeued_after", "seconds", "terminal", "timeouts", "waiting")

    def __init__(self) -> None:
        self.seconds = Histogram()
        """Time from taking a key from the queue to giving it back."""

        self.queued = Histogram()
        """Time from a key being ready to being taken."""

        self.errors = self.terminal = self.timeouts = 0
        """Failures; `terminal` and `timeouts` are among the errors."""

        self.requeued = self.requeued_after = 0
        """Reconciles that asked for another try: with the key's backoff, or after a given time."""

        self.waiting = 0
        """Reconciles that wait (`Wait`, `after=`)."""

    def failed(self, error: Exception) -> None:
        """Count a reconcile that ended with `error`, which may just be a `Retry`."""
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
