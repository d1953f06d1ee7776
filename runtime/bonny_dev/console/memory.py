"""Memory: the last run of each object, as the operator remembers it; only changes are requested again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from heapq import nlargest, nsmallest
from typing import Any, Final, NamedTuple

from ..inside.reading import Inside

# Two windows of a browser ask in turn.
SECONDS: Final = 1.0
SHOWN: Final = 10


class Last(NamedTuple):
    """The last run of an object. Times are of the wall clock of this machine."""

    outcome: str
    at: float
    seconds: float
    error: str
    tries: int
    due: float | None
    """When the next one begins, if there is one."""


NONE: Final = Last("none", 0.0, 0.0, "", 0, None)
"""Of an object of which no run is remembered."""


@dataclass(slots=True)
class Memory:
    """`look` brings it up to date."""

    inside: Inside
    runs: dict[tuple[str, str], dict[str, Last]] = field(default_factory=dict)
    """By controller and kind (as `Kind.resource`), then by object."""

    problem: str | None = None
    """Why the operator does not answer."""

    ahead: float = 0.0
    """Seconds by which the operator's clock is ahead of the clock of this machine."""

    _version: int = 0
    _looked: float = float("-inf")
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def look(self) -> None:
        """Request the changes, unless that was done a moment ago."""
        async with self._turn:
            if time.monotonic() - self._looked < SECONDS:
                return
            found = await self.inside.ask("/outcomes", since=str(self._version))
            self._looked, self.problem = time.monotonic(), found.get("problem")
            if self.problem is None:
                self._take(found)

    def _take(self, found: Mapping[str, Any]) -> None:
        if found["whole"]:
            self.runs.clear()
        self._version, self.ahead = found["version"], found["now"] - time.time()
        for controller, kind, name, outcome, at, seconds, error, tries, wait in found["runs"]:
            due = None if wait is None else time.time() + wait
            last = Last(outcome, at - self.ahead, seconds, error, tries, due)
            self.runs.setdefault((controller, kind), {})[name] = last

    def of(self, controller: str, kind: str) -> Mapping[str, Last]:
        """The last runs of a controller's objects of a kind."""
        return self.runs.get((controller, kind), {})

    def summary(self, controller: str, kind: str) -> dict[str, Any]:
        """The running handlers, the next retries with their times, and the slowest objects: ten of each."""
        runs, now = self.of(controller, kind), time.time()
        running = ((name, run) for name, run in runs.items() if run.outcome == "running")
        retries = ((name, run) for name, run in runs.items() if run.outcome in ("failed", "retry") and run.due)
        slow = ((name, run) for name, run in runs.items() if run.outcome != "running")
        return {
            "running": [
                {"object": name, "seconds": now - run.at}
                for name, run in nsmallest(SHOWN, running, key=lambda each: each[1].at)
            ],
            "retries": [
                {"object": name, "due": run.due, "tries": run.tries + 1, "error": run.error}
                for name, run in nsmallest(SHOWN, retries, key=lambda each: each[1].due or 0.0)
            ],
            "slowest": [
                {"object": name, "seconds": run.seconds}
                for name, run in nlargest(SHOWN // 2, slow, key=lambda each: each[1].seconds)
            ],
        }
