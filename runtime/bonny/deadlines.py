"""Deadlines: timers that nearly always are cancelled, all in one timer of the event loop.

You need it for what each handler and each request has: a time by which it must be over, and hardly ever is not.
You do not need it for what is meant to happen at a time: that is `loop.call_later`, which costs 20 times as much to set
and cancel.

Only the earliest deadline has a timer. When that rings, all are looked at: there are as many as handlers and requests
at work.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context, copy_context
from typing import NamedTuple
from weakref import WeakKeyDictionary


class _Deadline(NamedTuple):
    due: float
    callback: Callable[[], object]
    context: Context


class Deadlines:
    """The deadlines of one event loop. Get it by `deadlines`, on that loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._pending: dict[int, _Deadline] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._numbers = 0

    def __len__(self) -> int:
        return len(self._pending)

    def add(self, seconds: float, callback: Callable[[], object]) -> int:
        """Call `callback` after `seconds`, in the caller's context; returns the number for `remove`."""
        self._numbers += 1
        due = self._loop.time() + seconds
        self._pending[self._numbers] = _Deadline(due, callback, copy_context())
        if self._timer is None or due < self._timer.when():
            self._set_timer(due)
        return self._numbers

    def remove(self, number: int) -> None:
        """It was in time. Without effect once `callback` was called."""
        self._pending.pop(number, None)

    def _set_timer(self, due: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(due, self._ring)

    def _ring(self) -> None:
        self._timer = None
        now = self._loop.time()
        for number in [number for number, pending in self._pending.items() if pending.due <= now]:
            over = self._pending.pop(number, None)
            if over is not None:  # an earlier callback may have removed it
                self._loop.call_soon(over.callback, context=over.context)
        if self._pending:
            self._set_timer(min(pending.due for pending in self._pending.values()))


_of_loops: WeakKeyDictionary[asyncio.AbstractEventLoop, Deadlines] = WeakKeyDictionary()


def deadlines() -> Deadlines:
    """Those of the running event loop."""
    loop = asyncio.get_running_loop()
    found = _of_loops.get(loop)
    if found is None:
        found = _of_loops[loop] = Deadlines(loop)
    return found
