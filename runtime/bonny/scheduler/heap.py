"""Heap: names by rank; a name can get another rank, or be discarded, without a search.

An outdated item stays until it comes up, or until more than half of the items are outdated.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Final, Generic, TypeVar

Rank = TypeVar("Rank")

# Outdated items below this number are not worth a clean-up.
SLACK: Final = 64


class Heap(Generic[Rank]):
    """The lowest rank is first, and of equal ranks the name that was set first."""

    def __init__(self) -> None:
        self._items: list[tuple[Rank, int, str]] = []
        self._current: dict[str, tuple[Rank, int, str]] = {}
        """The valid item of each name: rank, number, name."""

        self._numbers = 0

    def __len__(self) -> int:
        return len(self._current)

    def set(self, name: str, rank: Rank) -> None:
        """Add the name, or change its rank."""
        self._numbers += 1
        item = self._current[name] = (rank, self._numbers, name)
        heappush(self._items, item)
        if len(self._items) > 2 * len(self._current) + SLACK:
            self._items = list(self._current.values())
            heapify(self._items)

    def discard(self, name: str) -> None:
        """Remove the name, if it is here."""
        self._current.pop(name, None)

    def first(self) -> tuple[Rank, str] | None:
        """The first name and its rank."""
        while self._items:
            rank, _, name = item = self._items[0]
            if self._current.get(name) is item:
                return rank, name
            heappop(self._items)
        return None
