"""Deadlines: times by which something must be over, and nearly always is; one timer of the event loop serves all.

You need it for what each handler and each request has. You do not need it for what shall happen at a time: that is
`loop.call_later`, which costs 20 times as much to set and cancel.

Only the earliest deadline has a timer. When that rings, all are looked at: as many as there are handlers at work.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary


@dataclass(slots=True, eq=False)
class Deadline:
    """`callback` is called at the time `due` of its event loop, in the context in which it was added."""

    due: float
    callback: Callable[[], object]
    context: Context = field(default_factory=copy_context)


class Deadlines:
    """The deadlines of one event loop; `deadlines()` returns the object of the running loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._pending: dict[Deadline, None] = {}
        self._timer: asyncio.TimerHandle | None = None

    def add(self, seconds: float, callback: Callable[[], object]) -> Deadline:
        """Call `callback`, which must not raise, after `seconds`, unless it is removed before."""
        deadline = Deadline(self._loop.time() + seconds, callback)
        self._pending[deadline] = None
        self._set_timer(deadline.due)
        return deadline

    def remove(self, deadline: Deadline) -> None:
        """It was over in time. Without effect once it was called."""
        self._pending.pop(deadline, None)

    def _set_timer(self, due: float) -> None:
        if self._timer is not None:
            if self._timer.when() <= due:
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(due, self._ring)

    def _ring(self) -> None:
        self._timer, now = None, self._loop.time()
        for deadline in [pending for pending in self._pending if pending.due <= now]:
            self.remove(deadline)
            deadline.context.run(deadline.callback)
        if self._pending:
            self._set_timer(min(pending.due for pending in self._pending))


_by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, Deadlines] = WeakKeyDictionary()


def deadlines() -> Deadlines:
    """The deadlines of the running event loop."""
    loop = asyncio.get_running_loop()
    if loop not in _by_loop:
        _by_loop[loop] = Deadlines(loop)
    return _by_loop[loop]
