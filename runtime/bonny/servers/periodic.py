"""Periodic tasks: functions that run at an interval, or by a cron expression, registered at the start or while the
operator runs.

    async def evict(run: TaskRun, namespace: str) -> Next | Stop | None:
        ...
        return Next(run.state + 1)

    PeriodicTask("evictor", evict, arguments=("default",), interval=5.0, jitter=0.1, state=0)
    PeriodicTask("nightly", evict, arguments=("shop",), cron="30 2 * * *", timezone="Europe/Berlin", state=0)

You need it for work that is due by time: lifetimes, schedules, polling. To reconcile an object again, use
`axn.requeue_after`.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import math
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Final, TypeAlias

from ..calling import HANDLER_THREAD, call, report, stopping, text_of
from ..client.api import Client
from ..client.errors import NotLeading
from ..errors import BonnyError, OptionError
from ..naming import check_rules
from ..resource import Resource
from ..telemetry import execute
from ..telemetry.logging import about
from .ticks import IntervalTicks, cron_ticks

INTERVAL: Final = 5.0
# Ids may be made for each object, so the record of halted tasks is bounded.
REMEMBERED_HALTS: Final = 100
# A run that handles its cancellation ends within milliseconds.
CANCEL_SECONDS: Final = 1.0

log = logging.getLogger("bonny.servers.periodic")


@dataclass(frozen=True, slots=True)
class Next:
    """A handler's result: run again, with `state` in `run.state`."""

    state: Any


@dataclass(frozen=True, slots=True)
class Stop:
    """A handler's result: the task is done and does not run again; `reason` is logged."""

    reason: str


TaskResult: TypeAlias = Next | Stop | None


@dataclass(frozen=True, slots=True)
class TaskRun:
    """The argument of a handler."""

    id: str
    state: Any
    """The `state` of the task, or of the last `Next`."""

    client: Client
    """Requests as the operator's identity. The task's `rules` must allow them."""

    tasks: PeriodicTasks
    """The registry: `register` further tasks, or `unregister` any, this one included."""


@dataclass(frozen=True, slots=True)
class PeriodicTask:
    """A function that runs every `interval`, or at the times of `cron`.

    Guarantees: it never runs twice at the same time, and the interval does not drift: ticks that pass while it runs, or
    while the process is suspended, are skipped; later ticks are on time. Cron ticks that pass while the machine sleeps
    are made up for by one run.
    An `async def` runs on the loop, a `def` in a thread. It has no timeout.
    Raises: `OptionError` for impossible values.
    """

    id: str
    """Names the task; one id is registered once."""

    handler: Callable[..., TaskResult | Awaitable[TaskResult]]
    """Called with a `TaskRun` and the `arguments`. Returns None or `Next` to run again, or `Stop`. Any other result and
    any error halt the task: it is reported, and does not run until it is registered again."""

    _: KW_ONLY

    arguments: tuple[object, ...] = ()

    interval: float = INTERVAL
    """Seconds from one run to the next, and to the first. Default 5 s."""

    jitter: float = 0.0
    """Random delay of each run, as a fraction of the interval. Default 0."""

    cron: str = ""
    """Runs at these times instead of an interval, as in a CronJob: `*/5 * * * *`. Needs the extra `cron`. Default:
    none."""

    timezone: str = "UTC"
    """The time zone of `cron`: `Europe/Berlin`. Default UTC."""

    state: Any = None
    """`run.state` of the first run. Default None."""

    leader_only: bool = True
    """Run only on the leader. Default True. A run in progress is cancelled when the lease is lost, and its result is
    ignored."""

    rules: tuple[Resource, ...] = ()
    """The RBAC rules that the handler needs, as a Role writes them."""

    def __post_init__(self) -> None:
        check_rules(f"task {self.id}", self.rules)
        if self.cron:
            cron_ticks(self.cron, self.timezone, name=f"task {self.id}")
            if self.interval != INTERVAL or self.jitter:
                raise OptionError(f"task {self.id} has cron, and interval or jitter: leave out either")
        if not 0 < self.interval < math.inf:
            raise OptionError(f"the interval of task {self.id} is {self.interval}: use more than 0 seconds")
        if not 0 <= self.jitter <= 1:
            raise OptionError(f"the jitter of task {self.id} is {self.jitter}: use a fraction from 0 to 1")


@dataclass(slots=True, eq=False)
class _Registered:
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
        """Whether this process leads; otherwise the ticks of leader tasks are skipped."""

        self.failed = 0
        """Tasks halted since the start."""

        self.halted: dict[str, str] = {}
        """Errors of the last hundred halted tasks by id, until they are registered again or unregistered."""

        self._entries: dict[str, _Registered] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._running: dict[asyncio.Task[None], PeriodicTask] = {}
        # A task that a handler registers outlives the handler and is not a part of its trace.
        self._context = contextvars.copy_context()
        self._stopped = asyncio.Event()
        for task in tasks:
            if not self.register(task):
                raise OptionError(f"two tasks are called {task.id}: rename one")

    def __str__(self) -> str:
        return "periodic tasks"

    @property
    def registered(self) -> int:
        """Tasks that run; halted and stopped tasks do not count."""
        return len(self._entries)

    def register(self, task: PeriodicTask) -> bool:
        """Run `task` from now on. Returns: False, without effect, when its id is taken."""
        entry = _Registered(task, task.state)
        if self._entries.setdefault(task.id, entry) is not entry:
            return False
        self.halted.pop(task.id, None)
        execute("bonny.task.registered", {}, {"task": task.id})
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._begin, entry, context=self._context)
        return True

    def unregister(self, id: str) -> bool:  # noqa: A002  the name of the field
        """End the task after a run in progress. Returns: whether there was such a task."""
        self.halted.pop(id, None)
        entry = self._entries.pop(id, None)
        if entry is None:
            return False
        execute("bonny.task.unregistered", {}, {"task": id})
        if self._loop is not None:
            self._loop.call_soon_threadsafe(entry.ended.set)
        return True

    async def run(self) -> None:
        """Run the tasks until cancelled, or until the runs in progress have ended after `stop`."""
        self._loop = asyncio.get_running_loop()
        try:
            async with asyncio.TaskGroup() as self._group:
                for entry in list(self._entries.values()):
                    self._begin(entry)
                await self._stopped.wait()
        finally:
            self._loop = None

    def stop(self) -> None:
        """Begin no further run."""
        self._stopped.set()
        for entry in list(self._entries.values()):
            entry.ended.set()

    @property
    def ending(self) -> set[asyncio.Task[None]]:
        """The runs to wait for at the end of a term: runs of leader tasks; after `stop`, all runs."""
        stopped = self._stopped.is_set()
        return {run for run, task in self._running.items() if stopped or task.leader_only}

    # --- one task ---

    def _begin(self, entry: _Registered) -> None:
        """Begin to repeat the task, unless it has begun: a thread may register it while `run` starts."""
        begun = entry.repeating is not None and not entry.repeating.done()
        if self._entries.get(entry.task.id) is entry and self._loop and not begun and not self._stopped.is_set():
            entry.repeating = self._group.create_task(self._repeat(entry), name=f"task {entry.task.id}")

    async def _repeat(self, entry: _Registered) -> None:
        task = entry.task
        execute("bonny.task.initialized", {}, {"task": task.id})
        cron = cron_ticks(task.cron, task.timezone, name=f"task {task.id}") if task.cron else None
        ticks = cron or IntervalTicks(task.interval, task.jitter)
        while True:
            await ticks.wait(wake=entry.ended)
            if entry.ended.is_set():
                return
            if self.leading or not task.leader_only:
                await self._run(entry)

    async def _run(self, entry: _Registered) -> None:
        """One run in a task of its own: its cancellation does not end the later runs."""
        run = asyncio.create_task(self._run_once(entry), name=f"task {entry.task.id}")
        self._running[run] = entry.task
        run.add_done_callback(self._running.pop)
        try:
            await asyncio.wait({run})
        finally:
            if not run.done():
                run.cancel()
                await asyncio.wait({run}, timeout=CANCEL_SECONDS)

    async def _run_once(self, entry: _Registered) -> None:
        task, began = entry.task, time.monotonic()
        metadata: dict[str, object] = {"task": task.id}
        about(**metadata)
        stopping.set(lambda: self._ends(entry))
        try:
            run = TaskRun(task.id, entry.state, self.client, self)
            thread = HANDLER_THREAD if task.leader_only else "task"
            result = await call(task.handler, run, *task.arguments, thread=thread)
            if not (result is None or isinstance(result, Next | Stop)):
                raise BonnyError(f"it returned {type(result).__name__}: return None, Next(state) or Stop(reason)")
        except Exception as error:  # noqa: BLE001  it halts this task alone
            if task.leader_only and (isinstance(error, NotLeading) or not self.leading):
                report(log.warning, "task interrupted: no longer the leader", error, metadata)
                return
            self.failed += 1
            if self._entries.get(task.id) is entry:
                self.halted[task.id] = text_of(error)
            self._end(entry)
            if len(self.halted) > REMEMBERED_HALTS:
                del self.halted[next(iter(self.halted))]
            report(log.error, "task halted", error, metadata)
            execute("bonny.task.failed", {"duration": time.monotonic() - began}, {**metadata, "error": error})
            return
        name = "bonny.task.succeeded"
        if isinstance(result, Next):
            entry.state = result.state
        elif isinstance(result, Stop):
            self._end(entry)
            name, metadata = "bonny.task.stopped", {**metadata, "reason": result.reason}
            log.info("task stopped", extra=metadata)
        execute(name, {"duration": time.monotonic() - began}, metadata)

    def _ends(self, entry: _Registered) -> bool:
        """Whether the runtime cancels its runs: at the end of a term, or with `run`."""
        ending = self._stopped.is_set() or (entry.task.leader_only and not self.leading)
        return ending or (entry.repeating is not None and entry.repeating.cancelling() > 0)

    def _end(self, entry: _Registered) -> None:
        """End the task and free its id, unless another task has taken the id."""
        entry.ended.set()
        if self._entries.get(entry.task.id) is entry:
            del self._entries[entry.task.id]
