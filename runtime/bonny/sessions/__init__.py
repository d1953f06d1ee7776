"""Sessions: what the parts of a process keep open, entered at its start and left at its end (`bonny.lifespan`)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable
from contextlib import AsyncExitStack
from typing import Final

from ..calling import call, report
from ..lifespan import HasLifespan
from ..run.lifespans import Lifespans as Base
from ..run.supervisor import ended, first_of

# Closing a connection takes milliseconds. It is done while the last events are sent, which takes as long at most.
LEAVE_SECONDS: Final = 2.0

log = logging.getLogger("bonny.sessions")


class Lifespans(Base):
    """The lifespans of one process."""

    def __init__(self) -> None:
        super().__init__()
        self._begun: list[_Lifespan] = []

    async def enter(self, parts: Iterable[HasLifespan]) -> None:
        begun = [_Lifespan(each, self._fail) for each in parts if type(each).lifespan is not HasLifespan.lifespan]
        self._begun += begun
        for each in begun:
            await first_of(self.stop.wait(), each.entered.wait())

    async def leave(self, parts: Collection[HasLifespan] | None = None) -> None:
        leaving = [each for each in self._begun if parts is None or each.part in parts]
        self._begun = [each for each in self._begun if each not in leaving]
        await ended([each.leave() for each in leaving], seconds=LEAVE_SECONDS)

    def waiting(self) -> list[str]:
        return [each.name for each in self._begun if not each.entered.is_set()]

    def _fail(self) -> None:
        self.failed = True
        self.stop.set()


class _Lifespan:
    """The lifespan of one part, in a task of its own: entered at once, left by `leave`."""

    def __init__(self, part: HasLifespan, fail: Callable[[], None]) -> None:
        """`fail` is called when it cannot be entered, or ends before `leave`."""
        self.name = type(part).__name__
        self.entered, self._leave = asyncio.Event(), asyncio.Event()
        self.part, self._fail = part, fail
        self._task = asyncio.create_task(self._run(), name=f"lifespan of {self.name}")

    async def _run(self) -> None:
        try:
            async with AsyncExitStack() as opened:
                # One task enters and leaves it: task groups and timeouts of user code need that.
                await call(opened.enter_async_context, self.part.lifespan(), seconds=self.part.timeout)
                self.entered.set()
                await self._leave.wait()
        except Exception as error:  # noqa: BLE001  it ends the operator in order
            then = "nothing: it was about to end" if self._leave.is_set() else "the operator stops"
            report(log.error, "a lifespan failed", error, {"part": self.name, "then": then})
        finally:
            if not self._leave.is_set():
                self._fail()

    def leave(self) -> asyncio.Task[None]:
        """Close it; returns the task to wait for."""
        self._leave.set()
        if not self.entered.is_set():
            self._task.cancel()
        return self._task
