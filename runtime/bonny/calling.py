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
from typing import Any

from .errors import BonnyError, OptionError

__all__ = ["HandlerTimeout", "call", "report"]


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
    late: Callable[[], None] = lambda: None,
) -> object:
    """Call `handler` and wait for what it returns, at most for `seconds` (None: without end).

    `name` says in messages what it is; `late` is called at once when its time is over.
    Raises: what it raises; `HandlerTimeout`; a `BonnyError` for what would end the whole process, such as `sys.exit`.
    """
    if inspect.iscoroutinefunction(handler):
        return await _on_the_loop(handler, arguments, seconds=seconds, late=late)
    # Without a name for the future: an error's traceback holds this frame, and would be held by it.
    returned = (await _in_a_thread(partial(handler, *arguments), seconds=seconds, late=late)).result()
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
    except (Exception, GeneratorExit):
        raise
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        # It cancelled itself, or awaited something that was cancelled: a failure like any other.
        raise BonnyError(f"the handler was cancelled from within: {error}") from error
    except BaseException as error:
        raise _no_exit(error) from error


async def _in_a_thread(
    handler: Callable[[], object], *, seconds: float | None, late: Callable[[], None]
) -> asyncio.Future[object]:
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[object] = loop.create_future()
    run, arguments = contextvars.copy_context().run, (_work, handler, outcome, loop)
    threading.Thread(target=run, args=arguments, name="handler", daemon=True).start()
    done, _ = await asyncio.wait({outcome}, timeout=seconds)
    if not done:
        late()
        raise HandlerTimeout(seconds or 0.0, outcome)
    return outcome


def _work(handler: Callable[[], object], outcome: asyncio.Future[object], loop: asyncio.AbstractEventLoop) -> None:
    """In a thread: let what `handler` returns or raises become the outcome."""
    try:
        settle = partial(_set_result, outcome, handler())
    except Exception as error:  # noqa: BLE001  it goes on on the loop
        settle = partial(_set_exception, outcome, error)
    except BaseException as error:  # noqa: BLE001  there it would end the loop
        settle = partial(_set_exception, outcome, _no_exit(error))
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


def _no_exit(error: BaseException) -> BonnyError:
    """One object must not end the operator for all, nor keep its key for ever."""
    what = "called sys.exit"
    if not isinstance(error, SystemExit):
        what = f"raised {type(error).__name__}, which is no Exception"
    told = BonnyError(f"the handler {what}")
    # Notes are logged and reach no status: the text is the handler's own.
    told.add_note(f"it said: {error}")
    return told
