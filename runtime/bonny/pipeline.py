"""Pipeline: lets an axn pass through its steps, one after the other.

A step is a callable that takes the axn and returns nothing, `async def` or `def`; an object with options is one when it
has `__call__`. Your own, in three lines:

    async def refuse_on_fridays(axn: Axn[Any]) -> None:
        if datetime.now().weekday() == 4:
            axn.halt()

A step that raises ends the run, but for those that report: with `reports_failure = True` a step runs all the same and
finds the reason in `axn.failure`.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias

from .axn import Axn, HandlingFailure
from .client.errors import Forbidden, Invalid, Refusal
from .errors import BonnyError, ForeignObject, InvalidObject, Retry, Terminal, UndeclaredKind

__all__ = ["Pipeline", "Step", "step_name"]

Step: TypeAlias = Callable[[Axn[Any]], Awaitable[None] | None]


class Pipeline:
    """An ordered set of steps."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self.steps = tuple(steps)

    async def run(self, axn: Axn[Any]) -> None:
        """Pass `axn` through the steps until one halts it.

        Raises: what a step raised, with a note that names the step, after the other reporting steps ran. What they
        raise becomes a note, too, unless the first error was `Terminal`: nothing would come back to report that one.
        """
        for step in self.steps:
            if axn.halted:
                return
            try:
                await _run(axn, step)
            except Exception as error:
                axn.failure = failure_of(error)
                await self._report(axn, error, failed=step)
                raise

    async def _report(self, axn: Axn[Any], error: Exception, *, failed: Step) -> None:
        """Run the steps that report, but for the one that failed: it would only fail again."""
        for step in self.steps:
            if step is failed or axn.halted or not getattr(step, "reports_failure", False):
                continue
            try:
                await _run(axn, step)
            except Exception as unreported:
                if isinstance(error, Terminal):
                    raise
                # The first error goes on: a worker must learn of a thread that still runs.
                error.add_note(f"not reported: {unreported}")


async def _run(axn: Axn[Any], step: Step) -> None:
    try:
        result = step(axn)
        if result is not None and inspect.isawaitable(result):
            await result
    except Exception as error:
        error.add_note(f"in step {step_name(step)}")
        raise


def step_name(step: Step) -> str:
    """The name of a step in logs: its function's or its class's."""
    return getattr(step, "__name__", None) or type(step).__name__


def failure_of(error: Exception) -> HandlingFailure:
    """How an error reads in an object's status: the same over retries, and without content of objects.

    The text of a handler's own error may hold anything, so only its type is told; the log has the rest.
    """
    match error:
        case Retry() | Terminal():
            return HandlingFailure(type(error).__name__, str(error))
        case InvalidObject() | Invalid():
            return HandlingFailure("Invalid", str(error))
        case ForeignObject():
            return HandlingFailure("ForeignObject", str(error))
        case Forbidden() | UndeclaredKind():
            return HandlingFailure("Forbidden", str(error))
        case BonnyError() if isinstance(error, TimeoutError):
            return HandlingFailure("Timeout", str(error))
        case Refusal() | BonnyError():
            return HandlingFailure("HandlerFailed", str(error))
    return HandlingFailure("HandlerFailed", f"{type(error).__name__}: see the operator's log")
