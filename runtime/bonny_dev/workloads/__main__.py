"""The process: `python -m bonny_dev.workloads KUBECONFIG CONTROLLER_MANAGER FOLDER`, started by a sandbox.

It writes `FOLDER/workloads.ready` once everything works, and ends at SIGTERM, with kube-controller-manager; the
watchdog of the sandbox kills both however the sandbox ends.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from pathlib import Path
from typing import Final

from bonny.client.api import Client
from bonny.client.config import Kubeconfig
from bonny.client.errors import NotFound
from bonny.kinds import Kind
from bonny.resource import Key

from .cluster import Cluster
from .controllers import Controllers, ControllersEnded, command_of

SERVICE_ACCOUNT: Final = Kind("v1", "ServiceAccount")
POLL_SECONDS: Final = 0.05


async def main(kubeconfig: Path, program: Path, folder: Path) -> None:
    """Work until SIGTERM."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with (
        Client(Kubeconfig(str(kubeconfig)), user_agent="sandbox-workloads") as client,
        asyncio.TaskGroup() as group,
    ):
        log_file = folder / "kube-controller-manager.log"
        controllers = Controllers(client, command_of(program, kubeconfig), log_file)
        cluster, synced = Cluster(client), asyncio.Event()
        parts = [group.create_task(controllers.run(), name="the controllers")]
        await cluster.prepare()
        parts.append(group.create_task(cluster.run(synced), name="the cluster"))
        await synced.wait()
        await until_controllers_act(client)
        (folder / "workloads.ready").touch()
        await stop.wait()
        for part in parts:
            part.cancel()


async def until_controllers_act(client: Client) -> None:
    """Return when one controller has done something: each namespace gets a ServiceAccount."""
    while True:
        try:
            await client.get(SERVICE_ACCOUNT, Key("default", "default"))
        except NotFound:
            await asyncio.sleep(POLL_SECONDS)
        else:
            return


def leaves(error: BaseException) -> list[BaseException]:
    """The errors in an exception group, however deep."""
    if isinstance(error, BaseExceptionGroup):
        return [leaf for each in error.exceptions for leaf in leaves(each)]
    return [error]


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    try:
        asyncio.run(main(*map(Path, sys.argv[1:4])))
    except* ControllersEnded as ended:
        # The last lines of the log are what a person sees.
        sys.exit("\n".join(map(str, leaves(ended))))
