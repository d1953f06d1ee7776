"""The operator under test, as a script: Widgets and their children; it tells what it was called for, and of itself.

SIGUSR1 makes it print a census: what runs in its loop. It is written past the log, since a signal may come in the
middle of a log line's making.
"""

import asyncio
import gc
import json
import logging
import os
import signal
import sys
from collections import Counter

from bonny import Action, Axn, Controller, Operator, Owned
from bonny.core.watch import WatchOptions
from bonny.main import main
from tests.support.handwritten import Widget, config_map

# Streams that end themselves often enough for silent ones to be found out within the soak.
WATCH_SECONDS = (10.0, 15.0)
WATCH_GRACE_SECONDS = 5.0
# Half of the objects are handled while it is checked that nothing is written at rest.
RECONCILE_SECONDS = 60.0

log = logging.getLogger("soak")


class SoakController(Controller[Widget]):
    owns = (Owned("v1", "ConfigMap"),)
    reconcile_every = RECONCILE_SECONDS

    async def reconcile(self, axn: Axn[Widget]) -> None:
        if axn.action is Action.ADD:
            log.info("seen", extra={"uid": axn.resource["metadata"]["uid"]})
        axn.set_condition("Ready", True, message=f"size {axn.spec.size}")
        axn.register_descendant(config_map(axn.key.name, {"size": str(axn.spec.size)}))

    async def delete(self, axn: Axn[Widget]) -> None:
        log.info("deleted", extra={"uid": axn.resource["metadata"]["uid"]})


operator = Operator(
    name="soak",
    group="example.com",
    controllers=[SoakController],
    version="1.0.0",
    watch_options=WatchOptions(timeout=WATCH_SECONDS, grace=WATCH_GRACE_SECONDS),
)


def _census(number: int, frame: object) -> None:
    gc.unfreeze()  # what was frozen is not told otherwise
    gc.collect()  # what only waits for that is not held
    classes = [type(known) for known in gc.get_objects()]
    gc.freeze()
    tasks = asyncio.all_tasks(asyncio.get_running_loop())
    line = {
        "level": "info",
        "message": "census",
        "tasks": Counter(task.get_name().rstrip("0123456789") for task in tasks),
        "objects": Counter(known.__name__ for known in classes if str(known.__module__).startswith("bonny.")),
        "blocks": sys.getallocatedblocks(),
    }
    os.write(sys.stdout.fileno(), f"{json.dumps(line)}\n".encode())


if __name__ == "__main__":
    signal.signal(signal.SIGUSR1, _census)
    sys.exit(main(operator))
