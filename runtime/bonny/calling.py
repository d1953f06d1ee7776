"""Calling: runs user code with a timeout.

An `async def` runs on the event loop and is cancelled at its timeout. A `def` runs in a thread of its own, which cannot
be cancelled, and not in a pool: a thread that never returns would delay the end of the process. Callers limit the
number of threads.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import logging
import os
import threading
import time
import traceback
import types
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from .errors import BonnyError, OptionError

HANDLER_THREAD: Final = "handler"
"""The name of all handler threads; a replica that lost its lease waits for them."""

# An error text is stored in a status, and etcd limits an object to 1.5 MiB.
LONGEST_TEXT: Final = 16 * 1024
# Frames of `bonny`, and of asyncio and its like.
NOT_OF_USERS: Final = (str(Path(__file__).parent) + os.sep, str(Path(os.__file__).parent / "asyncio") + os.sep)
# A cancelled handler ends within milliseconds unless it cleans up; after this time it ignores its cancellation.
OVERDUE_SECONDS: Final = 5.0

log = logging.getLogger("bonny.calling")

stopping: Final[contextvars.ContextVar[Callable[[], bool]]] = contextvars.ContextVar("stopping", default=lambda: True)
"""Set by servers: whether they are cancelling their handlers. A handler that is cancelled at any other time was
cancelled by user code, which is an error. Default: True, so a cancellation stays one."""


class HandlerTimeout(BonnyError, TimeoutError):
    """A handler did not return in time. `thread` completes when the thread of a `def` handler returns."""

    def __init__(self, seconds: float, thread: asyncio.Future[object] | None) -> None:
        super().__init__(f"the handler did not return within {seconds:g} s")
        self.thread = thread


def call(
    handler: Callable[..., Any],
    *arguments: object,
    seconds: float | None = None,
    name: str = "",
    thread: str = HANDLER_THREAD,
    late: Callable[[], None] = lambda: None,
    give_loop: Callable[[asyncio.AbstractEventLoop | None], None] = lambda _: None,
) -> Coroutine[Any, Any, object]:
    """Call `handler` when awaited, and return its result, after at most `seconds` (None: no timeout).

    `name` describes it in messages; `thread` names the thread of a `def`; `late` is called at the timeout;
    `give_loop` gets the event loop before a `def` is called, and None afterwards.
    Raises: what it raises; `HandlerTimeout`; a `BonnyError` for what would end the process, such as `sys.exit`.
    """
    work = partial(handler, *arguments)
    code = getattr(handler, "__code__", None)  # asked first: `inspect` takes 1 us
    name = name or getattr(handler, "__qualname__", repr(handler))
    if (code is not None and code.co_flags & inspect.CO_COROUTINE) or inspect.iscoroutinefunction(handler):
        return _on_the_loop(work, seconds=seconds, name=name, late=late)
    return _in_a_thread(work, seconds=seconds, name=name, thread=thread, late=late, give_loop=give_loop)


def check_plain(hook: Callable[..., object] | None) -> None:
    """Raises: `OptionError` for an `async def`."""
    if inspect.iscoroutinefunction(hook):
        raise OptionError(f"the hook {hook.__name__} is an `async def`: hooks are plain functions; use a step to await")


def raised_at(error: BaseException) -> str:
    """File and line of user code that `error` came through, the innermost; empty if it was raised without any.

    Frames of the runtime and of the standard library are not user code.
    """
    trace = ((frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__))
    lines = [f"{file}:{line}" for file, line in trace if not file.startswith(NOT_OF_USERS)]
    return lines[-1] if lines else ""


def report(write: Callable[..., None], message: str, error: BaseException, about: Mapping[str, object]) -> None:
    """Log an error of a handler; `write` is `log.warning` or its like.

    A `BonnyError` explains itself, beside the line of user code; other errors are logged with their traceback. An
    `error` in `about` is the text to log.
    """
    explained = isinstance(error, BonnyError)
    at = {"at": place} if explained and (place := raised_at(error)) else {}
    write(message, extra={"error": text_of(error), **about, **at}, exc_info=None if explained else error)


def text_of(error: BaseException, *, notes: str | tuple[str, ...] | None = None) -> str:
    """The text of `error`, or the name of its type if it has none or `__str__` raises; at most 16,384 characters.

    `notes`: also add the notes that begin with this text. Never raises.
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
    handler: Callable[[], Coroutine[Any, Any, object]], *, seconds: float | None, name: str, late: Callable[[], None]
) -> object:
    began, running = time.monotonic(), handler()
    try:
        try:
            # Nothing can interrupt it until it waits, so a handler that never waits needs no timer. It saves 2.4 us
            # (docs/decisions/0105).
            waiting = running.send(None)
        except StopIteration as ended:
            result = ended.value
        else:
            result = await _in_time(_resume(running, waiting), seconds, began=began, name=name, late=late)
        if (task := asyncio.current_task()) is not None and task.cancelling():
            await asyncio.sleep(0)  # a handler that cancelled its own task fails here instead of in a later step
        return result  # noqa: TRY300  after the wait, which may raise
    except Exception:
        raise
    except BaseException as error:
        raise as_failure(error) from error


async def _in_time(
    running: Awaitable[object], seconds: float | None, *, began: float, name: str, late: Callable[[], None]
) -> object:
    """Await `running`, which may take `seconds` since it `began` (monotonic seconds)."""
    loop, limit, timers = asyncio.get_running_loop(), asyncio.timeout(None), list[asyncio.TimerHandle]()

    def over() -> None:
        limit.reschedule(0.0)  # now
        extra = {"handler": name, "timeout_seconds": seconds}
        overdue = partial(log.warning, "handler still running after its timeout", extra=extra)
        timers.append(loop.call_later(OVERDUE_SECONDS, overdue))

    try:
        if seconds is not None:
            timers.append(loop.call_later(began + seconds - time.monotonic(), over))
        async with limit:
            return await running
    except TimeoutError as error:
        # A TimeoutError that the handler raised itself is an error like any other.
        if not limit.expired():
            raise
        late()
        raise HandlerTimeout(seconds or 0.0, None) from error
    finally:
        for timer in timers:
            timer.cancel()


@types.coroutine
def _resume(running: Coroutine[Any, Any, object], waiting: object) -> Generator[object, None, object]:
    """As `await running`, for a coroutine that was begun and waits for `waiting`."""
    while True:
        resume, value = running.send, None
        try:
            yield waiting
        except BaseException as error:  # noqa: BLE001  raised in the coroutine
            resume, value = running.throw, error
        try:
            waiting = resume(value)
        except StopIteration as ended:
            return ended.value
        finally:
            del resume, value  # the error's traceback holds this frame


async def _in_a_thread(handler: Callable[[], object], *, name: str, **options: Any) -> object:
    # No variable for the future: the traceback of its error holds this frame, and a cycle would delay its release.
    returned = (await _thread_of(handler, **options)).result()
    if inspect.iscoroutine(returned):
        returned.close()
        raise OptionError(
            f"{name} is a `def` that returned a coroutine, perhaps by a decorator: declare the wrapper "
            "`async def` and await the handler in it"
        )
    return returned


async def _thread_of(
    handler: Callable[[], object],
    *,
    seconds: float | None,
    thread: str,
    late: Callable[[], None],
    give_loop: Callable[[asyncio.AbstractEventLoop | None], None],
) -> asyncio.Future[object]:
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[object] = loop.create_future()
    run, arguments = contextvars.copy_context().run, (_work, handler, outcome, loop)
    give_loop(loop)
    try:
        threading.Thread(target=run, args=arguments, name=thread, daemon=True).start()
        await asyncio.wait({outcome}, timeout=seconds)
    finally:
        if not outcome.done():  # at the timeout, or when the operator stops
            late()
        give_loop(None)
    if not outcome.done():
        raise HandlerTimeout(seconds or 0.0, outcome)
    return outcome


def _work(handler: Callable[[], object], outcome: asyncio.Future[object], loop: asyncio.AbstractEventLoop) -> None:
    """In a thread: set `outcome` to what `handler` returns or raises."""
    result: object = None
    failure: BaseException | None = None
    try:
        result = handler()
    except StopIteration as error:
        # A future does not accept it: it would end the coroutine that waits.
        failure = RuntimeError("the handler raised StopIteration")
        failure.__cause__ = error
    except Exception as error:  # noqa: BLE001  raised again on the event loop
        failure = error
    except BaseException as error:  # noqa: BLE001  raised there, it would end the event loop
        failure = no_exit(error)
    # If the loop is closed by now, no task waits for the outcome.
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(_settle, outcome, result, failure)
    # The error's traceback holds this frame. If the frame held the error, too, the cycle would keep both in memory.
    del failure, outcome


def _settle(outcome: asyncio.Future[object], result: object, failure: BaseException | None) -> None:
    if failure is None and not outcome.done():
        outcome.set_result(result)
    elif failure is not None and not outcome.done():
        outcome.set_exception(failure)
        outcome.exception()  # read: when a term ends before its thread, no task is left that would


def as_failure(error: BaseException) -> BonnyError:
    """Replace an error of user code on the event loop that is not an `Exception`, see `no_exit`.

    Raises: `error` if it ends the running task itself, instead of having been raised by user code.
    """
    try:
        task = asyncio.current_task()
    except RuntimeError:  # the event loop has ended, and Python closes the remaining coroutines by a GeneratorExit
        raise error from None
    if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
        if stopping.get()():
            raise error
        while task.cancelling():
            task.uncancel()  # the task goes on: only user code asked it to end
    return no_exit(error)


def no_exit(error: BaseException) -> BonnyError:
    """Replace an error that is not an `Exception`: one object must neither end the operator, nor be lost with the task
    of its worker."""
    match error:
        case SystemExit():
            failure = BonnyError("sys.exit was called")
        case asyncio.CancelledError():
            failure = BonnyError("it was cancelled from within")
        case _:
            failure = BonnyError(f"{type(error).__name__} was raised, which is not an Exception")
    # Notes are only logged: the handler's own text must not get into a status.
    failure.add_note(f"its text: {text_of(error)}")
    return failure
