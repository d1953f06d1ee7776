"""Memory: a bound on what the work on requests takes at a time: up to 300 times the bytes of their JSON."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import islice
from typing import Final

MOST_MEMORY: Final = 64 * 2**20
"""Bytes, for all requests."""

# Measured, for each object or list, and each field or item.
_BYTES: Final = {b"{[": 1000, b":,": 200}
# Up to the next part that is not in a text. It never goes back, so it takes linear time.
_NEXT: Final = re.compile(rb'(?:[^"{\[:,]++|"[^"\\]*+(?:\\.[^"\\]*+)*+"?)*+([{\[:,]|\Z)', re.DOTALL)


def needed(body: bytes) -> int:
    """About the bytes of memory that the work on this JSON takes."""
    size = _size(body)
    if size > MOST_MEMORY:  # perhaps of commas in texts
        size = _size(b"".join(part[1] for part in islice(_NEXT.finditer(body), MOST_MEMORY // 200 + 1)))
    return size + len(body) * 6


def _size(body: bytes) -> int:
    return sum((len(body) - len(body.translate(None, marks))) * each for marks, each in _BYTES.items())


class Memory:
    """Shares of `MOST_MEMORY`."""

    def __init__(self) -> None:
        self._left = MOST_MEMORY
        self._freed = asyncio.Condition()

    @asynccontextmanager
    async def taken(self, size: int) -> AsyncIterator[None]:
        """Wait for `size` bytes."""
        async with self._freed:
            await self._freed.wait_for(lambda: self._left >= size)
            self._left -= size
        try:
            yield
        finally:
            self._left += size
            async with self._freed:
                self._freed.notify_all()
