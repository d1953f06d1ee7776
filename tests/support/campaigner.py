"""A replica that campaigns and, while it leads, applies numbers to ConfigMaps as fast as it may. Run as a script.

Several writers go round at the same time, so that at any moment one of them is about to write. Its field manager is its
identity, so whoever reads the requests knows who sent them. SIGTERM lets it stop its work and release the lease.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from itertools import count

from bonny.client.api import Client
from bonny.client.config import find_cluster
from bonny.client.errors import ApiError
from bonny.core.lease import LeaseTiming
from bonny.kinds import Kind
from bonny.run.leader import Leadership, own_identity
from bonny.telemetry.logging import configure

CONFIG_MAP = Kind("v1", "ConfigMap")
WRITERS = int(os.environ.get("TEST_WRITERS", "4"))
# About 200 writes a second: often enough to catch one at any moment, and no load.
PAUSE_SECONDS = float(os.environ.get("TEST_PAUSE", "0.02"))
LEASE = os.environ["TEST_LEASE"]
DURATION, DEADLINE, PERIOD = os.environ.get("TEST_TIMING", "3/2/0.4").split("/")
TIMING = LeaseTiming(lease_duration=int(DURATION), renew_deadline=float(DEADLINE), retry_period=float(PERIOD))
MODE = os.environ.get("TEST_MODE", "")
"""How it behaves: well, or it `blocks` its loop in the middle of the work, or `clings` to the work of a lost term."""

BLOCKS_AFTER = 20


async def work(client: Client, identity: str, writer: int) -> None:
    """Apply one number after the other until cancelled."""
    metadata = {"name": f"{LEASE}-{writer}", "namespace": "default"}
    for number in count():
        data = {"holder": identity, "number": str(number)}
        wanted = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
        try:
            await client.apply(CONFIG_MAP, wanted, manager=identity)
        except ApiError as error:
            print(type(error).__name__, flush=True)
        if MODE == "blocks" and number == BLOCKS_AFTER:
            time.sleep(3600)  # noqa: ASYNC251  that is what it is about
        await asyncio.sleep(PAUSE_SECONDS)


async def lead(leadership: Leadership, client: Client, identity: str) -> None:
    """Work for one term after the other, until cancelled."""
    while True:
        await leadership.acquired()
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(work(client, identity, writer)) for writer in range(WRITERS)]
            await leadership.lost.wait()
            if MODE != "clings":
                for task in tasks:
                    task.cancel()
        leadership.stood_down()


async def main() -> None:
    """Run until SIGTERM."""
    stop, identity, cluster = asyncio.Event(), own_identity(), find_cluster()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with Client(cluster, user_agent="lease") as unfenced:
        leadership = Leadership(unfenced, namespace="default", name=LEASE, identity=identity, timing=TIMING)
        async with Client(cluster, user_agent="work", fence=leadership.remaining) as client:
            tasks = [asyncio.create_task(leadership.run()), asyncio.create_task(lead(leadership, client, identity))]
            await stop.wait()
            tasks[1].cancel()
            await asyncio.wait(tasks[1:])
            await leadership.release()
            await asyncio.wait(tasks[:1])


if __name__ == "__main__":
    configure(level=10)
    asyncio.run(main())
