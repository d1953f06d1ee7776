"""Costs of a sandbox: its start and reset; beside it controllers and simulated kubelets: start, memory, a Deployment.

    python -m bench.workloads

It needs kube-controller-manager in the cache (`invoke sandbox.fetch --workloads`). Memory is resident, summed over
processes, with the pages that they share counted for each. Run it on a machine without other work: it ends with code 1
if the median of a row is above its limit.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from bonny_dev.sandbox import Sandbox

ROUNDS: Final = 3
START: Final = "workloads start, s"
MEMORY: Final = "memory of workloads, MB"
# A developer waits for the start before each run of the tests, and has a browser and an editor in the same memory.
LIMITS: Final = {START: 6.0, MEMORY: 250.0}
DEPLOYMENT: Final[dict[str, Any]] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {
        "replicas": 3,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "main", "image": "web"}]},
        },
    },
}


def timed(call: Callable[[], object]) -> float:
    """Seconds that `call` takes."""
    began = time.monotonic()
    call()
    return time.monotonic() - began


def resident(pid: int) -> int:
    """Bytes of a process and of all that it started."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    own = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:")) * 1024
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8").split()
    return own + sum(resident(int(child)) for child in children)


def one_round() -> dict[str, float]:
    """One sandbox from its start to an Available Deployment."""
    sandbox = Sandbox()
    row = {"sandbox starts, s": timed(sandbox.start)}
    try:
        sandbox.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "left"}})
        row["reset, s"] = timed(sandbox.reset)
        row[START] = timed(sandbox.start_workloads)

        def is_available() -> bool:
            found = sandbox.get("apps/v1", "Deployment", "web") or {}
            return found.get("status", {}).get("availableReplicas") == 3

        sandbox.apply(DEPLOYMENT)
        row["Deployment of 3 Available, s"] = timed(lambda: sandbox.eventually(is_available))
        row[MEMORY] = resident(sandbox.workloads.process.pid) / 1e6
    finally:
        sandbox.stop()
    return row


def report(rounds: Sequence[Mapping[str, float]]) -> int:
    """Print the median and the range of each row, and its limit; returns the exit code."""
    missed = 0
    for name in rounds[0]:
        values = [row[name] for row in rounds]
        median, limit = statistics.median(values), LIMITS.get(name)
        told = f" limit {limit:g}" if limit else ""
        if limit is not None and median > limit:
            missed, told = 1, f"{told}: missed"
        print(f"{name:30}{median:8.2f} [{min(values):.2f}..{max(values):.2f}]{told}")
    return missed


def main() -> int:
    return report([one_round() for _ in range(ROUNDS)])


if __name__ == "__main__":
    sys.exit(main())
