"""Cron: the times at which periodic tasks and reconcilers with a cron expression run, by the wall clock."""

from __future__ import annotations

import asyncio
import importlib
import time
from datetime import UTC, datetime, tzinfo
from typing import Any, Final
from zoneinfo import ZoneInfo

from ..client.clock import pause
from ..errors import OptionError

# A timer does not count the time that a machine sleeps, nor does it know when its clock is set: look this often.
LOOK_SECONDS: Final = 10.0
# A clock that is set back by less than this is being corrected: no tick is repeated.
CORRECTION_SECONDS: Final = 60.0


class CronTicks:
    """The ticks of a cron expression, by the wall clock.

    Guarantees: ticks that pass while the machine sleeps become one tick when it wakes up; ticks between two calls of
    `wait` are skipped. After the clock was set, ticks follow the new time. Summer time is as in Debian's cron: a tick
    in an hour that is skipped comes right after it, and one in an hour that comes twice comes once.
    """

    def __init__(self, cron: str, timezone: str, *, name: str) -> None:
        """`name` is what it belongs to, for messages. Raises: `OptionError`."""
        self._cron = cron
        self._after = time.time()
        try:
            self._cronsim: Any = importlib.import_module("cronsim").CronSim
            self._zone: tzinfo = UTC if timezone == "UTC" else ZoneInfo(timezone)
            self.next(self._after)
        except ModuleNotFoundError:
            raise OptionError(
                f"{name} has a cron expression, which needs the package cronsim: run `invoke extras --add cron`, and "
                "then `uv sync` or pip install -e '.[dev]'"
            ) from None
        except (ValueError, OSError, LookupError):
            raise OptionError(f"the timezone of {name} is {timezone!r}: write for example 'Europe/Berlin'") from None
        except Exception as error:  # noqa: BLE001  of the package, which is loaded only here
            raise OptionError(f"the cron expression of {name} is {cron!r} ({error}): write '*/5 * * * *'") from None

    def next(self, after: float) -> float:
        """The first tick later than `after`; both in seconds since the epoch."""
        times = self._cronsim(self._cron, datetime.fromtimestamp(after, self._zone))
        # Where an hour comes twice, its second pass finds ticks of the first.
        return next(tick for tick in map(datetime.timestamp, times) if tick > after)

    async def wait(self, *, wake: asyncio.Event) -> None:
        """Return at the next tick, or when `wake` is set."""
        self._after = max(self._after, time.time())
        while not wake.is_set():
            now = time.time()
            if now < self._after - CORRECTION_SECONDS:
                self._after = now
            due = self.next(self._after)
            if due <= now:
                self._after = now
                return
            await pause(min(due - now, LOOK_SECONDS), wake=wake)
