"""Pool: keeps idle connections for later requests."""

from __future__ import annotations

import asyncio
from typing import Final

from ..clock import clock
from .connection import HttpConnection
from .dial import Route

# An idle connection is not used when a proxy may be about to close it: a write that crosses the close fails. HAProxy,
# as distributions configure it, closes after 10 s.
IDLE_SECONDS: Final = 5.0


class Pool:
    """Idle connections. The one that was used last is used first, so that the others are closed."""

    def __init__(self) -> None:
        self._idle: list[tuple[float, Route, HttpConnection]] = []
        self._timer: asyncio.TimerHandle | None = None

    def take(self, route: Route) -> HttpConnection | None:
        """An open connection along `route`, which leaves the pool; None when there is none."""
        self._close_old()
        for index in reversed(range(len(self._idle))):
            _, way, connection = self._idle[index]
            if way == route and connection.error is None:
                del self._idle[index]
                return connection
        return None

    def give_back(self, route: Route, connection: HttpConnection) -> None:
        """Keep `connection` for a later request, or close it if it cannot serve one."""
        if connection.rest():
            self._idle.append((clock(), route, connection))
            self._timer = self._timer or asyncio.get_running_loop().call_later(IDLE_SECONDS, self._ring)

    def _ring(self) -> None:
        """After a burst no request may come that would look for old connections."""
        self._close_old()
        self._timer = asyncio.get_running_loop().call_later(IDLE_SECONDS, self._ring) if self._idle else None

    def _close_old(self) -> None:
        oldest = clock() - IDLE_SECONDS
        while self._idle and self._idle[0][0] <= oldest:
            self._idle.pop(0)[2].abort()
