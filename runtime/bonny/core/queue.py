"""Work queue: hands each object key to at most one worker at a time.

You need it to feed keys from a new source. `Controller` owns its queue.

Rules, each with a test of its name in tests/unit/core/test_queue.py:
- A key is queued once, however often it is added; its reasons are collected as a set.
- A key that a worker holds is never handed out; if it is added in the meantime, it is queued again after `done`.
- Live keys go before low ones; but while a low key waits for longer than 10 s, one of four handed-out keys is low. So
  hot keys starve no others, and a live change does not wait behind a long first list.
- After `retry` a key comes back with its reasons; adding it as live in the meantime ends its wait.
- The wait grows with each consecutive `retry`, and is never shorter than the backoff's base. It is not longer than the
  time since the first of them, or twice the base: so a key waits after an outage at most as long as the outage lasted.
- A key has at most one timer. The worker sets it, and it stays until it fires, whatever else happens to the key.
- A parked key waits for `unpark` or its time, whichever comes first, even if it is added in the meantime.
- While the queue is paused, no key is handed out, and none is lost. Of several pauses, the one that ends last counts.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from heapq import heapify, heappop, heappush
from typing import Final, Generic, NamedTuple, TypeAlias, TypeVar

import msgspec

from .backoff import Backoff

# A burst of live changes has passed by then, and a person who waits does not notice.
AGEING_SECONDS: Final = 10.0
LIVE_IN_A_ROW: Final = 3
# After a suspend all timers are due at once; firing them all in one go would block the event loop.
FIRED_AT_ONCE: Final = 100
# Replaced times below this number are not worth a clean-up.
SLACK: Final = 64
# Most conflicts and slow children need about 0.2 s; 300 s limits the load of an object that always fails.
QUEUE_BACKOFF: Final = Backoff(base=0.2, cap=300.0)


class Reason(StrEnum):
    """Why a key is queued. The values are label values of metrics and reach handlers as `axn.reasons`."""

    ADDED = "added"
    CHANGED = "changed"
    DELETED = "deleted"
    CHILD = "child"
    RELATED = "related"
    REQUEUE = "requeue"
    RESYNC = "resync"
    REQUESTED = "requested"


class Priority(IntEnum):
    """LIVE: a change that a user may be waiting for. LOW: first adds of an initial list, and timers."""

    LIVE = 0
    LOW = 1


K = TypeVar("K", bound=Hashable)
NO_REASONS: Final[frozenset[Reason]] = frozenset()
_ALONE: Final = {reason: frozenset((reason,)) for reason in Reason}


class Work(msgspec.Struct, Generic[K], frozen=True):
    """A key handed to a worker.

    `tries` counts the consecutive tries before this one that did not succeed. `queued` is when the key became ready;
    parking does not change that.
    """

    key: K
    reasons: frozenset[Reason]
    tries: int
    queued: float


@dataclass(frozen=True, slots=True)
class Statistics:
    """A snapshot. `oldest` is the age of the longest-waiting ready key in seconds, 0.0 when none waits."""

    ready: int
    delayed: int
    parked: int
    working: int
    timers: int
    oldest: float


class Position(NamedTuple):
    """Where a key is. `state` is `working`, `ready`, `delayed`, `parked`, or empty for a key that is not queued."""

    state: str
    tries: int
    """Consecutive tries that did not succeed."""

    seconds: float | None
    """Ready: since when. Delayed or parked: until when, at most."""

    timer_seconds: float | None
    """Until its timer queues it."""


class _QueuedKey(msgspec.Struct, gc=False):
    """A key that is queued, delayed, parked or worked on."""

    reasons: frozenset[Reason] = NO_REASONS
    """A shared set: one set per key would dominate memory during a large initial list."""

    priority: Priority = Priority.LOW
    ready_since: float | None = None
    parked: bool = False
    working: bool = False
    again: Priority | None = None
    """The priority with which it was added while a worker held it; None if it was not."""

    tries: int = 0
    """Consecutive tries that did not succeed; the backoff grows with them."""

    failing_since: float | None = None
    """The first of these tries, or the first after the handler asked for a time."""

    handed: frozenset[Reason] = NO_REASONS
    queued: float | None = None
    """When it became ready; kept while it is parked, so that its whole wait is measured."""


_Time: TypeAlias = tuple[float, int, K, Reason | None]
"""When it is due, a number, as keys cannot be compared, the key, and the reason if it is a timer."""


class _Schedule(Generic[K]):
    """For each key at most one timer, and one time at which it is ready again."""

    def __init__(self) -> None:
        self.delays: dict[K, _Time[K]] = {}
        """Of keys that are delayed or parked."""

        self.timers: dict[K, _Time[K]] = {}
        self._heap: list[_Time[K]] = []
        """All of these, and times that were replaced or removed since."""

        self._number = 0

    def set(self, key: K, at: float, timer: Reason | None = None) -> None:
        """Replaces the earlier time of `key` of this sort."""
        self._number += 1
        time = (self.delays if timer is None else self.timers)[key] = (at, self._number, key, timer)
        heappush(self._heap, time)
        if len(self._heap) > 2 * (len(self.delays) + len(self.timers)) + SLACK:
            # A hot key leaves an old time behind at each change. A new heap is O(n), once in n times.
            self._heap = [*self.delays.values(), *self.timers.values()]
            heapify(self._heap)

    def next(self) -> float | None:
        """The earliest time."""
        while self._heap:
            time = self._heap[0]
            if (self.delays if time[3] is None else self.timers).get(time[2]) is time:
                return time[0]
            heappop(self._heap)
        return None

    def pop(self) -> _Time[K]:
        """Remove the time that `next` returned."""
        time = heappop(self._heap)
        return (self.delays if time[3] is None else self.timers).pop(time[2])


class Queue(Generic[K]):
    """See the module. All methods but `statistics` are O(log n) or better; `now` is a monotonic clock in seconds."""

    def __init__(self, backoff: Backoff = QUEUE_BACKOFF) -> None:
        """`backoff`: waits of a key after failures. Default 0.2 s doubling to 300 s."""
        self._backoff = backoff
        self._entries: dict[K, _QueuedKey] = {}
        self._live: OrderedDict[K, _QueuedKey] = OrderedDict()
        self._low: OrderedDict[K, _QueuedKey] = OrderedDict()
        self._schedule: _Schedule[K] = _Schedule()
        self.adds = 0
        """Times a key became ready, since the start; not counting keys that return from parking."""

        self.retries = 0
        self._live_in_a_row = 0
        self._paused_until = 0.0

    @property
    def ready(self) -> int:
        """The number of keys that could be handed out now."""
        return len(self._live) + len(self._low)

    # --- putting in ---

    def add(self, key: K, reason: Reason, *, now: float, priority: Priority = Priority.LIVE) -> None:
        """Queue `key` at once."""
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = _QueuedKey()
        entry.reasons = entry.reasons | _ALONE[reason] if entry.reasons else _ALONE[reason]
        if entry.working:
            entry.again = priority if entry.again is None else min(entry.again, priority)
        elif entry.parked:
            entry.priority = min(entry.priority, priority)
        elif priority is Priority.LOW and key in self._schedule.delays:
            pass  # it waits after a failure, and a low add does not shorten that
        elif entry.ready_since is None or priority < entry.priority:
            self._make_ready(key, entry, priority, now)

    def set_timer(self, key: K, reason: Reason, *, at: float) -> None:
        """Queue `key` as low at the time `at`; replaces its earlier timer."""
        self._schedule.set(key, at, reason)

    def has_timer(self, key: K) -> bool:
        """Whether `key` has a timer."""
        return key in self._schedule.timers

    def cancel_timer(self, key: K) -> None:
        """Remove the timer of `key`, if it has one."""
        self._schedule.timers.pop(key, None)

    # --- taking out ---

    def take(self, *, now: float) -> Work[K] | None:
        """Hand out the next ready key, or None. The caller owes a `done`, `retry` or `park` for it."""
        self._fire(now)
        if now < self._paused_until:
            return None
        self._paused_until = 0.0
        if not (self._live or self._low):
            self._live_in_a_row = 0
            return None
        low = next(iter(self._low.values()), None)
        aged = low is not None and now - (low.ready_since or 0.0) >= AGEING_SECONDS
        is_low = not self._live or (aged and self._live_in_a_row >= LIVE_IN_A_ROW)
        self._live_in_a_row = 0 if is_low else self._live_in_a_row + 1
        key, entry = (self._low if is_low else self._live).popitem(last=False)
        work = Work(key, entry.reasons, entry.tries, entry.ready_since or 0.0)
        entry.handed, entry.queued = work.reasons, work.queued
        entry.reasons, entry.ready_since, entry.working = NO_REASONS, None, True
        return work

    def done(self, key: K, *, now: float) -> None:
        """The work on `key` succeeded: reset its backoff."""
        entry = self._release(key)
        entry.tries, entry.failing_since = 0, None
        entry.queued = None
        again, entry.again = entry.again, None
        if again is None:
            del self._entries[key]
        else:
            self._make_ready(key, entry, again, now)

    def retry(self, key: K, *, now: float, chance: float, after: float | None = None, failed: bool = True) -> float:
        """The work on `key` did not succeed: try again after the backoff, but not before `after`; return the wait.

        `failed=False`: the handler requested a retry, so `after` replaces the backoff; its base stays the minimum.
        """
        entry = self._release(key)
        entry.queued = None
        entry.tries += 1
        self.retries += 1
        if after is not None and not failed:
            entry.failing_since, wait = None, self._backoff.base
        else:
            since = entry.failing_since = now if entry.failing_since is None else entry.failing_since
            wait = self._backoff.delay(entry.tries, chance=chance, failing=now - since)
        wait = max(wait, after or 0.0)
        entry.reasons |= entry.handed
        again, entry.again = entry.again, None
        if again is Priority.LIVE:
            self._make_ready(key, entry, again, now)
            return 0.0
        self._schedule.set(key, now + wait)
        return wait

    def park(self, key: K, *, until: float) -> None:
        """Give `key` back without work done: it waits for `unpark`, at most until the time `until`."""
        entry = self._release(key)
        entry.again = None
        entry.reasons |= entry.handed
        entry.parked = True
        # A parked key was due already, so it continues as live.
        entry.priority = Priority.LIVE
        self._schedule.set(key, until)

    def unpark(self, key: K) -> None:
        """End the wait of `key`, if it is parked."""
        entry = self._entries.get(key)
        if entry is not None and entry.parked:
            self._make_ready(key, entry, entry.priority, entry.queued or 0.0)

    def pause(self, *, until: float) -> None:
        """Hand out no key before the time `until`."""
        self._paused_until = max(self._paused_until, until)

    def discard(self, key: K) -> None:
        """Drop `key` with its timer, unless a worker holds it."""
        self.cancel_timer(key)
        entry = self._entries.get(key)
        if entry is None or entry.working:
            return
        self._leave(key, entry)
        del self._entries[key]

    # --- looking ---

    def is_working(self, key: K) -> bool:
        """Whether `key` is handed out."""
        entry = self._entries.get(key)
        return entry is not None and entry.working

    def position(self, key: K, *, now: float) -> Position:
        """Where `key` is, in seconds from `now`."""
        entry = self._entries.get(key)
        delay, timer = self._schedule.delays.get(key), self._schedule.timers.get(key)
        left = None if timer is None else timer[0] - now
        if entry is None:
            return Position("", 0, None, left)
        if entry.ready_since is not None:
            return Position("ready", entry.tries, now - entry.ready_since, left)
        state = "working" if entry.working else "parked" if entry.parked else "delayed"
        return Position(state, entry.tries, None if delay is None else delay[0] - now, left)

    def next_due(self) -> float | None:
        """When the next timer fires, or the next delayed or parked key becomes ready, or a pause ends; None if there is
        none."""
        return self._paused_until or self._schedule.next()

    def statistics(self, *, now: float) -> Statistics:
        """Numbers for metrics. 100,000 keys take 11 ms."""
        entries = self._entries.values()
        parked = sum(entry.parked for entry in entries)
        return Statistics(
            ready=self.ready,
            delayed=len(self._schedule.delays) - parked,
            parked=parked,
            working=sum(entry.working for entry in entries),
            timers=len(self._schedule.timers),
            oldest=now - min((entry.ready_since for entry in entries if entry.ready_since is not None), default=now),
        )

    # --- states of a key ---

    def _leave(self, key: K, entry: _QueuedKey) -> None:
        """`key` is neither ready nor does it wait."""
        if entry.ready_since is not None:
            del (self._live if entry.priority is Priority.LIVE else self._low)[key]
        self._schedule.delays.pop(key, None)
        entry.ready_since, entry.parked = None, False

    def _make_ready(self, key: K, entry: _QueuedKey, priority: Priority, now: float) -> None:
        since = entry.queued if entry.ready_since is None else entry.ready_since
        if since is None:
            self.adds += 1
        self._leave(key, entry)
        entry.priority, entry.ready_since = priority, now if since is None else since
        (self._live if priority is Priority.LIVE else self._low)[key] = entry

    def _fire(self, now: float) -> None:
        """Make due keys ready, up to a limit; the next calls continue."""
        for _ in range(FIRED_AT_ONCE):
            due = self._schedule.next()
            if due is None or due > now:
                return
            _, _, key, timer = self._schedule.pop()
            if timer is None:
                self._make_ready(key, self._entries[key], self._entries[key].priority, now)
            else:
                self.add(key, timer, now=now, priority=Priority.LOW)

    def _release(self, key: K) -> _QueuedKey:
        entry = self._entries[key]
        if not entry.working:
            raise ValueError(f"{key} is not being worked on")
        entry.working = False
        return entry
