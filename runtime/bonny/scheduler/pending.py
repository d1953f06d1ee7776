"""Pending: the pods that wait for a node, by UID, and their order.

Rules:
- The highest priority is first; pods of equal priority by age, the oldest first.
- A pod that was taken returns by `retry`, with a delay that grows from 1 s to 10 s.
- A parked pod waits until `wake`, at least for its delay; without `wake`, for 5 minutes.
- A pod that changed (`add` with `changed`) does not wait, and its failures are forgotten; also when it is taken.
- Pods that come and go, or change, leave nothing behind, also on a standby, where no pod is ever taken.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias, TypeVar

from .heap import Heap

# Same as kube-scheduler (podInitialBackoffSeconds, podMaxBackoffSeconds).
FIRST_WAIT_SECONDS: Final = 1.0
LONGEST_WAIT_SECONDS: Final = 10.0
# Same as kube-scheduler (podMaxInUnschedulablePodsDuration): a safety net for changes that did not wake a pod.
PARKED_SECONDS: Final = 300.0

Order: TypeAlias = tuple[int, str]
"""Negative priority, and creation time."""

R = TypeVar("R")


class PodState(StrEnum):
    """The state of a waiting pod. The values are kube-scheduler's names of its queues."""

    READY = "active"
    WAITING = "backoff"
    """For its delay to end."""

    PARKED = "unschedulable"
    """For a change that may help."""

    TAKEN = "taken"


@dataclass(slots=True)
class _PendingPod:
    order: Order
    ticket: int = 0
    """Identifies its heap item; items with an older ticket are outdated."""

    state: PodState = PodState.READY
    failures: int = 0
    earliest: float = 0.0
    """The moment before which it is not taken again."""

    again: bool = False
    """It changed while it was taken."""


class Pending:
    """See the module. `now` is a monotonic clock in seconds."""

    def __init__(self) -> None:
        self._entries: dict[str, _PendingPod] = {}
        self._ready: Heap[Order] = Heap(self._entries, self._is_current)
        self._later: Heap[float] = Heap(self._entries, self._is_current)
        self._tickets = 0

    def add(self, uid: str, order: Order, *, changed: bool = False) -> None:
        """Queue `uid`; no effect when it is queued. `changed`: it differs from the pod that was tried before."""
        entry = self._entries.get(uid)
        if entry is None:
            entry = self._entries[uid] = _PendingPod(order)
        elif not changed:
            return
        entry.order, entry.failures = order, 0
        if entry.state is PodState.TAKEN:
            entry.again = True
        else:
            self._make_ready(uid, entry)

    def take(self, *, now: float) -> str | None:
        """The next pod, or None. The caller owes a `retry` or `forget` for it."""
        while (due := self.next_due()) is not None and due <= now:
            uid = self._later.pop()[2]
            self._make_ready(uid, self._entries[uid])
        if self._ready.first() is None:
            return None
        uid = self._ready.pop()[2]
        entry = self._entries[uid]
        entry.state, entry.again = PodState.TAKEN, False
        return uid

    def retry(self, uid: str, *, now: float, after: float = 0.0, parked: bool = False) -> None:
        """Try the pod again after its delay, and not before `after` seconds; a `parked` one also waits for `wake`."""
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
            self._add(self._later, now + PARKED_SECONDS, uid, entry, PodState.PARKED)
        else:
            self._add(self._later, entry.earliest, uid, entry, PodState.WAITING)

    def wake(self, uid: str) -> None:
        """Try the pod again, after a change that may help. No effect when it is not parked."""
        entry = self._entries.get(uid)
        if entry is not None and entry.state is PodState.PARKED:
            self._add(self._later, entry.earliest, uid, entry, PodState.WAITING)

    def forget(self, uid: str) -> None:
        """The pod has a node, or is gone."""
        self._entries.pop(uid, None)

    def next_due(self) -> float | None:
        """The moment at which the next delay ends; None when no pod waits."""
        first = self._later.first()
        return None if first is None else first[0]

    def statistics(self) -> Mapping[PodState, int]:
        """The number of pods in each state."""
        counts = Counter(entry.state for entry in self._entries.values())
        return {state: counts[state] for state in PodState}

    # --- heaps --------------------------------------------------------------------------------------------------------

    def _make_ready(self, uid: str, entry: _PendingPod) -> None:
        self._add(self._ready, entry.order, uid, entry, PodState.READY)

    def _add(self, heap: Heap[R], rank: R, uid: str, entry: _PendingPod, state: PodState) -> None:
        """Add a new item for the pod; any older one is outdated."""
        self._tickets += 1
        entry.state, entry.ticket = state, self._tickets
        heap.add(rank, entry.ticket, uid)

    def _is_current(self, uid: str, ticket: int) -> bool:
        """Whether a heap item is the newest of its pod."""
        entry = self._entries.get(uid)
        return entry is not None and entry.ticket == ticket
