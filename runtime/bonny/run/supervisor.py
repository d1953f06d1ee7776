"""Supervisor: keeps one part of an operator running until it is stopped.

A part has `run` and `stop`. After `stop` it takes no new work, and `run` returns when the work in progress has ended. A
`run` that is cancelled cancels that work and waits for it, so a task that is not done has work that ignores it.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Collection, Coroutine, Iterable, Mapping
from typing import Any, Final, Protocol

from ..calling import HANDLER_THREAD
from ..controller import Restart

# An error that repeats at once must not fill the log.
RESTART_SECONDS: Final = 1.0
# A task that handles its cancellation ends within milliseconds.
CANCEL_SECONDS: Final = 1.0

log = logging.getLogger("bonny.run.supervisor")


class Runnable(Protocol):
    """A part that runs until it is cancelled."""

    async def run(self) -> None:
        """Run until cancelled."""


class Stoppable(Runnable, Protocol):
    """A part that ends by itself after `stop`."""

    def stop(self) -> None:
        """Let `run` return soon."""


class Supervised:
    """A running part. An error outside of handlers is logged, and the part is started again as `restart` says."""

    def __init__(self, part: Runnable, *, restart: Restart = Restart.PERMANENT) -> None:
        self.final = False
        """The part is not started again when it ends. Set it before the part is stopped."""

        self.failed = False
        """The part failed and is not started again."""

        self._part = part
        self._restart = restart
        self.task = asyncio.create_task(self._run(), name=str(part))

    async def _run(self) -> None:
        while not self.final and await self._run_once():  # noqa: ASYNC110  a pause between two runs
            await asyncio.sleep(RESTART_SECONDS)
        self.final = True

    async def _run_once(self) -> bool:
        """Run the part until it ends. Returns: whether to start it again."""
        try:
            await self._part.run()
            again = self._restart is Restart.PERMANENT
        except Exception:
            log.exception("a part of the operator failed: please report this", extra={"part": str(self._part)})
            again = self._restart is not Restart.TEMPORARY
            self.failed = not again
        return again and not self.final


class Term:
    """The parts that run while this replica leads, and what is left of them after it."""

    def __init__(self) -> None:
        self.parts: dict[Stoppable, Supervised] = {}
        self._late: set[asyncio.Task[Any]] = set()
        """Tasks that were cancelled; a task that is not done ignores it."""

    def begin(self, parts: Mapping[Stoppable, Restart]) -> None:
        """Start `parts`; nothing of an earlier term runs any more."""
        self._late.clear()
        self.parts = {part: Supervised(part, restart=restart) for part, restart in parts.items()}

    async def end(self, runs: Iterable[asyncio.Task[Any]], *, grace: float) -> None:
        """Take no new work, give `runs` and the work in progress `grace` seconds to end, and cancel the rest."""
        runs = set(runs)
        for part, supervised in self.parts.items():
            supervised.final = True
            part.stop()
        late = await ended([*runs, *(supervised.task for supervised in self.parts.values())], seconds=grace)
        if runs & late:
            log.warning("cancelled running handlers: grace period exceeded", extra={"count": len(runs & late)})
        self._late |= late
        self.parts.clear()

    @property
    def abandoned(self) -> bool:
        """After the end: whether work goes on that ignores its cancellation."""
        return any(not task.done() for task in self._late)

    @property
    def working(self) -> bool:
        """After the end: whether work goes on, on the loop or in a thread."""
        return self.abandoned or any(thread.name == HANDLER_THREAD for thread in threading.enumerate())


async def ended(tasks: Collection[asyncio.Task[Any]], *, seconds: float) -> set[asyncio.Task[Any]]:
    """Wait `seconds` for the tasks, then cancel the ones that still run.

    Returns: the tasks that were cancelled; a task that ignores it is not done.
    """
    late = set(tasks)
    if late:
        _, late = await asyncio.wait(late, timeout=seconds)
    await cancelled(late, seconds=CANCEL_SECONDS)
    return late


async def cancelled(tasks: Collection[asyncio.Task[Any]], *, seconds: float | None = None) -> None:
    """Cancel the tasks; return when they have ended, or after `seconds` (None: no limit)."""
    for task in tasks:
        task.cancel()
    await asyncio.wait({asyncio.gather(*tasks, return_exceptions=True)}, timeout=seconds)


async def first_of(*waits: Coroutine[Any, Any, object]) -> None:
    """Wait until one of the coroutines returns and cancel the others. Raises: what that one raises."""
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        await cancelled(tasks)
