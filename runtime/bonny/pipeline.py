"""Pipeline: passes an axn through its steps, one after the other.

A step is a callable that takes the axn and returns nothing, `async def` or `def`; a class with options defines
`__call__`. A step of your own takes three lines:

    async def refuse_on_fridays(axn: Axn[Any]) -> None:
        if datetime.now().weekday() == 4:
            axn.halt()

A step that raises ends the run. Only steps with `reports_failure = True` still run; they find the reason in
`axn.failure`. After a `Wait`, steps with `runs_while_waiting = True` still run: the steps that shape, apply or report
what was registered so far.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any

from .calling import add_note, as_failure, call, text_of
from .client.errors import Forbidden, Invalid, Refusal
from .core.conditions import ReconcileFailure
from .engine.reconcile import Reconcile, Step
from .errors import ADVICE, ALSO, BonnyError, ForeignObject, InvalidObject, Retry, Terminal, UndeclaredKind, Wait
from .events import Event, EventType
from .telemetry import tracing

log = logging.getLogger("bonny.pipeline")


class Pipeline:
    """An ordered set of steps."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self.steps = tuple(steps)

    async def run(self, axn: Reconcile[Any]) -> None:
        """Pass `axn` through the steps until one halts it, then emit its events and call its last hooks.

        A `Wait` is not raised: it is in `axn.waiting`.
        Raises: what a step raised, with a note that names the step, after the reporting steps ran. Their errors become
        notes, too; but if the first error was `Terminal`, theirs is raised, as no retry would report it.
        """
        axn.pause()
        for step in self.steps:
            if axn.halted:
                break
            if axn.waiting is not None and not getattr(step, "runs_while_waiting", False):
                continue
            try:
                await run_step(axn, step)
            except Wait as wait:
                axn.wait(text_of(wait), after=wait.after)
            except Exception as error:
                axn.failure = failure_of(error)
                await self._report(axn, error, failed=step)
                if not isinstance(error, Retry):
                    failure = failure_of(error, notes=(ALSO,))
                    action = axn.controller.event_action(axn.action)
                    axn.emit_at_end(Event(EventType.WARNING, failure.reason, action, failure.message))
                _finish(axn)
                raise
        _finish(axn)

    async def _report(self, axn: Reconcile[Any], error: Exception, *, failed: Step) -> None:
        """Run the reporting steps, except the one that failed: it would only fail again."""
        for step in self.steps:
            if step is failed or axn.halted or not getattr(step, "reports_failure", False):
                continue
            try:
                await run_step(axn, step)
            except Exception as unreported:
                if isinstance(error, Terminal):
                    raise
                # The first error is the one to raise: it may carry a thread that the worker has to wait for.
                add_note(error, f"not reported: {text_of(unreported)}")


def _finish(axn: Reconcile[Any]) -> None:
    """Events and last hooks. Their errors are only logged: the work is done and must not be repeated for them."""
    for last in axn.last_calls():
        try:
            last()
        except BaseException:
            log.exception("a hook failed", extra={"object": str(axn.key), "action": axn.action.value})


def run_step(axn: Reconcile[Any], step: Step) -> Awaitable[None]:
    """Run one step, in a span if spans are made.

    Raises, when awaited: what the step raises, with a note that names it; `BonnyError` in place of an error that is not
    an `Exception` (`bonny.calling.no_exit`).
    """
    run = _run(axn, step)
    return run if tracing.spans is None else tracing.spans.step(step_name(step), run)


async def _run(axn: Reconcile[Any], step: Step) -> None:
    try:
        rest = step(axn)
        if rest is not None and inspect.isawaitable(rest):
            await rest
    except BaseException as error:  # noqa: BLE001
        raise _noted(error, step)  # noqa: B904  it is this error, or has it as its cause


def _noted(error: BaseException, step: Step) -> BaseException:
    """`error` with a note that names the step, or what replaces it."""
    failed = error if isinstance(error, Exception) else as_failure(error)
    add_note(failed, f"in step {step_name(step)}")
    if failed is not error:
        failed.__cause__ = error
    return failed


def call_handler(
    handler: Callable[[Reconcile[Any]], Any], axn: Reconcile[Any], *, seconds: float, name: str
) -> Coroutine[Any, Any, object]:
    """Call a handler with its axn; at the timeout the axn is closed and accepts nothing more.

    `name` describes the handler in messages. Raises: what it raises; `HandlerTimeout`.
    """
    return call(handler, axn, seconds=seconds, name=name, late=axn.close, give_loop=axn.give_loop)


def step_name(step: Step) -> str:
    """The name of a step in logs: its function's or its class's."""
    return getattr(step, "__name__", None) or type(step).__name__


def failure_of(error: Exception, *, notes: tuple[str, ...] = (ALSO, ADVICE)) -> ReconcileFailure:
    """The reason and text of an error for an object's status: the same over retries, and without content of objects.

    The text of a handler's own error may contain secrets, so only its type is reported; the log has the rest.
    """
    text = text_of(error, notes=notes)
    match error:
        case Retry() | Terminal():
            return ReconcileFailure(type(error).__name__, text)
        case InvalidObject() | Invalid():
            return ReconcileFailure("Invalid", text)
        case ForeignObject():
            return ReconcileFailure("ForeignObject", text)
        case Forbidden() | UndeclaredKind():
            return ReconcileFailure("Forbidden", text)
        case BonnyError() if isinstance(error, TimeoutError):
            return ReconcileFailure("Timeout", text)
        case Refusal() | BonnyError():
            return ReconcileFailure("HandlerFailed", text)
    return ReconcileFailure("HandlerFailed", f"{type(error).__name__}: see the operator's log")
