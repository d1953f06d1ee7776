"""Waiting: for conditions, while the loop goes on; and parts that run meanwhile."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

T = TypeVar("T")

# Ten times what the slowest of them takes on two shared cores.
UNTIL_SECONDS = 20.0


async def until(check: Callable[[], T], *, within: float = UNTIL_SECONDS) -> T:
    """What `check` returns as soon as that is true, while the loop goes on. Raises: `AssertionError` after `within`."""
    ends = time.monotonic() + within
    while not (found := check()):
        assert time.monotonic() < ends, f"still not so after {within} s; the last answer was {found!r}"
        await asyncio.sleep(0.02)
    return found


@asynccontextmanager
async def running(part: Callable[[], Coroutine[Any, Any, None]]) -> AsyncIterator[asyncio.Task[None]]:
    """Let a part run meanwhile; it must not have ended by itself."""
    task = asyncio.create_task(part())
    try:
        yield task
        assert not task.done(), "it ended by itself"
    finally:
        task.cancel()
        await asyncio.wait({task})
