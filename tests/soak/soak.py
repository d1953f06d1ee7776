"""Soak: one run from the empty cluster to the report, phase by phase.

    first list --> chaos, while the world changes --> everything as wanted --> quiet --> rest --> checks

The quiet waits until idle connections are closed, so that the process is measured in the same state twice.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bonny_dev.crd.definition import crds
from bonny_dev.sandbox import Sandbox
from bonny_dev.sandbox.admin import Admin
from bonny_dev.sandbox.guard import Guard
from bonny_dev.testing.faults import FaultProxy, ProxiedRequest, is_write
from tests.support.processes import writes

from . import checks
from .chaos import Chaos
from .checks import Check
from .collector import Collector
from .controller import operator
from .process import LOG, Census, OperatorUnderTest
from .schedule import ALWAYS, Kind, schedule
from .traffic import Traffic, is_of_events
from .world import CHILDREN, WIDGETS, World, insist

__all__ = ["Options", "Report", "run"]

PROGRESS_SECONDS: Final = 10.0
LOOK_SECONDS: Final = 2.0
# A key that failed often waits up to 300 s (bonny.core.queue), a stream up to 30 s.
CONVERGE_SECONDS: Final = 360.0
FIRST_LIST_SECONDS: Final = 120.0
# The client closes connections that were idle for 15 s, and looks for them every 15 s.
QUIET_SECONDS: Final = 32.0
QUIET_WITHIN_SECONDS: Final = 180.0
# What an operator that was killed had not noticed by then, or what happens while it is down, it does not owe.
UNNOTICED_SECONDS: Final = 90.0


@dataclass(frozen=True, kw_only=True)
class Options:
    """What one soak is like."""

    seed: int
    minutes: float = 10.0
    objects: int = 2_000
    rest_seconds: float = 30.0
    kill_operator: bool = False
    """Whether the operator, too, is killed now and then. Deletions that it cannot know of are then excused."""

    log: Path | None = None
    """Where to keep the operator's log; None: nowhere."""


@dataclass(frozen=True, slots=True)
class Report:
    """What came out, and in numbers what was done."""

    checks: tuple[Check, ...]
    facts: dict[str, str]

    @property
    def passed(self) -> bool:
        return all(check.passed for check in self.checks)


def run(options: Options, *, say: Callable[[str], None]) -> Report:
    """One soak on a control plane of its own. `say` is called with each line of progress.

    Raises: `AssertionError` when something takes too long or the operator ends; `SandboxError` when the control plane
    fails.
    """
    folder = Path(tempfile.gettempdir()).resolve() / f"bonny-soak-{os.getpid()}"
    with Sandbox() as sandbox, FaultProxy(sandbox) as proxy, Guard(folder) as guard:
        try:
            return Soak(options, sandbox, proxy, guard, say=say).run()
        finally:
            if options.log is not None and (folder / LOG).exists():
                shutil.copy(folder / LOG, options.log)


class Soak:
    """Who takes part, and the phases."""

    def __init__(
        self, options: Options, sandbox: Sandbox, proxy: FaultProxy, guard: Guard, *, say: Callable[[str], None]
    ) -> None:
        self._options = options
        self._sandbox = sandbox
        self._proxy = proxy
        self._say = say
        self._operator = OperatorUnderTest(guard, kubeconfig=proxy.kubeconfig)
        self._chaos = Chaos(sandbox, proxy, self._operator)
        # An `Admin` serves one thread.
        self._admin, for_collector, for_world = (_admin(sandbox) for _ in range(3))
        self._collector = Collector(for_collector, seed=options.seed)
        self._world = World(for_world, objects=options.objects, seed=options.seed, on_deleted=self._collector.deleted)
        self._traffic = Traffic()
        self._probes = 0
        self._red = 0

    # --- phases -------------------------------------------------------------------------------------------------------

    def run(self) -> Report:
        """Raises: as `run` of this module."""
        self._sandbox.apply(crds(operator.crds, operator.group))
        self._say(f"creating {self._options.objects:,} objects")
        self._world.populate()
        self._operator.start()
        seconds = self._until_as_wanted(within_seconds=FIRST_LIST_SECONDS)
        if seconds > FIRST_LIST_SECONDS:
            raise AssertionError(f"the first list was not handled within {FIRST_LIST_SECONDS:.0f} s")
        before = self._quiet()
        self._say(f"first list handled in {seconds:.0f} s; {before}")
        recovered = self._turmoil()
        self._say(self._recovery(recovered))
        after = self._quiet()
        rest = self._rest()
        self._traffic.take(self._proxy.requests)
        return Report(
            checks=(
                *self._as_wanted(),
                checks.late_children(self._collector.late),
                rest,
                checks.memory(before, after),
                checks.resources(before, after),
                checks.requests(self._traffic, objects=self._options.objects),
                self._end(),
                checks.log_lines(self._operator.log.read().messages, self._operator.log.complaints),
            ),
            facts=self._facts(recovered),
        )

    def _turmoil(self) -> float:
        """Chaos, and then the time until everything is as wanted; returns that time, in seconds."""
        seconds = self._options.minutes * 60
        strikes = schedule(
            self._options.seed, seconds=seconds, kinds=frozenset(Kind) if self._options.kill_operator else ALWAYS
        )
        self._say(f"{len(strikes)} faults in {seconds:.0f} s")
        chaos_over, all_over = threading.Event(), threading.Event()
        with ThreadPoolExecutor() as threads:
            try:
                collecting = threads.submit(self._collector.run, all_over)
                changing = threads.submit(self._world.run, chaos_over)
                striking = threads.submit(self._chaos.run, strikes, seconds=seconds, stop=chaos_over)
                self._watch_over(striking, others=(collecting, changing))
                chaos_over.set()
                changing.result()
                self._world.populate()
                took = self._until_as_wanted(within_seconds=CONVERGE_SECONDS)
                all_over.set()
                collecting.result()
            finally:
                chaos_over.set()
                all_over.set()
        return took

    def _watch_over(self, run: Future[None], *, others: Sequence[Future[None]]) -> None:
        """Tell how it goes until `run` is done. Raises: what one of them raised."""
        began = time.monotonic()
        while not wait([run], timeout=PROGRESS_SECONDS).done:
            self._operator.must_live()
            self._probes += 1
            self._red += not self._operator.healthy()
            self._traffic.take(self._proxy.requests)
            for other in others:
                if other.done():
                    other.result()
            self._say(self._progress(time.monotonic() - began))
        run.result()

    def _progress(self, seconds: float) -> str:
        log = self._operator.log.read()
        return (
            f"{seconds:5.0f} s  {self._chaos.struck.total()} faults, {self._world.changes.total():,} changes, "
            f"{log.messages['reconciled']:,} handled, {log.messages['reconcile failed']:,} failed, "
            f"{self._traffic.total:,} requests, {self._operator.resident:.0f} MB; now: {self._chaos.now}"
        )

    def _until_as_wanted(self, *, within_seconds: float) -> float:
        """Wait for it, at most so long; returns the seconds that it took."""
        began = time.monotonic()
        while True:
            self._operator.must_live()
            wanted = all(check.passed for check in self._as_wanted())
            took = time.monotonic() - began
            if wanted or took > within_seconds:
                return took
            time.sleep(LOOK_SECONDS)

    def _as_wanted(self) -> tuple[Check, ...]:
        widgets, children = (insist(self._admin, "GET", path).body["items"] for path in (WIDGETS, CHILDREN))
        log, deleted = self._operator.log.read(), self._world.deleted
        return (
            checks.statuses(self._world.wanted, widgets),
            checks.children(self._world.wanted, children),
            checks.deletions(deleted, log.seen, log.deleted, excused=self._excused()),
        )

    def _excused(self) -> set[str]:
        """The UIDs of objects that went while the operator was dead, or so soon before that it had not noticed."""
        return {
            uid
            for uid, at in self._world.deleted.items()
            for killed, started in self._operator.outages
            if killed - UNNOTICED_SECONDS < at < started + UNNOTICED_SECONDS
        }

    def _quiet(self) -> Census:
        """Wait until nothing but the watches was asked for during some time; then count what the operator holds."""
        Sandbox.eventually(
            lambda: not self._proxy.count(_is_work, since=time.monotonic() - QUIET_SECONDS),
            within_seconds=QUIET_WITHIN_SECONDS,
        )
        return self._operator.census()

    def _rest(self) -> Check:
        """Leave everything alone, and count writes and handlings."""
        began, seconds = time.monotonic(), self._options.rest_seconds
        at_server, handled = self._writes_at_server(), self._operator.log.read().messages["reconciled"]
        time.sleep(seconds)
        return checks.rest(
            seconds=seconds,
            through_proxy=self._proxy.count(lambda request: is_write(request) and _is_work(request), since=began),
            at_server=self._writes_at_server() - at_server,
            handled=self._operator.log.read().messages["reconciled"] - handled,
        )

    def _writes_at_server(self) -> int:
        return sum(writes(self._sandbox, "widgets", "configmaps").values())

    def _end(self) -> Check:
        self._operator.must_live()
        status, text = self._operator.probe("/readyz")
        code, seconds = self._operator.stop()
        return checks.alive(
            red=self._red,
            probes=self._probes,
            ready="" if status == 200 else text,
            stop_code=code,
            stop_seconds=seconds,
        )

    def _facts(self, recovered: float) -> dict[str, str]:
        struck, hits, changes = self._chaos.struck, self._chaos.hits, self._world.changes
        return {
            "faults": f"{struck.total()} of {len(struck)} kinds, which met {hits.total():,} requests",
            "of which": ", ".join(f"{many} {kind}" for kind, many in struck.most_common()),
            "changes": f"{changes.total():,}: " + ", ".join(f"{many:,} {kind}" for kind, many in changes.most_common()),
            "then": self._recovery(recovered),
        }

    @staticmethod
    def _recovery(seconds: float) -> str:
        return (
            f"as wanted {seconds:.0f} s after the last fault" if seconds < CONVERGE_SECONDS else "never as wanted again"
        )


def _admin(sandbox: Sandbox) -> Admin:
    return Admin(url=sandbox.url, token=sandbox.token, ca_file=sandbox.ca_file)


def _is_work(request: ProxiedRequest) -> bool:
    """How often an event was repeated is told up to six minutes later, whatever is at rest by then."""
    return not request.is_watch and not is_of_events(request)
