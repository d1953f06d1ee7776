"""Large lists: how long a status with a list of some thousand items holds the event loop, on a real API server.

    python -m bench.large_lists        1,000, 2,000, 5,000, 10,000 and 15,000 items

The status is a list map, written once and then handled again, so what we own of it is found item by item. Prints the
size of the object, the CPU time that decoding it takes, and the longest time that the loop was held by one thing.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec

from bonny import Axn, Controller, Operator, Resource, Spec, Status, Version
from bonny.api import ListMap, Model, WithConditions
from bonny_dev.crd.definition import crds
from bonny_dev.sandbox import Sandbox
from tests.support.loop_monitor import LoopMonitor, holds
from tests.support.serving import serving

SIZES: Final = (1_000, 2_000, 5_000, 10_000, 15_000)
ROUNDS: Final = 3
GROUP: Final = "bench.example.com"
PATH: Final = f"/apis/{GROUP}/v1/namespaces/default/fleets/f"
MERGE: Final = "application/merge-patch+json"


class Entry(Model):
    """One node."""

    name: str
    phase: str = ""


class FleetSpec(Spec):
    """What the user wants."""

    size: int = 1


class FleetStatus(Status, WithConditions):
    """What is."""

    nodes: Annotated[list[Entry], ListMap("name")] = []
    round: int = 0


class Fleet(Version):
    """A list of nodes in a status."""

    kind = "Fleet"
    plural = "fleets"
    version = "v1"
    storage = True
    hub = True
    spec: FleetSpec = FleetSpec()
    status: FleetStatus


class Fleets(Controller[Fleet]):
    """Writes as many nodes as the spec says."""

    monitor: LoopMonitor
    monitoring: asyncio.Task[None] | None = None

    async def reconcile(self, axn: Axn[Fleet]) -> None:
        """Also start the monitor, on the operator's loop."""
        if Fleets.monitoring is None:
            Fleets.monitoring = asyncio.create_task(self.monitor.run())
        nodes = [{"name": f"node-{number}", "phase": "ok"} for number in range(axn.spec.size)]
        number = int(axn.resource["metadata"]["annotations"]["round"])
        axn.update_status(lambda status: {**status, "nodes": nodes, "round": number})


def handled(sandbox: Sandbox, size: int, number: int) -> bool:
    status = sandbox.request("GET", PATH).body.get("status", {})
    return (len(status.get("nodes", ())), status.get("round")) == (size, number)


def main() -> int:
    operator = Operator(name="fleets", group=GROUP, controllers=[Fleets], crds=[Fleet])
    with Sandbox() as sandbox, tempfile.TemporaryDirectory() as folder:
        told = Path(folder) / "holds"
        Fleets.monitor = LoopMonitor(told)
        sandbox.apply(crds([Fleet], GROUP))
        with serving(operator, sandbox.kubeconfig):
            for size in SIZES:
                began = time.time()
                for number in range(ROUNDS):
                    metadata = {"name": "f", "namespace": "default", "annotations": {"round": str(number)}}
                    fleet: Resource = {"apiVersion": f"{GROUP}/v1", "kind": "Fleet", "metadata": metadata}
                    sandbox.apply({**fleet, "spec": {"size": size}})
                    sandbox.eventually(partial(handled, sandbox, size, number), within_seconds=180)
                raw = msgspec.json.encode(sandbox.request("GET", PATH).body)
                used = time.thread_time()
                decoded: Any = msgspec.json.decode(raw)
                decoding = time.thread_time() - used
                assert len(decoded["status"]["nodes"]) == size
                longest = next(iter(holds(told, since=began)), "less than 20 ms")
                print(f"{size:6,} items, {len(raw) / 2**20:.2f} MiB: decoding {decoding * 1e3:.0f} ms", end="")
                print(f"; held {longest}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
