"""Periodic tasks: functions that run again and again, by id, registered at the start or while the operator runs.

    async def evict(run: TaskRun, namespace: str) -> Next | Stop | None:
        ...
        return Next(run.state + 1)

    PeriodicTask("evictor", evict, arguments=("default",), interval=5.0, jitter=0.1, state=0)

You need it for what is due by time and not by a change: lifetimes, schedules, polling of what is outside of Kubernetes.
You do not need it to look at an object again: `axn.requeue_after`.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import math
import random
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Final, TypeAlias

from ..calling import HANDLER_THREAD, call, report, stopping, text_of
from ..client.api import Client
from ..client.errors import NotLeading
from ..errors import BonnyError, OptionError
from ..resource import Resource
from ..telemetry import execute
from ..telemetry.logging import about

__all__ = ["Next", "PeriodicTask", "PeriodicTasks", "Stop", "TaskRun", "next_tick", "pause"]

# Ids may be made for each object: what is remembered of those that were halted is bounded.
REMEMBERED_HALTS: Final = 100
# A run that was cancelled ends at once, or does not mean to.
CANCEL_SECONDS: Final = 1.0

log = logging.getLogger("bonny.servers.periodic")


@dataclass(frozen=True, slots=True)
class Next:
    """A handler's result: run again, and find `state` in `run.state` then."""

    state: Any


@dataclass(frozen=True, slots=True)
class Stop:
    """A handler's result: the task is done and does not run again; `reason` is logged."""

    reason: str


Result: TypeAlias = Next | Stop | None


@dataclass(frozen=True, slots=True)
class TaskRun:
    """What a handler is given for one run."""

    id: str
    state: Any
    client: Client
    tasks: PeriodicTasks
    """Where to `register` further tasks, or to `unregister` any, this one included."""


@dataclass(frozen=True, slots=True)
class PeriodicTask:
    """A function that runs every `interval`.

    Guarantees: it never runs twice at the same time, and the interval does not drift: ticks that pass while it runs, or
    while the process stands still, are left out; then it runs at once, and from then on as if nothing had happened.
    An `async def` runs on the loop, a `def` in a thread. It has no timeout.
    Raises: `OptionError` for impossible values.
    """

    id: str
    """Names the task; one id is registered once."""

    handler: Callable[..., Result | Awaitable[Result]]
    """Called with a `TaskRun` and the `arguments`. It returns None or `Next` to be run again, or `Stop`. Anything else,
    and any error, halts the task: it is reported, and does not run again until it is registered anew."""

    _: KW_ONLY

    arguments: tuple[object, ...] = ()

    interval: float = 5.0
    """Seconds from one run to the next, and to the first. Default 5 s."""

    jitter: float = 0.0
    """Each run is late by up to this fraction of the interval, by chance. Default 0."""

    state: Any = None
    """What the first run finds in `run.state`. Default None."""

    leader_only: bool = True
    """Run only where the operator leads. Default True. A run that is under way when the lease is lost is cancelled; it
    counts as not having been."""

    rules: tuple[Resource, ...] = ()
    """The RBAC rules that the handler needs, as a Role writes them."""

    def __post_init__(self) -> None:
        if not 0 < self.interval < math.inf:
            raise OptionError(f"the interval of task {self.id} is {self.interval}: use more than 0 seconds")
        if not 0 <= self.jitter <= 1:
            raise OptionError(f"the jitter of task {self.id} is {self.jitter}: use a fraction from 0 to 1")


@dataclass(slots=True, eq=False)
class _Entry:
    task: PeriodicTask
    state: Any
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    repeating: asyncio.Task[None] | None = None


class PeriodicTasks:
    """The tasks of one operator. `register` and `unregister` may be called from any thread, before and during `run`."""

    def __init__(self, client: Client, tasks: Iterable[PeriodicTask] = ()) -> None:
        """Raises: `OptionError` when two tasks have one id."""
        self.client = client
        self.leading = True
        """Whether tasks that are for the leader run; while they do not, their ticks are left out."""

        self.failed = 0
        """How many tasks were halted so far."""

        self.halted: dict[str, str] = {}
        """Why tasks were halted, by id, the last hundred; until they are registered anew or unregistered."""

        self._entries: dict[str, _Entry] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._running: dict[asyncio.Task[None], PeriodicTask] = {}
        # A task that a handler registers lives on, and is no part of the handler's trace.
        self._context = contextvars.copy_context()
        self._stopped = asyncio.Event()
        for task in tasks:
            if not self.register(task):
                raise OptionError(f"two tasks are called {task.id}: rename one")

    def __str__(self) -> str:
        return "periodic tasks"

    @property
    def registered(self) -> int:
        """How many there are; those that were halted or stopped are none."""
        return len(self._entries)

    def register(self, task: PeriodicTask) -> bool:
        """Let `task` run from now on; returns whether it was new. A task whose id is taken changes nothing."""
        entry = _Entry(task, task.state)
        if self._entries.setdefault(task.id, entry) is not entry:
            return False
        self.halted.pop(task.id, None)
        execute("bonny.task.registered", {}, {"task": task.id})
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._begin, entry, context=self._context)
        return True

    def unregister(self, id: str) -> bool:  # noqa: A002  the name of the field
        """Let the task end; returns whether there was one. A run that is under way goes on to its end."""
        self.halted.pop(id, None)
        entry = self._entries.pop(id, None)
        if entry is None:
            return False
        execute("bonny.task.unregistered", {}, {"task": id})
        if self._loop is not None:
            self._loop.call_soon_threadsafe(entry.ended.set)
        return True

    async def run(self) -> None:
        """Run the tasks until cancelled, or until what runs has ended after `stop`."""
        self._loop = asyncio.get_running_loop()
        try:
            async with asyncio.TaskGroup() as self._group:
                for entry in list(self._entries.values()):
                    self._begin(entry)
                await self._stopped.wait()
        finally:
            self._loop = None

    def stop(self) -> None:
        """Run nothing more; what runs goes on to its end."""
        self._stopped.set()
        for entry in list(self._entries.values()):
            entry.ended.set()

    @property
    def ending(self) -> set[asyncio.Task[None]]:
        """The runs to wait for at the end of a term: those of leader tasks, after `stop` all."""
        stopped = self._stopped.is_set()
        return {run for run, task in self._running.items() if stopped or task.leader_only}

    # --- one task -----------------------------------------------------------------------------------------------------

    def _begin(self, entry: _Entry) -> None:
        """Once for each run of ours, although a thread may ask for what was just begun at the start."""
        begun = entry.repeating is not None and not entry.repeating.done()
        if self._entries.get(entry.task.id) is entry and self._loop and not begun and not self._stopped.is_set():
            entry.repeating = self._group.create_task(self._repeat(entry), name=f"task {entry.task.id}")

    async def _repeat(self, entry: _Entry) -> None:
        task, start = entry.task, time.monotonic()
        execute("bonny.task.initialized", {}, {"task": task.id})
        while True:
            tick = next_tick(start, task.interval, after=time.monotonic())
            await pause(tick + task.interval * task.jitter * random.random(), wake=entry.ended)
            if entry.ended.is_set():
                return
            if self.leading or not task.leader_only:
                await self._run(entry)

    async def _run(self, entry: _Entry) -> None:
        """One run, which can be cancelled without an end of those that follow."""
        run = asyncio.create_task(self._run_once(entry), name=f"task {entry.task.id}")
        self._running[run] = entry.task
        run.add_done_callback(self._running.pop)
        try:
            await asyncio.wait({run})
        finally:
            if not run.done():
                run.cancel()
                await asyncio.wait({run}, timeout=CANCEL_SECONDS)

    async def _run_once(self, entry: _Entry) -> None:
        task, began = entry.task, time.monotonic()
        told: dict[str, object] = {"task": task.id}
        about(**told)
        stopping.set(lambda: self._ends(entry))
        try:
            run = TaskRun(task.id, entry.state, self.client, self)
            thread = HANDLER_THREAD if task.leader_only else "task"
            result = await call(task.handler, run, *task.arguments, thread=thread)
            if not (result is None or isinstance(result, Next | Stop)):
                raise BonnyError(f"it returned {type(result).__name__}: return None, Next(state) or Stop(reason)")
        except Exception as error:  # noqa: BLE001  whatever it is, it halts this task and no other
            if task.leader_only and (isinstance(error, NotLeading) or not self.leading):
                report(log.warning, "task interrupted: not leading any more", error, told)
                return
            self.failed += 1
            if self._entries.get(task.id) is entry:
                self.halted[task.id] = text_of(error)
            self._end(entry)
            if len(self.halted) > REMEMBERED_HALTS:
                del self.halted[next(iter(self.halted))]
            report(log.error, "task halted", error, told)
            execute("bonny.task.failed", {"duration": time.monotonic() - began}, {**told, "error": error})
            return
        name = "bonny.task.succeeded"
        if isinstance(result, Next):
            entry.state = result.state
        elif isinstance(result, Stop):
            self._end(entry)
            name, told = "bonny.task.stopped", {**told, "reason": result.reason}
            log.info("task stopped", extra=told)
        execute(name, {"duration": time.monotonic() - began}, told)

    def _ends(self, entry: _Entry) -> bool:
        """Whether its runs are cancelled from here: by `drain`, or with `run`."""
        drained = self._stopped.is_set() or (entry.task.leader_only and not self.leading)
        return drained or (entry.repeating is not None and entry.repeating.cancelling() > 0)

    def _end(self, entry: _Entry) -> None:
        """Let it not run again, and free its id, unless that means another one by now."""
        entry.ended.set()
        if self._entries.get(entry.task.id) is entry:
            del self._entries[entry.task.id]


def next_tick(start: float, interval: float, *, after: float) -> float:
    """The first of `start + interval`, `start + 2 * interval`, ... that is later than `after`; all in seconds.

    Guarantees: ticks do not drift, however long the work at each takes; after a pause of any length the next one is on
    time, and those that passed meanwhile are gone.
    """
    tick = start + interval * math.floor((after - start) / interval + 1)
    # Rounding may lead back to `after` itself.
    return tick if tick > after else tick + interval


async def pause(until: float, *, wake: asyncio.Event) -> None:
    """Wait until the monotonic clock shows `until`, never less; or until `wake` is set."""
    while (left := until - time.monotonic()) > 0 and not wake.is_set():
        with suppress(TimeoutError):
            async with asyncio.timeout(left):
                await wake.wait()
