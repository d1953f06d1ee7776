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
import logging
import threading
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final

from .errors import BonnyError, OptionError

HANDLER_THREAD: Final = "handler"
"""The name of the threads in which handlers run; a replica that lost its lease waits for them."""

# A text goes into the log at each try, and into a status, which has to fit into an object of 1.5 MiB.
LONGEST_TEXT: Final = 16 * 1024
# A cancelled handler ends within milliseconds, unless it cleans up; later than this it ignores its cancellation.
OVERDUE_SECONDS: Final = 5.0

log = logging.getLogger("bonny.calling")

stopping: Final[contextvars.ContextVar[Callable[[], bool]]] = contextvars.ContextVar("stopping", default=lambda: True)
"""Set by servers: whether they are ending the handlers that they run. A handler that is cancelled at any other time was
cancelled by user code, which is a failure. Default: cancelled is cancelled."""


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
    work = partial(handler, *arguments)
    if inspect.iscoroutinefunction(handler):
        name = name or getattr(handler, "__qualname__", repr(handler))
        return await _on_the_loop(work, seconds=seconds, name=name, late=late)
    # Without a name for the future: an error's traceback holds this frame, and would be held by it.
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
    tell(message, extra={**about, "error": text_of(error)}, exc_info=traceback)


def text_of(error: BaseException, *, notes: str | None = None) -> str:
    """The text of `error`, or the name of its type where it has no text or cannot make it; at most 16,384 characters.

    `notes` adds the notes that begin with it. Never raises: user code also raises errors whose `__str__` raises.
    """
    parts = [type(error).__name__]
    with contextlib.suppress(BaseException):
        parts = [str(error) or parts[0]]
    with contextlib.suppress(BaseException):
        parts += [note for note in map(str, error.__notes__) if notes is not None and note.startswith(notes)]
    text = "; ".join(parts)
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}..."


def add_note(error: BaseException, note: str) -> None:
    """Add a note to an error of user code; without effect on one that cannot take it, such as a frozen dataclass."""
    with contextlib.suppress(BaseException):
        error.add_note(note)


async def _on_the_loop(
    handler: Callable[[], Awaitable[object]], *, seconds: float | None, name: str, late: Callable[[], None]
) -> object:
    limit, alarm = asyncio.timeout(seconds), None
    if seconds is not None:
        told = {"handler": name, "timeout_seconds": seconds}
        # Written in the context of the handler, so the line also says which object it is about.
        alarm = asyncio.get_running_loop().call_later(
            seconds + OVERDUE_SECONDS, lambda: log.warning("handler still running after its timeout", extra=told)
        )
    try:
        async with limit:
            result = await handler()
            if (task := asyncio.current_task()) is not None and task.cancelling():
                await asyncio.sleep(0)  # a handler that cancelled its own task fails here, and not in a later step
            return result
    except TimeoutError as error:
        # A TimeoutError of the handler's own is an error like any other.
        if limit.expired():
            late()
            raise HandlerTimeout(seconds or 0.0, None) from error
        raise
    except Exception:
        raise
    except BaseException as error:
        raise as_failure(error) from error
    finally:
        if alarm is not None:
            alarm.cancel()


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
    """Whether it ends the running task itself, and is not what user code raised."""
    try:
        task = asyncio.current_task()
    except RuntimeError:  # the loop has ended, and Python closes the coroutines that are left, by a GeneratorExit
        return True
    cancelled = isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0
    return cancelled and stopping.get()()


def as_failure(error: BaseException) -> BonnyError:
    """What stands for an error of user code on the loop that is no `Exception`, see `no_exit`.

    Raises: `error`, where it comes from outside.
    """
    if comes_from_outside(error):
        raise error
    task = asyncio.current_task()
    while isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
        task.uncancel()  # the task goes on, and nobody else asked it to end
    return no_exit(error)


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
    told.add_note(f"it said: {text_of(error)}")
    return told
