"""Pending: the pods that wait for a node, by UID, and their order.

Rules:
- The highest priority is first; pods of equal priority by age, the oldest first.
- A pod that was taken returns by `retry`, with a delay that grows from 1 s to 10 s.
- A parked pod waits until `wake`, at least for its delay; without `wake`, for 5 minutes.
- A pod whose shape, labels or spec changed does not wait, and its failures are forgotten; also when it is taken.
- Pods that come and go, or change, leave nothing behind, also on a standby, where no pod is ever taken.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from .heap import Heap
from .views import PodView

# Same as kube-scheduler (podInitialBackoffSeconds, podMaxBackoffSeconds).
FIRST_WAIT_SECONDS: Final = 1.0
LONGEST_WAIT_SECONDS: Final = 10.0
# Same as kube-scheduler (podMaxInUnschedulablePodsDuration).
PARKED_SECONDS: Final = 300.0


class PodState(StrEnum):
    """The state of a waiting pod. The values are kube-scheduler's names of its queues."""

    READY = "active"
    WAITING = "backoff"
    """For its delay to end."""

    PARKED = "unschedulable"
    """For a change that may help."""

    TAKEN = "taken"


@dataclass(slots=True)
class PendingPod:
    """A pod that waits for a node."""

    pod: PodView
    """Its newest version."""

    state: PodState = PodState.READY
    failures: int = 0
    earliest: float = 0.0
    """The moment before which it is not taken again."""

    again: bool = False
    """It changed while it was taken."""

    plugins: frozenset[str] = frozenset()
    """The parts of the check that left no node for it, the last time."""


class Pending:
    """See the module. `now` is a monotonic clock in seconds."""

    def __init__(self, shape: Callable[[PodView], Hashable]) -> None:
        """`shape` is `Check.shape`: parked pods are grouped by it."""
        self.pods: dict[str, PendingPod] = {}
        self.parked: defaultdict[Hashable, set[str]] = defaultdict(set)
        """The UIDs of parked pods by their shape."""

        self._shape = shape

        self._ready: Heap[tuple[int, str]] = Heap()
        self._later: Heap[float] = Heap()

    def add(self, pod: PodView) -> None:
        """Queue a pod, or note its newest version."""
        entry = self.pods.get(pod.uid)
        if entry is None:
            entry = self.pods[pod.uid] = PendingPod(pod)
        elif self._matters(entry.pod) == self._matters(pod):
            entry.pod = pod
            return
        self._leave(entry)
        entry.pod, entry.failures = pod, 0
        if entry.state is PodState.TAKEN:
            entry.again = True
        else:
            self._move(entry, PodState.READY)

    def take(self, *, now: float) -> PodView | None:
        """The next pod, or None. The caller owes a `retry` or `forget` for it."""
        while (due := self._later.first()) is not None and due[0] <= now:
            self._move(self.pods[due[1]], PodState.READY)
        first = self._ready.first()
        if first is None:
            return None
        entry = self.pods[first[1]]
        self._leave(entry)
        entry.state, entry.again, entry.plugins = PodState.TAKEN, False, frozenset()
        return entry.pod

    def retry(
        self, uid: str, *, now: float, after: float = 0.0, parked: bool = False, plugins: Iterable[str] = ()
    ) -> None:
        """Try the pod again after its delay, and not before `after` seconds; a `parked` one also waits for `wake`."""
        entry = self.pods.get(uid)
        if entry is None:
            return
        entry.plugins = frozenset(plugins)
        if entry.again:
            self._move(entry, PodState.READY)
            return
        entry.failures += 1
        wait = min(FIRST_WAIT_SECONDS * 2.0 ** min(entry.failures - 1, 10), LONGEST_WAIT_SECONDS)
        entry.earliest = now + max(wait, after)
        if parked:
            self._move(entry, PodState.PARKED, due=now + PARKED_SECONDS)
        else:
            self._move(entry, PodState.WAITING, due=entry.earliest)

    def wake(self, uids: Iterable[str]) -> None:
        """Try these pods again, after a change that may help. No effect on pods that are not parked."""
        for entry in [self.pods[uid] for uid in uids if uid in self.pods]:
            if entry.state is PodState.PARKED:
                self._move(entry, PodState.WAITING, due=entry.earliest)

    def forget(self, uid: str) -> None:
        """The pod has a node, or is gone."""
        entry = self.pods.pop(uid, None)
        if entry is not None:
            self._leave(entry)

    def restart(self) -> None:
        """Try all pods at once, without their delays."""
        for entry in self.pods.values():
            entry.failures = 0
            self._move(entry, PodState.READY)

    def next_due(self) -> float | None:
        """The moment at which the next delay ends; None when no pod waits."""
        first = self._later.first()
        return None if first is None else first[0]

    def statistics(self) -> Mapping[PodState, int]:
        """The number of pods in each state."""
        counts = Counter(entry.state for entry in self.pods.values())
        return {state: counts[state] for state in PodState}

    def _matters(self, pod: PodView) -> tuple[Hashable, Mapping[str, str], int]:
        """Properties whose change may let a pod fit. Servers before Kubernetes 1.33 keep no generation."""
        return self._shape(pod), pod.labels, pod.item.meta.generation

    # --- places ---

    def _move(self, entry: PendingPod, state: PodState, *, due: float = 0.0) -> None:
        self._leave(entry)
        entry.state = state
        if state is PodState.READY:
            self._ready.set(entry.pod.uid, entry.pod.order)
        else:
            self._later.set(entry.pod.uid, due)
        if state is PodState.PARKED:
            self.parked[self._shape(entry.pod)].add(entry.pod.uid)

    def _leave(self, entry: PendingPod) -> None:
        uid = entry.pod.uid
        self._ready.discard(uid)
        self._later.discard(uid)
        if entry.state is PodState.PARKED:
            uids = self.parked[self._shape(entry.pod)]
            uids.discard(uid)
            if not uids:
                del self.parked[self._shape(entry.pod)]
