"""Series: which events are written, which are only counted, and when.

You need it to see when an event that happens again costs a request: what `bonny.events` sends is decided here.
Elsewhere: what makes two events equal (`events`), how long to wait after a failure (`backoff`).

Equal events are one series while no more than the window lies between two of them:

- The first occurrence is created, the second is written at once, so that people see that it happens again.
- Later ones are counted. A series that grew is written again one window after its last write; that write is also the
  final one if the series ended meanwhile. So the count that people read is not older than the window, the server's time
  to live of a running series does not end, and a series that runs for long costs ten requests an hour.
- A series that is written to the end is forgotten one window after its last occurrence.

client-go (tools/events) has a timer for each half of this: every 30 minutes it writes all series, also ones that did
not grow, and it writes the last count 6 to 12 minutes after the end.

Only the beginning of a series takes from the budget of its object: repeats are what series make cheap.

Counts add up: recorded = limited + refused + dropped + unsent + what stands in the written events.
Memory is bounded by a number of series and as many budgets; what was recorded longest ago makes room.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

# As in client-go and kube-rs. Longer than the longest wait of a key that fails (300 s), so its failures are one series.
WINDOW_SECONDS: Final = 360.0
# Short against the window; looking at all series takes a millisecond.
SWEEP_SECONDS: Final = 30.0
# The spam filter of client-go (tools/record): a burst for an object's start, and little for what is always unhealthy.
BURST: Final = 25
REFILL_SECONDS: Final = 300.0
# As many as client-go's caches hold. They take 5 MB, and 10 MB with the longest messages.
MOST_SERIES: Final = 4096
# With waits of 2 to 30 s this outlasts a restart of the API server, and not its absence for a night.
MOST_TRIES: Final = 8

K = TypeVar("K", bound=Hashable)


@dataclass(slots=True, eq=False)
class Series(Generic[K]):
    """The occurrences of one event; times are monotonic seconds. Only the correlator changes it."""

    key: K
    number: int
    """Names it for good: no other series of the correlator has it."""

    first: float
    last: float
    count: int = 0
    sent: int = 0
    """How many the server knows of; 0: it is to be created."""

    writing: int = 0
    """The count that is being written; 0: no write is in progress."""

    written: float = 0.0
    tries: int = 0


class Correlator(Generic[K]):
    """See the module. `now` is a monotonic clock in seconds."""

    def __init__(self, *, limit: int = MOST_SERIES) -> None:
        """`limit` bounds the series that are remembered; it is higher than the number of those written at a time."""
        self.recorded = self.limited = self.refused = self.dropped = 0
        """Occurrences since the start. An occurrence is dropped if it was tried too often, or found no room."""

        self._limit = limit
        self._numbers = 0
        self._series: OrderedDict[K, Series[K]] = OrderedDict()
        self._ready: OrderedDict[K, Series[K]] = OrderedDict()
        self._budgets: OrderedDict[Hashable, float] = OrderedDict()
        """When each will be whole again."""

        self._swept = 0.0

    def __len__(self) -> int:
        """How many series are remembered."""
        return len(self._series)

    @property
    def unsent(self) -> int:
        """How many occurrences the server does not know of yet."""
        return sum(series.count - series.sent for series in self._series.values())

    def record(self, key: K, *, subject: Hashable, now: float) -> None:
        """The event `key` occurred; `subject` is whose budget it takes from."""
        self.recorded += 1
        series = self._series.get(key)
        if series is None:
            if not self._admits(subject, now):
                self.limited += 1
                return
            if len(self._series) >= self._limit:
                self.dropped += self._forget(next(old for old in self._series.values() if not old.writing))
            self._numbers += 1
            series = self._series[key] = Series(key, self._numbers, first=now, last=now)
        series.count += 1
        series.last = now
        self._series.move_to_end(key)
        self._queue(series, now)

    def take(self, *, now: float) -> Series[K] | None:
        """Return the series to write next, or None. The caller must call `settle` for it."""
        if now - self._swept >= SWEEP_SECONDS:
            self.sweep(now=now)
        if not self._ready:
            return None
        _, series = self._ready.popitem(last=False)
        series.writing = series.count
        return series

    def settle(self, series: Series[K], *, sent: int | None, now: float) -> None:
        """Report the result of a write: the server knows of `sent` occurrences by now.

        None: it will never take it. Any number but the one that was being written is a try that failed: what it was
        before, 0 where the event turned out to be gone, 1 where an earlier try had created it, with whatever count.
        """
        told, series.writing = series.writing, 0
        if sent is None:
            self.refused += self._forget(series)
            return
        series.sent = sent
        series.tries += 1
        if sent == told:
            series.written, series.tries = now, 0
        if series.tries >= MOST_TRIES:
            self.dropped += self._forget(series)
        else:
            self._queue(series, now)

    def sweep(self, *, now: float) -> None:
        """Make ready what is due at `now`, and forget what has ended. `take` does it now and then."""
        self._swept = now
        for series in list(self._series.values()):
            self._queue(series, now)
            if series.count == series.sent and not series.writing and now - series.last >= WINDOW_SECONDS:
                self._forget(series)

    def _admits(self, subject: Hashable, now: float) -> bool:
        """Whether the budget of `subject` allows for another series."""
        whole = max(self._budgets.pop(subject, now), now)
        admitted = whole - now <= (BURST - 1) * REFILL_SECONDS
        self._budgets[subject] = whole + REFILL_SECONDS * admitted
        if len(self._budgets) > self._limit:
            self._budgets.popitem(last=False)
        return admitted

    def _queue(self, series: Series[K], now: float) -> None:
        """Make it ready if it has grown and its time has come."""
        due = series.sent <= 1 or now - series.written >= WINDOW_SECONDS
        if due and series.count > series.sent and not series.writing:
            self._ready[series.key] = series

    def _forget(self, series: Series[K]) -> int:
        """Returns: how many of its occurrences were not sent."""
        self._ready.pop(series.key, None)
        del self._series[series.key]
        return series.count - series.sent
