"""Runs: remembers the last reconciles of each object, with the requests that they sent.

It stands where traces are made (`telemetry.tracing`), and hands everything on to the traces that are made already.
Elsewhere: how it is shown (`snapshot`).
"""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Awaitable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from ..errors import Retry, Terminal
from ..pipeline import failure_of
from ..resource import Key
from ..telemetry.logging import reconcile_id
from ..telemetry.tracing import Ended, Spans

if TYPE_CHECKING:
    from ..engine.reconcile import Reconcile

RUNS: Final = 10
"""Remembered of one object."""

OBJECTS: Final = 5_000
"""Objects whose runs are remembered: the last ones that ran."""

WRITES: Final = 50
"""Requests remembered of one run."""

RUNNING: Final = "running"

Name: TypeAlias = tuple[str, Key]
"""Controller and object."""


class Run(msgspec.Struct, gc=False):
    """One reconcile. Times are seconds; `at` is of the wall clock."""

    at: float
    action: str
    reasons: list[str]
    tries: int
    id: str
    seconds: float = 0.0
    outcome: str = RUNNING
    """`running`, `succeeded`, `waiting`, `retry`, `stopped`, `failed` or `cancelled`."""

    error: str = ""
    """As the condition `Reconciled` words it: without content of objects."""

    writes: list[str] = msgspec.field(default_factory=list)
    """Method, path and status of each request that was not a read."""


_current: ContextVar[Run | None] = ContextVar("run", default=None)


class History:
    """The runs of this process. `inner` makes its traces; None: there are none."""

    def __init__(self, inner: Spans | None) -> None:
        self.inner = inner
        self.runs: OrderedDict[Name, deque[Run]] = OrderedDict()

    async def reconcile(self, axn: Reconcile[Any], run: Awaitable[None], *, controller: str) -> None:
        """Await the run of a reconcile, and remember it."""
        reasons = sorted(map(str, axn.reasons))
        entry = Run(time.time(), axn.action.value, reasons, axn.tries, reconcile_id())
        self._remember((controller, axn.key), entry)
        began, before = time.monotonic(), _current.set(entry)
        try:
            await (run if self.inner is None else self.inner.reconcile(axn, run, controller=controller))
            entry.outcome = "succeeded" if axn.waiting is None else "waiting"
            entry.error = axn.waiting or ""
        except BaseException as error:
            entry.outcome = _outcome(error)
            entry.error = failure_of(error).message if isinstance(error, Exception) else ""
            raise
        finally:
            entry.seconds = time.monotonic() - began
            _current.reset(before)

    async def step(self, name: str, run: Awaitable[None]) -> None:
        """Await the run of a step, traced as before."""
        await (run if self.inner is None else self.inner.step(name, run))

    def request(self, method: str, path: str, *, host: str) -> Ended | None:
        """Remember the request if it writes, and let it be traced as before."""
        ended = None if self.inner is None else self.inner.request(method, path, host=host)
        entry = _current.get()
        if entry is None or method == "GET" or len(entry.writes) >= WRITES:
            return ended
        writes = entry.writes

        def end(status: int | None, error: BaseException | None) -> None:
            writes.append(f"{method} {path} {status or type(error).__name__}")
            if ended is not None:
                ended(status, error)

        return end

    def running(self, controller: str) -> list[tuple[Key, Run]]:
        """The running reconciles of a controller, the oldest first."""
        last = ((key, runs[-1]) for (name, key), runs in self.runs.items() if name == controller)
        return sorted(((key, run) for key, run in last if run.outcome == RUNNING), key=lambda each: each[1].at)

    def _remember(self, name: Name, entry: Run) -> None:
        self.runs.setdefault(name, deque(maxlen=RUNS)).append(entry)
        self.runs.move_to_end(name)
        if len(self.runs) > OBJECTS:
            self.runs.popitem(last=False)


def _outcome(error: BaseException) -> str:
    names = {Retry: "retry", Terminal: "stopped", Exception: "failed"}
    return next((name for kind, name in names.items() if isinstance(error, kind)), "cancelled")
