"""Sharing: the work of three replicas beside one, how long buckets have no holder, and how often Leases are written.

The tests use the same replicas (`tests.support.sharer`): they handle ConfigMaps, and note that in a journal.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Final

from bench.harness.measure import fine_cpu_seconds
from bench.harness.report import Figures, Goal, Outcome, Round
from bench.harness.rounds import Bench
from bench.harness.traffic import CONFIG_MAPS, paced
from bonny_dev.sandbox import Sandbox
from bonny_dev.sandbox.guard import Guard
from tests.support.processes import OperatorProcess
from tests.support.sharing import Replicas, command, lease_requests, settings

__all__ = ["cpu", "leases", "moves", "named", "span", "throughput", "until"]

WAITS: Final = {"TEST_SECONDS": "0.1", "TEST_CHILDREN": "no", "TEST_AGAIN": "yes"}
BURNS: Final = {"TEST_SECONDS": "0", "TEST_CHILDREN": "no", "TEST_CPU_SECONDS": "0.005"}
QUICK_TIMING: Final = {"TEST_TIMING": "4/2.5/0.5"}
RATE: Final = "reconciles/s"
BUSIEST_CPU: Final = "CPU s of the busiest"
KILLED, JOINED, LEFT = "kill -9: all held, even, s", "join: even, s", "leave: even, s"
LEASE_WRITES: Final = "Lease writes/s"
LEASE_READS: Final = "Lease reads/s"
WITHIN_SECONDS: Final = 120.0
# 5 ms of CPU each: 30 % of a core for the one process, so that it is never late.
CHANGES_PER_SECOND: Final = 60.0
_numbers = count(1)


def throughput(bench: Bench) -> Outcome:
    """Handlers a second, when every object is handled again as soon as it was handled."""

    def measured(replicas: int) -> Figures:
        with operator(bench, WAITS) as shared:
            shared.apply("1", objects=bench.objects)
            start(shared, replicas)
            until(lambda: len(shared.begun()) == bench.objects)
            since = boot_seconds()
            span(2.0 if bench.quick else 20.0)
            return {RATE: shared.begun(since=since).total() / (boot_seconds() - since)}

    goal = Goal(metric=RATE, limit=2.7, at_least=True, of=named(3), against=named(1))
    return Outcome("throughput", bench.objects, in_turn(bench, measured, (1, 3)), [goal])


def cpu(bench: Bench) -> Outcome:
    """Each object is changed once, at the same rate: CPU of the busiest replica."""

    def measured(replicas: int) -> Figures:
        with operator(bench, BURNS) as shared:
            shared.apply("1", objects=bench.objects)
            pods = start(shared, replicas)
            until(lambda: len(shared.begun()) == bench.objects)
            shared.wait_handled_by_holders(pods)
            since = boot_seconds()
            before = {pod: fine_cpu_seconds(each.process.pid) for pod, each in pods.items()}
            body = json.dumps({"data": {"number": "2"}}).encode()
            paths = (f"{CONFIG_MAPS}/{shared.name}-{number}" for number in range(bench.objects))
            asyncio.run(paced(bench.sandbox, "PATCH", ((path, body) for path in paths), per_second=CHANGES_PER_SECOND))
            until(lambda: len(shared.begun(since=since)) == bench.objects)
            spent = [fine_cpu_seconds(each.process.pid) - before[pod] for pod, each in pods.items()]
            return {BUSIEST_CPU: max(spent), "CPU s of all": sum(spent)}

    goal = Goal(metric=BUSIEST_CPU, limit=0.42, of=named(3), against=named(1))
    return Outcome("cpu", bench.objects, in_turn(bench, measured, (1, 3)), [goal])


def moves(bench: Bench) -> Outcome:
    """Seconds until all buckets have a holder again and the shares are even. A join includes the start of Python."""
    rounds: list[Round] = []
    for _ in range(bench.rounds):
        with operator(bench, QUICK_TIMING if bench.quick else {}) as shared:
            shared.apply("1", objects=bench.objects)
            pods = start(shared, 3)
            pods["r0"].process.kill()
            killed = until(lambda: shared.are_even("r1", "r2"))
            shared.start("r3")
            joined = until(lambda: shared.are_even("r1", "r2", "r3"))
            pods["r1"].process.terminate()
            left = until(lambda: shared.are_even("r2", "r3"))
            rounds.append({named(3): {KILLED: killed, JOINED: joined, LEFT: left}})
    limits = {KILLED: 17.0, JOINED: 5.0, LEFT: 5.0}
    goals = [Goal(metric=metric, limit=limit, of=named(3)) for metric, limit in limits.items()]
    return Outcome("moves", bench.objects, rounds, goals)


def leases(bench: Bench) -> Outcome:
    """At rest: requests for Leases, of which a watch is counted when it ends, and the CPU of a replica."""

    def measured(replicas: int) -> Figures:
        with operator(bench, {}) as shared:
            pids = [each.process.pid for each in start(shared, replicas).values()]
            before, began = lease_requests(bench.sandbox), time.monotonic()
            spent = sum(map(fine_cpu_seconds, pids))
            span(2.0 if bench.quick else 30.0)
            after, seconds = lease_requests(bench.sandbox), time.monotonic() - began
            return {
                LEASE_WRITES: (after[0] - before[0]) / seconds,
                LEASE_READS: (after[1] - before[1]) / seconds,
                "CPU ms/s of a replica": (sum(map(fine_cpu_seconds, pids)) - spent) / replicas / seconds * 1e3,
            }

    goals = [Goal(metric=LEASE_WRITES, limit=limit, of=named(each)) for each, limit in ((3, 11.0), (10, 15.0))]
    return Outcome("leases", 0, in_turn(bench, measured, (3, 10)), goals)


# --- replicas ---------------------------------------------------------------------------------------------------------


@contextmanager
def operator(bench: Bench, chosen: dict[str, str]) -> Iterator[Replicas]:
    """An operator with a name of its own; its replicas end with the block, and its objects and Leases go."""
    name = f"scale-{next(_numbers)}"
    journal = bench.guard.folder / f"{name}.journal"
    journal.touch()
    guards: list[Guard] = []

    def begin(pod: str) -> OperatorProcess:
        guards.append(Guard(bench.guard.folder / f"{name}-{pod}"))
        environment = settings(name, pod, journal) | chosen
        return OperatorProcess(
            guards[-1], command(), kubeconfig=bench.sandbox.kubeconfig, cwd=None, settings=environment
        )

    shared = Replicas(name, bench.sandbox, begin, journal)
    try:
        yield shared
    finally:
        for guard in guards:
            guard.close()
        shared.remove()


def start(shared: Replicas, replicas: int) -> dict[str, OperatorProcess]:
    """Start so many, and return when their shares are even."""
    pods = {f"r{number}": shared.start(f"r{number}") for number in range(replicas)}
    until(lambda: shared.are_even(*pods))
    return pods


def in_turn(bench: Bench, measured: Callable[[int], Figures], numbers: Sequence[int]) -> list[Round]:
    """In every round each number of replicas once, each round with another first one."""
    rounds: list[Round] = []
    for turn in range(bench.rounds):
        at = turn % len(numbers)
        order = [*numbers[at:], *numbers[:at]]
        figures = {named(replicas): measured(replicas) for replicas in order}
        rounds.append({named(replicas): figures[named(replicas)] for replicas in numbers})
    return rounds


def named(replicas: int) -> str:
    """The name of a column."""
    return f"{replicas} replica{'s' if replicas > 1 else ''}"


# --- time -------------------------------------------------------------------------------------------------------------


def boot_seconds() -> float:
    """The clock of the journal."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def until(check: Callable[[], object]) -> float:
    """Seconds until `check` holds."""
    began = time.monotonic()
    Sandbox.eventually(check, within_seconds=WITHIN_SECONDS)
    return time.monotonic() - began


def span(seconds: float) -> None:
    """Let so much time pass while something is counted. Nothing is waited for."""
    time.sleep(seconds)
