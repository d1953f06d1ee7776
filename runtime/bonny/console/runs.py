"""Runs: remembers the last reconciles of each object, with the requests that they sent.

It stands where traces are made (`telemetry.tracing`), and hands everything on to the traces that are made already.
Elsewhere: how it is shown (`snapshot`).
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Awaitable, Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

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

SORTS: Final = 1_000
"""Sorts of requests that are remembered; they grow with the namespaces."""

# Other errors, such as a cancellation, end a run from outside.
OUTCOMES: Final = ((Retry, "retry"), (Terminal, "stopped"), (Exception, "failed"), (BaseException, "cancelled"))


class Run(msgspec.Struct, gc=False):
    """One reconcile. Times are seconds; `at` is of the wall clock."""

    at: float
    action: str
    reasons: list[str]
    tries: int
    id: str
    seconds: float = 0.0
    outcome: str = "running"
    """`running`, `succeeded`, `waiting`, `retry`, `stopped`, `failed` or `cancelled`."""

    error: str = ""
    """As the condition `Reconciled` words it: without content of objects."""

    writes: list[str] = msgspec.field(default_factory=list)
    """Method, path and status of each request that was not a read."""

    version: int = 0
    """Of the history, when this run began or ended."""


_current: ContextVar[Run | None] = ContextVar("run", default=None)


class History:
    """The runs of this process. `inner` makes its traces; None: there are none."""

    def __init__(self, inner: Spans | None) -> None:
        self.inner = inner
        self.runs: OrderedDict[tuple[str, str, Key], deque[Run]] = OrderedDict()
        """By controller, kind (as `Kind.resource`) and object; the one whose run began or ended last is the last."""

        self.first = self.version = time.time_ns() // 1_000
        """Grows with each run. A process that starts later begins above the versions of an earlier one."""

        self.requests: dict[tuple[object, ...], tuple[str, str, bool, str]] = {}
        """One of each sort: method, path, whether it is a watch, and the status of its answer."""

        self.thread = threading.get_ident()
        """Other threads send requests of other programs, such as the page of `invoke run-local`."""

    async def reconcile(self, axn: Reconcile[Any], run: Awaitable[None], *, controller: str) -> None:
        """Await the run of a reconcile, and remember it."""
        entry = Run(time.time(), axn.action.value, sorted(map(str, axn.reasons)), axn.tries, reconcile_id())
        name = (controller, axn.kind.resource, axn.key)
        self.runs.setdefault(name, deque(maxlen=RUNS)).append(entry)
        self._changed(name, entry)
        began, before = time.monotonic(), _current.set(entry)
        try:
            await (run if self.inner is None else self.inner.reconcile(axn, run, controller=controller))
            entry.outcome, entry.error = ("succeeded", "") if axn.waiting is None else ("waiting", axn.waiting)
        except BaseException as error:
            entry.outcome = next(name for kind, name in OUTCOMES if isinstance(error, kind))
            entry.error = failure_of(error).message if isinstance(error, Exception) else ""
            raise
        finally:
            entry.seconds = time.monotonic() - began
            _current.reset(before)
            self._changed(name, entry)

    async def step(self, name: str, run: Awaitable[None]) -> None:
        """Await the run of a step, traced as before."""
        await (run if self.inner is None else self.inner.step(name, run))

    def request(self, method: str, path: str, *, host: str) -> Ended | None:
        """Let the request be traced as before."""
        return None if self.inner is None else self.inner.request(method, path, host=host)

    def hear(self, _name: str, _measurements: object, asked: Mapping[str, Any], _config: object) -> None:
        """Remember the request if it belongs to a run and writes, and one request of each sort.

        A listener of `bonny.client.request.answered`. Requests that differ in the object's name are of one sort.
        """
        method, path, status = asked["method"], asked["path"], asked["status"]
        if (entry := _current.get()) is not None and method != "GET" and len(entry.writes) < WRITES:
            entry.writes.append(f"{method} {path} {status}")
        parts, watch, group = path.split("/"), "watch" in asked["query"], 3 if path.startswith("/api/") else 4
        name = group + (3 if parts[group : group + 1] == ["namespaces"] and len(parts) > group + 2 else 1)
        sort = (method, status, watch, *parts[:name], *parts[name + 1 :], len(parts) > name)
        if threading.get_ident() == self.thread and len(self.requests) < SORTS:
            self.requests.setdefault(sort, (method, path, watch, status))

    def _changed(self, name: tuple[str, str, Key], entry: Run) -> None:
        if name in self.runs:
            self.version = entry.version = self.version + 1
            self.runs.move_to_end(name)
        if len(self.runs) > OBJECTS:
            self.runs.popitem(last=False)
