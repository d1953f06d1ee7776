"""Pending: the pods that wait for a node, by UID, and which of them is next.

Rules, each with a test of its name in tests/unit/scheduler/test_pending.py:
- The highest priority is first; of equals the pod that was created first.
- A pod that was taken comes back by `retry` or `park`, each time after a longer wait, of 1 s up to 10 s.
- A parked pod waits until `wake`, and not for less than its wait; without that, for 5 minutes.
- What changed (`add` with `anew`) does not wait, and its failures are forgotten; also if it was taken meanwhile.
- Pods that come and go, or change, leave nothing behind: nobody takes a pod on a standby.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from heapq import heapify, heappop, heappush
from typing import Any, Final, TypeAlias

__all__ = ["Order", "Pending", "State"]

# As kube-scheduler (podInitialBackoffSeconds, podMaxBackoffSeconds): a pod that fits nowhere is no emergency.
FIRST_WAIT_SECONDS: Final = 1.0
LONGEST_WAIT_SECONDS: Final = 10.0
# As kube-scheduler (podMaxInUnschedulablePodsDuration): nothing is forgotten, whatever was overlooked.
PARKED_SECONDS: Final = 300.0
# Void places that a heap may hold before it is worth while to look for them.
SLACK: Final = 64

Order: TypeAlias = tuple[int, str]
"""Priority below zero, and when the pod was created."""


class State(StrEnum):
    """Where a pod stands. The values are label values of metrics."""

    READY = "ready"
    WAITING = "waiting"
    """For a time."""

    PARKED = "parked"
    """For a change."""

    TAKEN = "taken"


@dataclass(slots=True)
class _Entry:
    order: Order
    ticket: int = 0
    """Identifies its place in a heap; places with an older ticket are void."""

    state: State = State.READY
    failures: int = 0
    earliest: float = 0.0
    """Before this moment it is not taken again."""

    again: bool = False
    """It changed while it was taken."""


class Pending:
    """See the module. `now` is a monotonic clock in seconds."""

    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}
        self._ready: list[tuple[Order, int, str]] = []
        self._later: list[tuple[float, int, str]] = []
        self._tickets = 0

    def add(self, uid: str, order: Order, *, anew: bool = False) -> None:
        """Queue `uid`; harmless when it is known. `anew`: it is not what was tried before."""
        entry = self._entries.get(uid)
        if entry is None:
            entry = self._entries[uid] = _Entry(order)
        elif not anew:
            return
        entry.order, entry.failures = order, 0
        if entry.state is State.TAKEN:
            entry.again = True
        else:
            self._make_ready(uid, entry)

    def take(self, *, now: float) -> str | None:
        """The next pod, or None. The caller owes a `retry`, `park` or `forget` for it."""
        while (due := self.next_due()) is not None and due <= now:
            uid = heappop(self._later)[2]
            self._make_ready(uid, self._entries[uid])
        while self._ready:
            place = heappop(self._ready)
            if self._stands(place):
                entry = self._entries[place[2]]
                entry.state, entry.again = State.TAKEN, False
                return place[2]
        return None

    def retry(self, uid: str, *, now: float, after: float = 0.0) -> None:
        """The pod was tried in vain: try again after its wait, and not before `after` seconds."""
        self._wait(uid, now=now, after=after, parked=False)

    def park(self, uid: str, *, now: float) -> None:
        """The pod fits nowhere: try again when something changed that may help."""
        self._wait(uid, now=now, after=0.0, parked=True)

    def wake(self, uid: str) -> None:
        """Something changed that may help. Harmless when it is not parked."""
        entry = self._entries.get(uid)
        if entry is not None and entry.state is State.PARKED:
            self._place(uid, entry, State.WAITING, entry.earliest)

    def forget(self, uid: str) -> None:
        """The pod has a node, or is gone."""
        self._entries.pop(uid, None)

    def next_due(self) -> float | None:
        """When the next pod may be taken that may not be now; None when there is none."""
        while self._later:
            if self._stands(self._later[0]):
                return self._later[0][0]
            heappop(self._later)
        return None

    def statistics(self) -> Mapping[State, int]:
        """How many pods stand where."""
        counts = Counter(entry.state for entry in self._entries.values())
        return {state: counts[state] for state in State}

    # --- places -------------------------------------------------------------------------------------------------------

    def _make_ready(self, uid: str, entry: _Entry) -> None:
        entry.state = State.READY
        self._push(self._ready, entry.order, uid, entry)

    def _wait(self, uid: str, *, now: float, after: float, parked: bool) -> None:
        entry = self._entries.get(uid)
        if entry is None:
            return
        if entry.again:
            self._make_ready(uid, entry)
            return
        entry.failures += 1
        wait = min(FIRST_WAIT_SECONDS * 2.0 ** min(entry.failures - 1, 10), LONGEST_WAIT_SECONDS)
        entry.earliest = now + max(wait, after)
        if parked:
            self._place(uid, entry, State.PARKED, now + PARKED_SECONDS)
        else:
            self._place(uid, entry, State.WAITING, entry.earliest)

    def _place(self, uid: str, entry: _Entry, state: State, due: float) -> None:
        entry.state = state
        self._push(self._later, due, uid, entry)

    def _push(self, heap: list[Any], order: Order | float, uid: str, entry: _Entry) -> None:
        self._tickets += 1
        entry.ticket = self._tickets
        heappush(heap, (order, entry.ticket, uid))
        if len(heap) > 2 * len(self._entries) + SLACK:
            heap[:] = filter(self._stands, heap)
            heapify(heap)

    def _stands(self, place: tuple[object, int, str]) -> bool:
        """Whether a place still means something."""
        entry = self._entries.get(place[2])
        return entry is not None and entry.ticket == place[1]
