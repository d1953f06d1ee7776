"""Memory: a bound on what the work on requests takes at the same time, whatever users and other clients send.

An object of JSON takes up to 200 times its bytes: it is decoded, read by a class and compared. So its parts count, and
a review that would need more than all others together may have is refused before it is decoded.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import islice
from typing import Final

MOST_MEMORY: Final = 64 * 2**20
"""Bytes for all requests that are worked on at the same time."""

# Measured with lists and mappings of small and large items: 150 to 560 bytes for a part, two to five times a long text.
_PART_BYTES: Final = 450
_TEXT_BYTES: Final = 6
MOST_PARTS: Final = MOST_MEMORY // _PART_BYTES
"""Objects, lists, fields and items of one request, together with the names of fields."""

_PARTS: Final = b"{[:,"
# Up to the next part that is not in a text. It fits at each place, and never goes back: it takes linear time.
_NEXT: Final = re.compile(rb'(?:[^"{\[:,]++|"[^"\\]*+(?:\\.[^"\\]*+)*+"?)*+(?:[{\[:,]|\Z)', re.DOTALL)


def needed(body: bytes) -> int:
    """About the bytes of memory that the work on this JSON takes; more than `MOST_MEMORY` where that is not enough."""
    parts = len(body) - len(body.translate(None, _PARTS))
    if parts > MOST_PARTS:  # perhaps in texts
        parts = sum(1 for _ in islice(_NEXT.finditer(body), MOST_PARTS + 1))
    return parts * _PART_BYTES + len(body) * _TEXT_BYTES


class Memory:
    """`MOST_MEMORY`, of which each request takes what it needs until it is answered."""

    def __init__(self) -> None:
        self._left = MOST_MEMORY
        self._freed = asyncio.Condition()

    @asynccontextmanager
    async def taken(self, size: int) -> AsyncIterator[None]:
        """Wait until `size` bytes are left, and take them."""
        async with self._freed:
            await self._freed.wait_for(lambda: self._left >= size)
            self._left -= size
        try:
            yield
        finally:
            self._left += size
            async with self._freed:
                self._freed.notify_all()
