"""Creations: what an operator costs for each object it handles, on a real API server.

    make bench        1,000 Widgets, each with a ConfigMap child and a status; then left alone at reconcile_every=10

Prints write requests for each object, CPU and memory of the operator's process, and what it does at rest.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "runtime")]

from bench.harness.measure import cpu_seconds, resident_megabytes  # noqa: E402
from bonny.resource import Resource  # noqa: E402
from bonny_dev.crd.definition import crds  # noqa: E402
from bonny_dev.sandbox import Sandbox  # noqa: E402
from bonny_dev.sandbox.guard import Guard  # noqa: E402
from tests.support.handwritten import operator  # noqa: E402
from tests.support.processes import OperatorProcess, writes  # noqa: E402

OBJECTS: Final = 1_000
REST_SECONDS: Final = 60.0
HANDLINGS: Final = 5


def widget(number: int) -> Resource:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": f"w{number}", "namespace": "default"},
        "spec": {"size": number % 100 + 1},
    }


def fewest(process: OperatorProcess) -> int:
    """How often the least handled object was handled."""
    counts: dict[str, int] = {f"default/w{number}": 0 for number in range(OBJECTS)}
    for line in process.lines("reconciled"):
        if line["object"] in counts:
            counts[line["object"]] += 1
    return min(counts.values())


def main() -> int:
    script = [sys.executable, str(ROOT / "bench" / "resting_operator.py")]
    with Sandbox() as sandbox, Guard(Path(tempfile.gettempdir()).resolve() / f"bonny-bench-{os.getpid()}") as guard:
        sandbox.apply(crds(operator.crds, operator.group))
        process = OperatorProcess(guard, script, kubeconfig=sandbox.kubeconfig, cwd=ROOT).wait_ready()
        pid = process.process.pid
        started = cpu_seconds(pid)
        before = writes(sandbox, "widgets", "configmaps")
        path = "/apis/example.com/v1/namespaces/default/widgets"
        for number in range(OBJECTS):
            sandbox.request("POST", path, widget(number))
        sandbox.eventually(lambda: fewest(process) >= 1, within_seconds=120)
        after = writes(sandbox, "widgets", "configmaps")
        sent = sum(after.values()) - sum(before.values()) - OBJECTS
        print(f"start:     {started:.2f} s CPU")
        each = (cpu_seconds(pid) - started) / OBJECTS * 1e6
        print(f"creations: {sent / OBJECTS:.2f} writes and {each:.0f} us CPU an object")
        rested, began = cpu_seconds(pid), time.monotonic()
        sandbox.eventually(lambda: fewest(process) >= HANDLINGS, within_seconds=REST_SECONDS)
        idle = sum(writes(sandbox, "widgets", "configmaps").values()) - sum(after.values())
        seconds, spent = time.monotonic() - began, cpu_seconds(pid) - rested
        print(f"rest:      each handled {fewest(process)} times in {seconds:.0f} s, {idle} writes, {spent:.2f} s CPU")
        print(f"memory:    {resident_megabytes(pid):.0f} MB resident with {OBJECTS} objects and their children")
        return int(idle > 0)


if __name__ == "__main__":
    sys.exit(main())
