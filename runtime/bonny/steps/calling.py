"""Calling: runs what a user wrote for an object, within its time.

An `async def` handler runs on the loop and is cancelled when its time is over. A `def` handler runs in a thread, which
nobody can cancel: its axn is sealed, and its object is not handled again until the thread returns.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import threading
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from ..axn import Axn
from ..errors import BonnyError, OptionError

__all__ = ["HandlerTimeout", "call"]

Outcome: TypeAlias = "asyncio.Future[tuple[object, BaseException | None]]"


class HandlerTimeout(BonnyError, TimeoutError):
    """A handler did not return in time. `thread` is what still runs of it, for `def` handlers."""

    def __init__(self, seconds: float, thread: Outcome | None) -> None:
        super().__init__(f"the handler did not return within {seconds:g} s")
        self.thread = thread


async def call(handler: Callable[[Axn[Any]], Any], axn: Axn[Any], *, seconds: float, name: str) -> None:
    """Call `handler` with `axn`; `name` says in messages what it is.

    Raises: what the handler raises; `HandlerTimeout`.
    """
    if inspect.iscoroutinefunction(handler):
        await _on_the_loop(handler, axn, seconds=seconds)
        return
    returned = await _in_a_thread(handler, axn, seconds=seconds)
    if inspect.iscoroutine(returned):
        returned.close()
        raise OptionError(
            f"{name} is a `def` that returned a coroutine, perhaps by a decorator: make that an `async def` "
            "with await, too"
        )


async def _on_the_loop(handler: Callable[[Axn[Any]], Awaitable[None]], axn: Axn[Any], *, seconds: float) -> None:
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            await handler(axn)
    except TimeoutError as error:
        # A TimeoutError of the handler's own is an error like any other.
        if limit.expired():
            axn.seal()
            raise HandlerTimeout(seconds, None) from error
        raise


async def _in_a_thread(handler: Callable[[Axn[Any]], object], axn: Axn[Any], *, seconds: float) -> object:
    """Call `handler` in a thread of its own; returns what it returns, and raises what it raises.

    There are never more threads than the controller has slots. Not in a pool: a thread that never returns would keep a
    place in it, and hold up the end of the process.
    """
    loop = asyncio.get_running_loop()
    axn.lend_loop(loop)
    outcome: Outcome = loop.create_future()
    threading.Thread(
        target=contextvars.copy_context().run,
        args=(_call, handler, axn, outcome, loop),
        name=f"handler {axn.key}",
        daemon=True,
    ).start()
    try:
        await asyncio.wait({outcome}, timeout=seconds)
    finally:
        axn.lend_loop(None)
        if not outcome.done():  # its time is over, or the operator's
            axn.seal()
    if not outcome.done():
        raise HandlerTimeout(seconds, outcome)
    returned, error = outcome.result()
    try:
        if error is not None:
            raise error
        return returned
    finally:
        # An error's traceback holds this frame. If the frame held the error, too, the handling would stay in memory.
        del outcome, error


def _call(
    handler: Callable[[Axn[Any]], object], axn: Axn[Any], outcome: Outcome, loop: asyncio.AbstractEventLoop
) -> None:
    """In a thread: let what `handler` returns or raises become the outcome. A future takes no StopIteration, so it gets
    errors as values."""
    result: tuple[object, BaseException | None]
    try:
        result = handler(axn), None
    except BaseException as error:  # noqa: BLE001  it goes on on the loop
        result = None, error
    # The loop may be closed by now: then nobody waits any more.
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(_settle, outcome, result)
    del result, outcome


def _settle(outcome: Outcome, result: tuple[object, BaseException | None]) -> None:
    if not outcome.done():
        outcome.set_result(result)
