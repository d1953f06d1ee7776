"""Series: which events are written, which are only counted, and when.

It decides what `bonny.events` sends.

Equal events are one series while no more than the window lies between two of them:

- The first occurrence is written, and the second is written at once, so that people see that it happens again.
- Later ones are counted. A series that grew is written again one window after its last write; that write is also the
  final one if the series ended meanwhile. So the count that people read is not older than the window, the server's time
  to live of a running series does not end, and a series that runs for long costs ten requests an hour.
- A series that is written to the end is forgotten one window after its last occurrence.

Only the beginning of a series takes from the budget of its object: repeats are what series make cheap.

Counts add up: recorded = limited + refused + dropped + unsent + what stands in the written events.
Memory is bounded by a number of series and as many budgets; what was recorded longest ago makes room.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final

# As in client-go and kube-rs. Longer than the longest wait of a key that fails (300 s), so its failures are one series.
WINDOW_SECONDS: Final = 360.0
# The spam filter of client-go (tools/record): a burst for an object's start, and little for what is always unhealthy.
BURST: Final = 25
REFILL_SECONDS: Final = 300.0
# As many as client-go's caches hold. They take 5 MB, and 10 MB with the longest messages.
MOST_SERIES: Final = 4096
# With waits of 2 to 30 s this outlasts a restart of the API server.
MOST_TRIES: Final = 8


@dataclass(slots=True, eq=False)
class Series:
    """The occurrences of one event; times are monotonic seconds. Only the correlator changes it."""

    key: bytes
    number: int
    """Identifies it: no other series of the correlator has the same."""

    first: float
    last: float
    due: float
    """No write before this time."""

    count: int = 0
    sent: int = 0
    """The count that the server has stored."""

    writing: int = 0
    """The count that is being written; 0: no write is in progress."""

    tries: int = 0
    event_time: str = ""
    """The time of `first` on the clock of the first write: it cannot be changed later."""


class Correlator:
    """See the module. `now` is a monotonic clock in seconds."""

    def __init__(self, *, limit: int = MOST_SERIES) -> None:
        """`limit` bounds the series that are remembered, 2 or more."""
        self.recorded = self.limited = self.refused = self.dropped = 0
        """Occurrences since the start. An occurrence is dropped if it was tried too often, or found no room."""

        self._limit = limit
        self._series: OrderedDict[bytes, Series] = OrderedDict()
        self._budgets: OrderedDict[Hashable, float] = OrderedDict()
        """When each will be whole again."""

    @property
    def unsent(self) -> int:
        """Occurrences that the server does not know of yet."""
        return sum(series.count - series.sent for series in self._series.values())

    def record(self, key: bytes, *, subject: Hashable, now: float) -> bool:
        """The event `key` occurred; `subject` is whose budget it takes from. Returns: whether a write is due."""
        self.recorded += 1
        series = self._series.get(key)
        if series is None:
            whole = max(self._budgets.pop(subject, now), now)
            admitted = whole - now <= (BURST - 1) * REFILL_SECONDS
            self._budgets[subject] = whole + REFILL_SECONDS * admitted
            if len(self._budgets) > self._limit:
                self._budgets.popitem(last=False)
            if not admitted:
                self.limited += 1
                return False
            if len(self._series) >= self._limit:
                self.dropped += self._forget(next(old for old in self._series.values() if not old.writing))
            series = self._series[key] = Series(key, self.recorded, first=now, last=now, due=now)
        series.count += 1
        series.last = now
        self._series.move_to_end(key)
        return series.due <= now

    def take(self, *, now: float) -> Series | None:
        """Return a series to write, or None; forget ended series. Call `settle` before the next `take`."""
        for series in list(self._series.values()):
            if series.count > series.sent:
                if series.due <= now:
                    series.writing = series.count
                    return series
            elif now - series.last >= WINDOW_SECONDS:
                self._forget(series)
        return None

    def settle(self, series: Series, *, stored: bool | None, now: float) -> None:
        """Report the result of a write. False: it failed, and is tried again; None: the server will never accept it."""
        written, series.writing = series.writing, 0
        series.tries = 0 if stored else series.tries + 1
        if stored:
            series.sent = written
            series.due = now + WINDOW_SECONDS if written > 1 else now
        elif stored is None:
            self.refused += self._forget(series)
        elif series.tries >= MOST_TRIES:
            self.dropped += self._forget(series)
        else:
            self._series.move_to_end(series.key)  # behind the others: the cause may be this event

    def _forget(self, series: Series) -> int:
        """Returns: how many of its occurrences were not sent."""
        del self._series[series.key]
        return series.count - series.sent
