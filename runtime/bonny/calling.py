"""Calling: runs what a user wrote, within its time.

An `async def` runs on the loop and is cancelled when its time is over. A `def` runs in a thread of its own, which
nobody can cancel. Not in a pool: a thread that never returns would keep a place in it, and hold up the end of the
process; how many there are is bounded by who calls.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import threading
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final

from .errors import BonnyError, OptionError

__all__ = ["HANDLER_THREAD", "HandlerTimeout", "call", "comes_from_outside", "no_exit", "report"]


HANDLER_THREAD: Final = "handler"
"""The name of the threads in which handlers run; a replica that lost its lease waits for them."""


class HandlerTimeout(BonnyError, TimeoutError):
    """A handler did not return in time. `thread` is what still runs of it, for those that are a `def`."""

    def __init__(self, seconds: float, thread: asyncio.Future[object] | None) -> None:
        super().__init__(f"the handler did not return within {seconds:g} s")
        self.thread = thread


async def call(
    handler: Callable[..., Any],
    *arguments: object,
    seconds: float | None = None,
    name: str = "",
    thread: str = HANDLER_THREAD,
    late: Callable[[], None] = lambda: None,
) -> object:
    """Call `handler` and wait for what it returns, at most for `seconds` (None: without end).

    `name` says in messages what it is; `thread` names the thread of a `def`; `late` is called at once when its time is
    over.
    Raises: what it raises; `HandlerTimeout`; a `BonnyError` for what would end the whole process, such as `sys.exit`.
    """
    if inspect.iscoroutinefunction(handler):
        return await _on_the_loop(handler, arguments, seconds=seconds, late=late)
    # Without a name for the future: an error's traceback holds this frame, and would be held by it.
    work = partial(handler, *arguments)
    returned = (await _in_a_thread(work, seconds=seconds, thread=thread, late=late)).result()
    if inspect.iscoroutine(returned):
        returned.close()
        raise OptionError(
            f"{name or handler} is a `def` that returned a coroutine, perhaps by a decorator: make that an `async def` "
            "with await, too"
        )
    return returned


def report(tell: Callable[..., None], message: str, error: BaseException, about: Mapping[str, object]) -> None:
    """Log what a handler raised; `tell` is `log.warning` or its like.

    Errors of our own say all there is to say; where others come from is worth a traceback.
    """
    traceback = None if isinstance(error, BonnyError) else error
    tell(message, extra={**about, "error": str(error) or type(error).__name__}, exc_info=traceback)


async def _on_the_loop(
    handler: Callable[..., Awaitable[object]],
    arguments: tuple[object, ...],
    *,
    seconds: float | None,
    late: Callable[[], None],
) -> object:
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            return await handler(*arguments)
    except TimeoutError as error:
        # A TimeoutError of the handler's own is an error like any other.
        if limit.expired():
            late()
            raise HandlerTimeout(seconds or 0.0, None) from error
        raise
    except Exception:
        raise
    except BaseException as error:
        if comes_from_outside(error):
            raise
        raise no_exit(error) from error


async def _in_a_thread(
    handler: Callable[[], object], *, seconds: float | None, thread: str, late: Callable[[], None]
) -> asyncio.Future[object]:
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[object] = loop.create_future()
    run, arguments = contextvars.copy_context().run, (_work, handler, outcome, loop)
    threading.Thread(target=run, args=arguments, name=thread, daemon=True).start()
    try:
        await asyncio.wait({outcome}, timeout=seconds)
    finally:
        if not outcome.done():  # its time is over, or the operator's
            late()
    if not outcome.done():
        raise HandlerTimeout(seconds or 0.0, outcome)
    return outcome


def _work(handler: Callable[[], object], outcome: asyncio.Future[object], loop: asyncio.AbstractEventLoop) -> None:
    """In a thread: let what `handler` returns or raises become the outcome."""
    try:
        settle = partial(_set_result, outcome, handler())
    except Exception as error:  # noqa: BLE001  it goes on on the loop
        settle = partial(_set_exception, outcome, error)
    except BaseException as error:  # noqa: BLE001  there it would end the loop
        settle = partial(_set_exception, outcome, no_exit(error))
    # The loop may be closed by now: then nobody waits any more.
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(settle)
    # An error's traceback holds this frame. If the frame held the error, too, the handling would stay in memory.
    del settle, outcome


def _set_result(outcome: asyncio.Future[object], result: object) -> None:
    if not outcome.done():
        outcome.set_result(result)


def _set_exception(outcome: asyncio.Future[object], error: BaseException) -> None:
    if outcome.done():
        return
    if isinstance(error, StopIteration):
        # A future refuses it: it would end the coroutine that waits.
        stopped = RuntimeError("the handler raised StopIteration")
        stopped.__cause__ = error
        error = stopped
    outcome.set_exception(error)


def comes_from_outside(error: BaseException) -> bool:
    """Whether it ends the running task itself, and is not what a handler raised."""
    task = asyncio.current_task()
    cancelled = isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0
    return cancelled or isinstance(error, GeneratorExit)


def no_exit(error: BaseException) -> BonnyError:
    """What stands for an error that is no `Exception`: one object must neither end the operator for all, nor stay with
    a worker that is gone."""
    match error:
        case SystemExit():
            told = BonnyError("sys.exit was called")
        case asyncio.CancelledError():
            told = BonnyError("it was cancelled from within")
        case _:
            told = BonnyError(f"{type(error).__name__} was raised, which is no Exception")
    # Notes are logged and reach no status: the text is the handler's own.
    told.add_note(f"it said: {error}")
    return told
