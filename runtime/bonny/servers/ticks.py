"""Ticks: the times at which periodic tasks and reconcilers run."""

from __future__ import annotations

import asyncio
import math
import random
import time
from typing import Protocol

from ..carried import load
from ..client.clock import pause


class Ticks(Protocol):
    """The times of one task."""

    async def wait(self, *, wake: asyncio.Event) -> None:
        """Return at the next tick, or when `wake` is set."""


def cron_ticks(cron: str, timezone: str, *, name: str) -> Ticks:
    """Ticks at the times of a cron expression; `name` is for messages.

    Raises: `MissingExtra` without the extra `cron`; `OptionError` for an expression or a time zone that does not exist.
    """
    ticks: Ticks = load("cron", what=f"the cron expression of {name}").CronTicks(cron, timezone, name=name)
    return ticks


class IntervalTicks:
    """The ticks of an interval in seconds, which do not drift; each is late by up to the fraction `jitter` of it."""

    def __init__(self, interval: float, jitter: float = 0.0) -> None:
        self._start, self._interval, self._jitter = time.monotonic(), interval, jitter

    async def wait(self, *, wake: asyncio.Event) -> None:
        """Return at the next tick, or when `wake` is set."""
        tick = next_tick(self._start, self._interval, after=time.monotonic())
        await pause(tick + self._interval * self._jitter * random.random() - time.monotonic(), wake=wake)


def next_tick(start: float, interval: float, *, after: float) -> float:
    """The first of `start + interval`, `start + 2 * interval`, ... that is later than `after`; all in seconds.

    Guarantees: ticks do not drift, however long the work at each takes; ticks that passed meanwhile are skipped.
    """
    tick = start + interval * math.floor((after - start) / interval + 1)
    # Rounding may lead back to `after` itself.
    return tick if tick > after else tick + interval
