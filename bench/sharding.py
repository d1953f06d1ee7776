"""Replicas that share the work: throughput of three beside one, and how long buckets have no holder.

    python -m bench.sharding

The handlers wait 100 ms, 10 at a time in each replica, and write nothing: requests are not measured.
The lease times are the default ones. Times of a join include the start of Python.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from bonny_dev.sandbox import Sandbox
from bonny_dev.sandbox.guard import Guard
from tests.support.processes import OperatorProcess
from tests.support.sharing import Replicas, command, lease_writes, settings

OBJECTS: Final = 400
WAITS: Final = {"TEST_SECONDS": "0.1", "TEST_CHILDREN": "no", "TEST_AGAIN": "yes"}
WITHIN_SECONDS: Final = 120.0
COUNTED_SECONDS: Final = 20.0


def until(check: Callable[[], object]) -> float:
    """Seconds until `check` holds."""
    began = time.monotonic()
    Sandbox.eventually(check, within_seconds=WITHIN_SECONDS)
    return time.monotonic() - began


@contextmanager
def operator(sandbox: Sandbox, name: str) -> Iterator[Replicas]:
    """An operator whose replicas end with the block."""
    folder = Path(tempfile.mkdtemp(prefix="bench-sharding-"))
    journal = folder / "journal"
    journal.touch()
    guards: list[Guard] = []

    def start(pod: str) -> OperatorProcess:
        guards.append(Guard(folder / pod))
        environment = settings(name, pod, journal) | WAITS
        return OperatorProcess(guards[-1], command(), kubeconfig=sandbox.kubeconfig, cwd=None, settings=environment)

    try:
        yield Replicas(name, sandbox, start, journal)
    finally:
        for guard in guards:
            guard.close()


def throughput(sandbox: Sandbox, replicas: int) -> float:
    """Handlers a second, when every object is handled again as soon as it was handled."""
    with operator(sandbox, f"throughput-{replicas}") as shared:
        shared.apply("1", objects=OBJECTS)
        pods = [f"r{number}" for number in range(replicas)]
        for pod in pods:
            shared.start(pod)
        until(lambda: shared.are_even(*pods))
        until(lambda: len(shared.begun()) == OBJECTS)
        since = time.clock_gettime(time.CLOCK_BOOTTIME)
        time.sleep(COUNTED_SECONDS)
        return shared.begun(since=since).total() / (time.clock_gettime(time.CLOCK_BOOTTIME) - since)


def rate_of_writes(sandbox: Sandbox) -> float:
    """Writes of Leases a second."""
    before, began = lease_writes(sandbox), time.monotonic()
    time.sleep(COUNTED_SECONDS)
    return (lease_writes(sandbox) - before) / (time.monotonic() - began)


def main() -> None:
    """Print one line for each figure."""
    with Sandbox() as sandbox:
        one, three = throughput(sandbox, 1), throughput(sandbox, 3)
        print(f"objects/s, 1 replica           {one:8.1f}")
        print(f"objects/s, 3 replicas          {three:8.1f}")
        print(f"3 replicas of 1                {three / one:8.2f}")
        with operator(sandbox, "moving") as shared:
            running = {pod: shared.start(pod) for pod in ("a", "b", "c")}
            until(lambda: shared.are_even("a", "b", "c"))
            print(f"lease writes/s, 3 replicas     {rate_of_writes(sandbox):8.1f}")
            running["a"].process.kill()
            print(f"a replica is killed, s         {until(lambda: shared.are_even('b', 'c')):8.1f}")
            shared.start("d")
            print(f"a replica joins, s             {until(lambda: shared.are_even('b', 'c', 'd')):8.1f}")
            running["b"].process.terminate()
            print(f"a replica leaves, s            {until(lambda: shared.are_even('c', 'd')):8.1f}")
        with operator(sandbox, "ten") as shared:
            pods = [f"r{number}" for number in range(10)]
            for pod in pods:
                shared.start(pod)
            until(lambda: shared.are_even(*pods))
            print(f"lease writes/s, 10 replicas    {rate_of_writes(sandbox):8.1f}")


if __name__ == "__main__":
    main()
