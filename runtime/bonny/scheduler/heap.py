"""Heap: a priority queue of names whose items may become outdated.

Removing an item from the middle of a heap is slow. So an item stays until it comes up, or until more than half of the
items are outdated; `is_valid` decides which items still count.
"""

from __future__ import annotations

from collections.abc import Callable, Sized
from heapq import heapify, heappop, heappush
from typing import Final, Generic, TypeVar

Rank = TypeVar("Rank")

# Outdated items below this number are not worth a clean-up.
SLACK: Final = 64


class Heap(Generic[Rank]):
    """Items of rank, time and name; the lowest rank is first, and of equal ranks the earliest time."""

    def __init__(self, names: Sized, is_valid: Callable[[str, int], bool]) -> None:
        """`names` are all names there are; `is_valid` gets the name and the time of an item."""
        self._names = names
        self._is_valid = is_valid
        self._items: list[tuple[Rank, int, str]] = []

    def add(self, rank: Rank, time: int, name: str) -> None:
        heappush(self._items, (rank, time, name))
        if len(self._items) > 2 * len(self._names) + SLACK:
            self._items = [item for item in self._items if self._is_valid(item[2], item[1])]
            heapify(self._items)

    def first(self) -> tuple[Rank, int, str] | None:
        """The first valid item."""
        while self._items:
            item = self._items[0]
            if self._is_valid(item[2], item[1]):
                return item
            heappop(self._items)
        return None

    def pop(self) -> tuple[Rank, int, str]:
        """Remove the item that `first` returned, and return it."""
        return heappop(self._items)
