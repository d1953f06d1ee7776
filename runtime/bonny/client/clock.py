"""Clock: monotonic also while the machine is suspended, for deadlines of writes; the time of day; a pause.

`clock` is for the lease and writes within its term. For durations and waits `time.monotonic` is enough.
"""

from __future__ import annotations

import asyncio
import sys
import time
from contextlib import suppress
from datetime import UTC, datetime


def clock() -> float:
    """Monotonic seconds; they include suspend only on Linux.

    On other systems a leader that was suspended stays leader after it wakes up, for the rest of its lease.
    """
    return time.clock_gettime(time.CLOCK_BOOTTIME) if sys.platform == "linux" else time.monotonic()


def timestamp() -> str:
    """The current time as the API writes it, in seconds: `2026-01-31T12:00:00Z`."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


async def pause(seconds: float, *, wake: asyncio.Event) -> None:
    """Wait for `seconds`, or until `wake` is set."""
    until = time.monotonic() + seconds
    # A timer may fire a moment early.
    while (left := until - time.monotonic()) > 0 and not wake.is_set():
        with suppress(TimeoutError):
            async with asyncio.timeout(left):
                await wake.wait()
