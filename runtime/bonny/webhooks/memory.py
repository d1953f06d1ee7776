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

# Measured with lists and mappings of items of any size, by a handler that changes them and by a conversion.
_BYTES: Final = {b"{[": 1000, b":,": 200}
"""For each object or list, and for each field or item."""

_TEXT_BYTES: Final = 6
# Up to the next part that is not in a text. It fits at each place, and never goes back: it takes linear time.
_NEXT: Final = re.compile(rb'(?:[^"{\[:,]++|"[^"\\]*+(?:\\.[^"\\]*+)*+"?)*+([{\[:,]|\Z)', re.DOTALL)


def needed(body: bytes) -> int:
    """About the bytes of memory that the work on this JSON takes; more than `MOST_MEMORY` where that is not enough."""
    size = _size(body)
    if size > MOST_MEMORY:  # perhaps of braces and commas in texts
        size = _size(b"".join(part[1] for part in islice(_NEXT.finditer(body), MOST_MEMORY // 200 + 1)))
    return size + len(body) * _TEXT_BYTES


def _size(body: bytes) -> int:
    return sum((len(body) - len(body.translate(None, marks))) * each for marks, each in _BYTES.items())


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
