"""Traffic: how many requests there were, at most in a second, and at most for one thing in ten seconds.

The first bound is for the operator as a whole. The second tells a busy loop from much work: whatever fails is tried
again after a wait, so that no object, list or watch is asked for again and again. Events count only as a part of the
whole: they are made at one path, which does not say what they are about.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from bonny_dev.testing.faults import ProxiedRequest

__all__ = ["WINDOW_SECONDS", "Traffic", "is_of_events"]

WINDOW_SECONDS: Final = 10


def is_of_events(request: ProxiedRequest) -> bool:
    """Whether it makes or changes an Event."""
    return request.path.startswith("/apis/events.k8s.io/")


class Traffic:
    """Sums over a growing list of requests, in the order of their times."""

    def __init__(self) -> None:
        self.total = 0
        self.peak = 0
        """The most requests in one second."""

        self.hottest: tuple[int, str] = (0, "none")
        """The most requests of one method for one path in one window."""

        self._second = (-1, 0)
        self._window = -1
        self._asked: Counter[str] = Counter()

    def take(self, requests: list[ProxiedRequest]) -> None:
        """Take in those that are new in `requests`, which only ever grows."""
        for request in requests[self.total :]:
            self._take(request)

    def _take(self, request: ProxiedRequest) -> None:
        self.total += 1
        second = int(request.time)
        self._second = (second, self._second[1] + 1 if second == self._second[0] else 1)
        self.peak = max(self.peak, self._second[1])
        if second // WINDOW_SECONDS != self._window:
            self._window = second // WINDOW_SECONDS
            self._asked.clear()
        if is_of_events(request):
            return
        what = f"{'WATCH' if request.is_watch else request.method} {request.path}"
        self._asked[what] += 1
        self.hottest = max(self.hottest, (self._asked[what], what))
