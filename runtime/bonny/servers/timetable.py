"""Timetable: when something that recurs is due, and waiting for it."""

from __future__ import annotations

import asyncio
import math
import time
from contextlib import suppress

__all__ = ["next_tick", "pause"]


def next_tick(start: float, interval: float, *, after: float) -> float:
    """The first of `start + interval`, `start + 2 * interval`, ... that is later than `after`; all in seconds.

    Guarantees: ticks do not drift, however long the work at each takes; after a pause of any length the next one is on
    time, and those that passed meanwhile are gone.
    """
    tick = start + interval * math.floor((after - start) / interval + 1)
    # Rounding may lead back to `after` itself.
    return tick if tick > after else tick + interval


async def pause(until: float, *, wake: asyncio.Event) -> None:
    """Wait until the monotonic clock shows `until`, never less; or until `wake` is set."""
    while (left := until - time.monotonic()) > 0 and not wake.is_set():
        with suppress(TimeoutError):
            async with asyncio.timeout(left):
                await wake.wait()
