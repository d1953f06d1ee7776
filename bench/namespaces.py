"""Many namespaces, one by one: CPU of a reconcile, memory of the operator and of the API server, requests of a return.

    python -m bench.namespaces [--namespaces 300] [--by names] [--loop asyncio]

The operator runs in a thread of this process, beside the code that writes the objects: CPU is that of its thread, and
its memory includes a few MB of the benchmark. A kind with one owned kind: two streams for each namespace.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import uvloop

from bonny import Axn, Controller, Owned
from bonny.namespaces import NamespaceSelector
from bonny_dev.crd.definition import crds
from bonny_dev.sandbox import Sandbox
from tests.support.serving import Serving
from tests.support.things import GROUP, MERGE, Thing, config_map, operator_of, thing

WITHIN_SECONDS: Final = 600.0
MOVING: Final = 20
# Memory is resident when it was used: so it is read when it did not change for so long.
STEADY_SECONDS: Final = 2.0
LOOK_SECONDS: Final = 0.25


class Copying(Controller[Thing]):
    owns = (Owned("v1", "ConfigMap"),)

    async def reconcile(self, axn: Axn[Thing]) -> None:
        axn.register_descendant(config_map(axn.key.name, size=str(axn.spec.size)))


def until(check: Callable[[], object]) -> float:
    """Seconds until `check` holds."""
    began = time.monotonic()
    Sandbox.eventually(check, within_seconds=WITHIN_SECONDS)
    return time.monotonic() - began


def steady(value: Callable[[], float]) -> float:
    """The value, once it has been the same within 1 % for a while."""
    last, since = value(), time.monotonic()
    ends = since + WITHIN_SECONDS
    while (now := time.monotonic()) < since + STEADY_SECONDS and now < ends:
        time.sleep(LOOK_SECONDS)
        if abs((current := value()) - last) > 0.01 * last:
            last, since = current, time.monotonic()
    return last


def megabytes(pid: int) -> float:
    """The resident memory of a process."""
    text = Path(f"/proc/{pid}/status").read_text("utf-8")
    (kilobytes,) = (line.split()[1] for line in text.splitlines() if line.startswith("VmRSS"))
    return int(kilobytes) / 1000


class Clocked(Serving):
    """An operator whose thread reports its CPU time."""

    def _run(self) -> None:
        self._clock = time.pthread_getcpuclockid(threading.get_ident())
        super()._run()

    def cpu(self) -> float:
        """Seconds of CPU of the operator so far."""
        return time.clock_gettime(self._clock)

    @property
    def succeeded(self) -> int:
        """Reconciles that succeeded."""
        return sum(worker.handled for worker in self.process.workers)

    def requests(self) -> int:
        """Requests so far."""
        return sum(self.process.client.requests.answers.values())


@contextmanager
def at_work(sandbox: Sandbox, names: list[str], *, by: str) -> Iterator[Clocked]:
    """The operator, with all of these namespaces."""
    if by == "names":
        made = Clocked(operator_of(Copying, watch=tuple(names)), sandbox.kubeconfig, watch_namespaces=tuple(names))
    else:
        operator = operator_of(Copying, watch=NamespaceSelector("bench=yes"))
        made = Clocked(operator, sandbox.kubeconfig, watch_namespaces=(), extras=(operator.watch,))
    made.start()
    try:
        yield made
    finally:
        made.stop()


def labelled(sandbox: Sandbox, name: str, value: str | None) -> None:
    """Set the label, or remove it."""
    sandbox.request(
        "PATCH", f"/api/v1/namespaces/{name}", {"metadata": {"labels": {"bench": value}}}, content_type=MERGE
    )


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--namespaces", type=int, default=300)
    parser.add_argument("--by", choices=("labels", "names"), default="labels")
    parser.add_argument("--loop", choices=("uvloop", "asyncio"), default="uvloop")
    asked = parser.parse_args()
    if asked.loop == "uvloop":
        asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    os.environ.setdefault("GOGC", "100")
    names = [f"n{number}" for number in range(asked.namespaces)]
    with Sandbox() as sandbox:
        sandbox.apply(crds([Thing], GROUP))
        for name in names:
            metadata = {"name": name, "labels": {"bench": "yes"}}
            sandbox.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
            sandbox.apply(thing("t1", namespace=name))
        (server,) = (each.pid for each in sandbox.servers if each.name == "kube-apiserver")
        before = steady(lambda: megabytes(server)), megabytes(os.getpid())
        with at_work(sandbox, names, by=asked.by) as operator:
            seconds = until(lambda: operator.succeeded >= len(names))
            print(f"{len(names)} namespaces by {asked.by}, {asked.loop}: all objects handled after {seconds:.1f} s, "
                  f"{operator.cpu():.1f} s of CPU")  # fmt: skip
            began, done = operator.cpu(), operator.succeeded
            for name in names[:MOVING]:
                sandbox.apply(thing("t2", namespace=name))
            until(lambda: operator.succeeded >= done + MOVING)
            print(f"a new object with a child: {(operator.cpu() - began) / MOVING * 1e3:.1f} ms of CPU")
            grown = steady(lambda: megabytes(server)) - before[0], megabytes(os.getpid()) - before[1]
            per_stream = [each / (2 * len(names)) for each in grown]
            print(f"memory of the API server +{grown[0]:.0f} MB, {per_stream[0]:.2f} for each stream; "
                  f"of the operator +{grown[1]:.0f} MB, {per_stream[1]:.2f} for each stream")  # fmt: skip
            if asked.by == "labels":
                _returns(sandbox, operator, names)


def _returns(sandbox: Sandbox, operator: Clocked, names: list[str]) -> None:
    """Let namespaces leave and join."""
    before, began = operator.requests(), operator.cpu()
    count = f"namespaces with bench=yes: {len(names) - MOVING}"
    for name in names[:MOVING]:
        labelled(sandbox, name, None)
    left = until(lambda: count in operator.process.readiness().lines)
    for name in names[:MOVING]:
        labelled(sandbox, name, "yes")
    joined = until(lambda: f"namespaces with bench=yes: {len(names)}" in operator.process.readiness().lines)
    until(lambda: operator.requests() - before >= 5 * MOVING)
    steady(operator.requests)
    print(f"{MOVING} namespaces leave and join: {left:.2f} s and {joined:.2f} s after the last label, "
          f"{operator.requests() - before} requests, {operator.cpu() - began:.2f} s of CPU")  # fmt: skip


if __name__ == "__main__":
    main()
