"""Calling: the user's code in the parts that run by themselves, `async def` on the loop, `def` in a thread of its own.

You need it to call what a user defined. You do not need it for controllers: `steps.delegate` calls their handlers.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from ..errors import BonnyError, OptionError
from ..steps.delegate import HandlerTimeout

__all__ = ["call", "report"]


async def call(handler: Callable[..., Any], *arguments: object, seconds: float | None = None) -> object:
    """Call `handler` and wait for what it returns, at most for `seconds` (None: without end).

    Raises: what it raises; `HandlerTimeout`, with the thread that still runs where it is a `def`; a `BonnyError` for
    what would end the whole process (`sys.exit`), or look like a cancellation from outside.
    """
    if inspect.iscoroutinefunction(handler):
        return await _on_the_loop(handler, arguments, seconds)
    thread = _in_a_thread(partial(handler, *arguments))
    done, _ = await asyncio.wait({thread}, timeout=seconds)
    if not done:
        raise HandlerTimeout(seconds or 0.0, thread)
    result, error = thread.result()
    if error is not None:
        try:
            raise _harmless(error)
        finally:
            # An error's traceback holds this frame. If the frame held the error, too, both would stay in memory.
            del error, thread, done
    if inspect.iscoroutine(result):
        result.close()
        raise OptionError(f"{handler} is a `def` that returned a coroutine: make it an `async def` with await")
    return result


async def _on_the_loop(handler: Callable[..., Any], arguments: tuple[object, ...], seconds: float | None) -> object:
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            return await handler(*arguments)
    except TimeoutError as error:
        # A TimeoutError of the handler's own is an error like any other.
        if limit.expired():
            raise HandlerTimeout(seconds or 0.0, None) from error
        raise
    except (Exception, GeneratorExit):
        raise
    except BaseException as error:
        task = asyncio.current_task()
        if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
            raise
        raise _harmless(error) from error


def _in_a_thread(function: Callable[[], Any]) -> asyncio.Future[Any]:
    """The result and the error of `function`. Not in a pool: a thread that never returns would hold up the end."""
    outcome: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    run = contextvars.copy_context().run
    threading.Thread(target=run, args=(_work, function, outcome), name="handler", daemon=True).start()
    return outcome


def _work(function: Callable[[], Any], outcome: asyncio.Future[Any]) -> None:
    settled: tuple[Any, BaseException | None]
    try:
        settled = (function(), None)
    except BaseException as error:  # noqa: BLE001  it goes on on the loop
        settled = (None, error)
    # The loop may be closed by now: then nobody waits any more.
    with contextlib.suppress(RuntimeError):
        outcome.get_loop().call_soon_threadsafe(outcome.set_result, settled)
    # An error's traceback holds this frame, too.
    del settled, outcome


def report(tell: Callable[..., None], message: str, error: BaseException, about: Mapping[str, object]) -> None:
    """Log what a handler raised; `tell` is `log.warning` or its like.

    Errors of our own say all there is to say; where others come from is worth a traceback.
    """
    traceback = None if isinstance(error, BonnyError) else error
    tell(message, extra={**about, "error": str(error) or type(error).__name__}, exc_info=traceback)


def _harmless(error: BaseException) -> Exception:
    """What one handler raised must not end the process for all."""
    if isinstance(error, Exception):
        return error
    return BonnyError(f"the handler raised {type(error).__name__}({error}), which ends nothing here")
