"""Deadlines: times at which a handler or request that still runs is cancelled; one timer of the event loop for all.

You need it for what each handler and each request has. You do not need it for what shall happen at a time: that is
`loop.call_later`, which costs 20 times as much to set and cancel.

Only the earliest deadline has a timer. When that rings, all are looked at: as many as there are handlers at work.
"""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from itertools import count
from typing import cast


class Deadlines:
    """The deadlines of one event loop; `deadlines()` returns the object of the running loop."""

    def __init__(self) -> None:
        self._pending: dict[int, tuple[float, Callable[[], object]]] = {}
        """When each is due, and what to call then."""

        self._timer: asyncio.Handle | None = None
        # uvloop's handle of a moment that is now or past does not know it.
        self._rings_at = math.inf
        self._numbers = count()

    def add(self, seconds: float, callback: Callable[..., object], *arguments: object) -> int:
        """Call `callback`, which must not raise, after `seconds` in the caller's context; returns its number."""
        number, due = next(self._numbers), asyncio.get_running_loop().time() + seconds
        self._pending[number] = due, partial(copy_context().run, callback, *arguments)
        self._set_timer(due)
        return number

    def remove(self, *numbers: int) -> None:
        """These were over in time. Without effect once the call was made."""
        for number in numbers:
            self._pending.pop(number, None)

    def _set_timer(self, due: float) -> None:
        if due < self._rings_at:
            if self._timer is not None:
                self._timer.cancel()
            self._rings_at, self._timer = due, asyncio.get_running_loop().call_at(due, self._ring)

    def _ring(self) -> None:
        self._rings_at, now = math.inf, asyncio.get_running_loop().time()
        for number, (due, call) in list(self._pending.items()):
            if due <= now and number in self._pending:  # an earlier call may have removed it
                self.remove(number)
                call()
        if self._pending:
            self._set_timer(min(due for due, _ in self._pending.values()))


# A thread runs one event loop at a time. A dictionary of loops would be asked by each handler and request.
_thread = threading.local()


def deadlines() -> Deadlines:
    """The deadlines of the running event loop."""
    loop = asyncio.get_running_loop()
    if getattr(_thread, "loop", None) is not loop:
        _thread.loop, _thread.deadlines = loop, Deadlines()
    return cast("Deadlines", _thread.deadlines)
