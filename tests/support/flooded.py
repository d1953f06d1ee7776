"""An operator for floods: its handlers cost next to nothing, so what is measured is the runtime. Run as a script.

Grains come in thousands; one publishes its size, or takes time, only when it is asked to. Beacons are the other kind,
which must go on meanwhile. What holds its event loop is written to `loop.jsonl` in its working folder.
"""

import asyncio
import os
import sys
from pathlib import Path

from bonny import Axn, Controller, Operator, Owned, Spec, Status, Version
from bonny.core.backoff import Backoff
from bonny.core.watch import LARGEST_PAGE, WatchOptions
from bonny.main import main
from tests.support.handwritten import config_map
from tests.support.loop_monitor import LoopMonitor

LOOP_FILE = "loop.jsonl"
WATCH_SECONDS = float(os.environ.get("TEST_WATCH_SECONDS", "200"))
PAGE_SIZE = int(os.environ.get("TEST_PAGE_SIZE", str(LARGEST_PAGE)))


class GrainSpec(Spec):
    """What the user wants."""

    size: int = 0
    publish: bool = False
    seconds: float = 0.0
    payload: str = ""


class GrainStatus(Status):
    """Nothing: a status would be a write for each of thousands."""


class Grain(Version):
    """One of many."""

    kind = "Grain"
    plural = "grains"
    version = "v1"
    storage = True
    hub = True
    spec: GrainSpec = GrainSpec()
    status: GrainStatus


class Beacon(Version):
    """The other kind."""

    kind = "Beacon"
    plural = "beacons"
    version = "v1"
    storage = True
    hub = True
    spec: GrainSpec = GrainSpec()
    status: GrainStatus


class GrainController(Controller[Grain]):
    owns = (Owned("v1", "ConfigMap"),)

    def __init__(self) -> None:
        # Controllers are made on the loop, before anything is listed.
        self._monitor = asyncio.create_task(LoopMonitor(Path(LOOP_FILE)).run())

    async def reconcile(self, axn: Axn[Grain]) -> None:
        await asyncio.sleep(axn.spec.seconds)
        if axn.spec.publish:
            axn.register_descendant(config_map(axn.key.name, {"size": str(axn.spec.size)}))

    async def delete(self, axn: Axn[Grain]) -> None:
        """Only counted, by its log line."""


class BeaconController(Controller[Beacon]):
    owns = (Owned("v1", "ConfigMap"),)

    async def reconcile(self, axn: Axn[Beacon]) -> None:
        axn.register_descendant(config_map(axn.key.name, {"size": str(axn.spec.size)}))


operator = Operator(
    name="flooded",
    group="example.com",
    controllers=[GrainController, BeaconController],
    version="1.0.0",
    watch_options=WatchOptions(
        page_size=PAGE_SIZE,
        timeout=(WATCH_SECONDS, WATCH_SECONDS),
        grace=min(15.0, WATCH_SECONDS),
        # Floods are not about waiting.
        backoff=Backoff(base=0.1, cap=1.0),
    ),
)

if __name__ == "__main__":
    sys.exit(main(operator))
