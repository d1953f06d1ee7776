"""Event loop: which one runs, the code that blocks it, and handlers that would end it.

asyncio lets SystemExit and KeyboardInterrupt of any task end the loop. In tasks that a handler starts, `create_task`
turns them into errors of the task. Callbacks (`call_soon`, done callbacks) cannot be wrapped; see `bonny.main`.

uvloop, which needs less CPU, shows neither its handles nor their contexts: there, a log line about a callback does not
name controller and object, and each stack ends with the frames that started the loop.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
import threading
import time
import traceback
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from contextvars import Context
from types import FrameType
from typing import Any, Final

from ..calling import no_exit
from ..telemetry.logging import reconcile_id

EXITS: Final = (SystemExit, KeyboardInterrupt)
# No step of the runtime takes 0.1 s. The lease (15 s) and the liveness probe end the process after the log line.
BLOCKED_SECONDS: Final = 3.0
LOOK_SECONDS: Final = 0.5
# Modules that wait for the person: of pdb and its kin, and of the debuggers of editors.
DEBUGGERS: Final = ("bdb", "pydevd")
# Innermost frames in the log line; more would only repeat a recursion.
FRAMES: Final = 20

log = logging.getLogger("bonny.run.event_loop")


def loop_factory(name: str) -> Callable[[], asyncio.AbstractEventLoop]:
    """The function that makes the event loop of this name, as in `Config.event_loop`."""
    if name == "asyncio":
        return asyncio.new_event_loop
    import uvloop  # noqa: PLC0415  it need not be installed

    return uvloop.new_event_loop


def running(frames: Iterable[tuple[FrameType, int]]) -> tuple[str, Context]:
    """The stack of the task or callback that an event loop runs, and its context, from frames, innermost first.

    The stack has files, lines and functions, and no values. The context is empty where asyncio's own loop runs nothing.
    """
    stack: list[str] = []
    context = Context()
    for frame, line in frames:
        if frame.f_code is asyncio.Handle._run.__code__:  # noqa: SLF001
            handle = frame.f_locals["self"]
            context = handle._context  # noqa: SLF001  `get_context` is of Python 3.12
            # A callback that is written in C has no frame.
            stack = stack or [getattr(handle._callback, "__qualname__", "")]  # noqa: SLF001
            break
        stack.append(f"{frame.f_code.co_filename}:{line} {frame.f_code.co_qualname}")
    return " < ".join(stack[:FRAMES]), context


def running_in(thread: int, loop: asyncio.AbstractEventLoop | None) -> tuple[str, Context]:
    """As `running`, of a thread that runs, and of the loop in it. Guarantees: never blocks."""
    stack, context = running(traceback.walk_stack(sys._current_frames().get(thread)))  # noqa: SLF001  documented
    if not context and loop is not None:
        # `Task.get_context` is of Python 3.12; the garbage collector finds it in 3.11, too.
        parts = gc.get_referents(asyncio.current_task(loop))
        context = next((part for part in parts if isinstance(part, Context)), context)
    return stack, context


def is_debugged(thread: int) -> bool:
    """Whether a debugger holds `thread`: a person at its prompt blocks the loop on purpose."""
    frames = traceback.walk_stack(sys._current_frames().get(thread))  # noqa: SLF001  documented
    return any(frame.f_globals.get("__name__") in DEBUGGERS for frame, _ in frames)


class LoopMonitor:
    """A thread that logs, once per blockage, the code that blocks the event loop for more than 3 seconds.

    The line has the fields of `telemetry.logging.about`, so it names controller and object. Nothing is logged or
    counted while that code waits at the prompt of a debugger.

    Each look at the clock counts for `LOOK_SECONDS`, or for the CPU time that this process used since the last one if
    that is more. So a stopped process, a machine that slept and a busy CPU are not reported. C code that holds the
    interpreter's lock is, once it lets this thread run.
    """

    def __init__(self) -> None:
        self.blocked_seconds = 0.0
        """Total time of all blockages."""

        self._ended = threading.Event()

    def __enter__(self) -> LoopMonitor:
        """Begin, within the loop's thread."""
        arguments = (asyncio.get_running_loop(), threading.get_ident())
        threading.Thread(target=self._watch, args=arguments, name="event loop monitor", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()

    def _watch(self, loop: asyncio.AbstractEventLoop, thread: int) -> None:
        beat = threading.Event()
        beat.set()
        blocked, now, used = 0.0, time.monotonic(), time.process_time()
        while not self._ended.wait(LOOK_SECONDS):
            before, used_before, now, used = now, used, time.monotonic(), time.process_time()
            seconds = min(now - before, max(used - used_before, LOOK_SECONDS))
            if beat.is_set() and seconds < BLOCKED_SECONDS:
                blocked = 0.0
                beat.clear()
                with suppress(RuntimeError):  # the loop was closed
                    loop.call_soon_threadsafe(beat.set)
            elif blocked >= BLOCKED_SECONDS:
                self.blocked_seconds += seconds
            elif is_debugged(thread):
                blocked = 0.0
            elif (blocked := blocked + seconds) >= BLOCKED_SECONDS:
                self.blocked_seconds += blocked
                stack, context = running_in(thread, loop)
                extra = {"seconds": round(blocked, 1), "stack": stack}
                # A copy: a context can be entered by one thread at a time.
                context.copy().run(log.warning, "the event loop is blocked", extra=extra)


def create_task(loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> asyncio.Task[Any]:
    """A task factory: in a task that a handler starts, SystemExit and KeyboardInterrupt are errors of that task."""
    if not reconcile_id():
        return asyncio.Task(coroutine, loop=loop, **options)
    contained: Any = _without_exit(coroutine)
    contained.__qualname__ = getattr(coroutine, "__qualname__", contained.__qualname__)  # for messages of asyncio
    task = asyncio.Task(contained, loop=loop, **options)
    # A task that is cancelled before its first step never awaits the coroutine.
    task.add_done_callback(lambda _: coroutine.close())
    return task


async def _without_exit(coroutine: Awaitable[Any]) -> Any:
    try:
        return await coroutine
    except EXITS as error:
        raise no_exit(error) from error
