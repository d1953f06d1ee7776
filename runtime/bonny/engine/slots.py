"""Slots: tasks that take the keys of one queue, each one key after the other.

A task for each key would cost 4 us more, 4 % of the CPU of a watch event (docs/decisions/0105). A slot ends when user
code left something in its task that the next key would find; then another takes its place.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import math
import time
from collections.abc import Awaitable, Callable
from operator import is_not
from typing import Final, cast

from ..core.queue import Queue, Work
from ..resource import Key
from ..telemetry import tracing
from ..telemetry.logging import about

# Handlers that never wait keep the event loop for this long at a time, all slots together.
TURN_SECONDS: Final = 0.002

log = logging.getLogger("bonny.engine.worker")


class Slots:
    """Up to `count` tasks, from `start` on; `wake` lets one look at the queue."""

    def __init__(
        self, queue: Queue[Key], handle: Callable[[Work[Key]], Awaitable[None]], *, count: int, name: str
    ) -> None:
        self.count = count
        self.running: dict[asyncio.Task[None], float] = {}
        """Slots with a key, and when they took it (monotonic seconds)."""

        self.ended = asyncio.Event()
        """No key is taken any more, after `stop` or a defect."""

        self.defect: BaseException | None = None
        """The error of the queue that ended a slot."""

        self._queue = queue
        self._handle = handle
        self._name = name
        self._tasks: set[asyncio.Task[None]] = set()
        self._idle: list[asyncio.Future[None]] = []
        """The waits of idle slots."""

        self._timer: asyncio.Handle | None = None
        # uvloop's handle of a moment that is now or past does not know it.
        self._timer_at = math.inf
        self._surroundings = contextvars.copy_context()

    def start(self) -> None:
        """Take keys from now on, in copies of the caller's context."""
        tracing.observed.set(None)  # as after each key, so that a slot finds no difference
        self._surroundings = contextvars.copy_context()
        self._add()  # it also waits for the first timer

    def wake(self) -> None:
        """A key may have become ready: let an idle slot look, or start another one."""
        if self.ended.is_set() or not self._queue.ready:
            return
        if len(self._tasks) > len(self.running):
            self._wake_one()
        elif len(self._tasks) < self.count:
            self._add()

    def stop(self) -> None:
        """Take no further key."""
        self.ended.set()
        while self._idle:
            self._wake_one()

    async def cancel(self) -> int:
        """Stop, cancel what is running and wait for its end. Returns: how many keys that were."""
        self.stop()
        if self._timer is not None:
            self._timer.cancel()
            self._timer_at = math.inf
        late = list(self.running)
        for task in late:
            task.cancel()
        if ending := {*late, *self._tasks}:
            await asyncio.wait(ending)
        return len(late)

    def _add(self) -> None:
        slot = asyncio.create_task(self._slot(), name=self._name, context=self._surroundings.copy())
        self._tasks.add(slot)
        slot.add_done_callback(self._returned)

    def _returned(self, slot: asyncio.Task[None]) -> None:
        self._tasks.discard(slot)
        if not slot.cancelled() and slot.exception() is not None:
            self.defect = slot.exception()
            self.ended.set()
        elif not self.ended.is_set():
            self._add()

    async def _slot(self) -> None:
        task = cast("asyncio.Task[None]", asyncio.current_task())
        resumed = time.monotonic()
        while not self.ended.is_set():
            now = time.monotonic()
            turn_over = self._queue.ready and now - resumed > TURN_SECONDS / len(self._tasks)
            work = None if turn_over else self._queue.take(now=now)
            if work is None:
                await (asyncio.sleep(0) if turn_over else self._wait_for_key())
                resumed = time.monotonic()
                continue
            about(controller=self._name, object=work.key, reasons=work.reasons)
            surroundings = contextvars.copy_context()
            self.running[task] = now
            self.wake()  # there may be more
            try:
                await self._handle(work)
            except Exception:
                log.exception("a worker failed: please report this")
            finally:
                del self.running[task]
            tracing.observed.set(None)
            if task.cancelling() or _differ(surroundings, contextvars.copy_context()):
                return

    async def _wait_for_key(self) -> None:
        """Return when a key may be ready."""
        due = self._queue.next_due()
        if due is not None and due < self._timer_at:
            if self._timer is not None:
                self._timer.cancel()
            self._timer_at, self._timer = due, asyncio.get_running_loop().call_at(due, self._on_timer)
        idle = asyncio.get_running_loop().create_future()
        self._idle.append(idle)
        await idle

    def _on_timer(self) -> None:
        """A timer fired, or the wait of a key is over: the slot that looks wakes others if there is more."""
        self._timer_at = math.inf
        self._wake_one()

    def _wake_one(self) -> None:
        """Let an idle slot look. One that is about to be idle looks by itself before it waits."""
        if self._idle and not (idle := self._idle.pop()).done():
            idle.set_result(None)


def _differ(before: contextvars.Context, after: contextvars.Context) -> bool:
    """By identity: comparing would call `__eq__` of users' values. Contexts with the same variables have one order."""
    return len(before) != len(after) or any(map(is_not, (*before, *before.values()), (*after, *after.values())))
