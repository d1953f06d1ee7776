"""Own writes: what one key wrote and deleted, until its streams have shown it.

You need it to wake a key for every foreign change and for none of its own, and to let it wait for its own.
You do not need it for what was written in the end: `records`.

Rules, each with a test of its name in tests/unit/core/test_own_writes.py:
- An event is own if a write of this key made exactly its version, whether it comes before or after the answer.
- While a write is under way, each event of this key's objects is held; when the last write is answered, the foreign
  events count. So a foreign change in front of, between or behind own writes is noticed.
- The key waits for each stream until that is at the newest version that the key wrote there, and for each deletion.

Versions are used to wait, and to recognise exactly the event of an own write; never to drop older events: events often
come before the answer to the write, and a foreign change can hide behind our own.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from ..resource import Key
from .objects import Item, version_number
from .queue import Reason

S = TypeVar("S", bound=Hashable)
"""A stream: whatever shows objects in the order of their versions."""


@dataclass(slots=True)
class OwnWrites(Generic[S]):
    """See the module. Give it only versions that the write itself made: the answer to a write that changed nothing
    carries the version of another writer's change."""

    awaited: dict[S, int] = field(default_factory=dict)
    """The newest version that the key wrote, by the stream that has to show it."""

    deletions: dict[tuple[S, Key], str] = field(default_factory=dict)
    """The UIDs of objects that the key deleted; the answer to a DELETE has no version to wait for."""

    parked_since: float | None = None
    """When the key began to wait (monotonic seconds)."""

    _pending: int = 0
    _made: set[tuple[S, str]] = field(default_factory=set)
    """Versions that writes made and no event has shown."""

    _held: dict[tuple[S, str], Reason] = field(default_factory=dict)
    """Versions of events that came while a write was under way, with what they mean if they are foreign."""

    def begin(self) -> None:
        """A write is about to be sent."""
        self._pending += 1

    def end(self, stream: S, version: str | None, *, at: int) -> list[Reason]:
        """The write was answered with `version` while the stream is `at` its own, or failed (None).

        Returns: what the held events mean that are foreign; empty while other writes are under way.
        """
        self._pending -= 1
        if version is not None:
            number = version_number(version)
            if number > at:
                self.awaited[stream] = max(number, self.awaited.get(stream, 0))
            # The stream is past this version and has not shown it: it was part of a list.
            if self._held.pop((stream, version), None) is None and not 0 < number <= at:
                self._made.add((stream, version))
        if self._pending:
            return []
        foreign, self._held = list(self._held.values()), {}
        return foreign

    def is_own(self, stream: S, version: str, reason: Reason) -> bool:
        """Ask once per event of the watch: whether it is, or may turn out to be, that of an own write."""
        if (stream, version) in self._made:
            self._made.remove((stream, version))
            return True
        if self._pending:
            self._held[stream, version] = reason
        return self._pending > 0

    def passed(self, stream: S) -> None:
        """The stream is at the awaited version: writes up to there that had no event were part of a list."""
        del self.awaited[stream]
        self._made = {made for made in self._made if made[0] != stream}

    def is_deletion(self, stream: S, key: Key, old: Item | None, new: Item | None) -> bool:
        """Whether `key` went from `old` to `new` because this key deleted it: gone, or under deletion from now on."""
        if old is None or self.deletions.get((stream, key)) != old.meta.uid:
            return False
        gone = new is None or new.meta.uid != old.meta.uid
        return gone or (new is not None and new.meta.deletion_timestamp != old.meta.deletion_timestamp)

    def forget_versions(self) -> None:
        """Wait for nothing any more, and recognise no earlier write. Writes under way stay known."""
        self.awaited.clear()
        self.deletions.clear()
        self.parked_since = None
        self._made.clear()

    @property
    def waits(self) -> bool:
        """Whether a stream has yet to show what the key wrote or deleted."""
        return bool(self.awaited or self.deletions)

    @property
    def over(self) -> bool:
        """Whether there is nothing to remember."""
        return not (self._pending or self._made or self._held or self.waits)
