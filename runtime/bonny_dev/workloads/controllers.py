"""Controllers: kube-controller-manager beside the API server; started again when the cluster gets a new kind.

Its garbage collector learns a new kind within 30 s only, and a test does not wait so long: a fresh process knows the
kind after a second. A restart loses nothing, since controllers compare the cluster with what they want from the start.
"""

from __future__ import annotations

import asyncio
import logging
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from bonny.client.api import Client
from bonny.core.store import Delta
from bonny.core.watch import WatchOptions
from bonny.engine.stream import Stream
from bonny.kinds import Kind

CRD: Final = Kind("apiextensions.k8s.io/v1", "CustomResourceDefinition")
FLAGS: Final = (
    "--leader-elect=false",
    "--secure-port=0",
    "--profiling=false",
    "--kube-api-qps=1000",
    "--kube-api-burst=2000",
)
# All that act on objects of the API alone. Left out: nodes that fall silent, clouds, volumes that are attached,
# certificates, metrics. All supported versions have these names.
CONTROLLERS: Final = (
    "clusterrole-aggregation-controller",
    "cronjob-controller",
    "daemonset-controller",
    "deployment-controller",
    "disruption-controller",
    "endpoints-controller",
    "endpointslice-controller",
    "ephemeral-volume-controller",
    "garbage-collector-controller",
    "job-controller",
    "namespace-controller",
    "persistentvolume-binder-controller",
    "persistentvolume-protection-controller",
    "persistentvolumeclaim-protection-controller",
    "pod-garbage-collector-controller",
    "replicaset-controller",
    "replicationcontroller-controller",
    "resourcequota-controller",
    "serviceaccount-controller",
    "statefulset-controller",
    "taint-eviction-controller",
    "ttl-after-finished-controller",
)
# Definitions come in groups.
GATHER_SECONDS: Final = 0.3

log = logging.getLogger("bonny_dev.workloads.controllers")


class ControllersEnded(Exception):
    """kube-controller-manager ended by itself; its log says why."""


def command_of(program: Path, kubeconfig: Path) -> list[str]:
    """The command line of kube-controller-manager."""
    return [str(program), f"--kubeconfig={kubeconfig}", f"--controllers={','.join(CONTROLLERS)}", *FLAGS]


class Woken:
    """A subscriber of streams: sets `_changed` at each difference, and remembers nothing."""

    def __init__(self) -> None:
        self._changed = asyncio.Event()

    def seen(self, stream: Stream, delta: Delta) -> None:  # noqa: ARG002  (as a `Subscriber` is called)
        """Something changed."""
        self._changed.set()

    def advanced(self, stream: Stream) -> None:
        """Nothing to do: every difference was seen."""

    def restored(self, stream: Stream) -> None:
        """Nothing to do: nothing is remembered by version."""


class Controllers(Woken):
    """The running kube-controller-manager."""

    def __init__(self, client: Client, command: Sequence[str], log_file: Path) -> None:
        super().__init__()
        self._stream = Stream(client, CRD, namespace=None, options=WatchOptions())
        self._command, self._log_file = command, log_file

    async def run(self) -> None:
        """Keep it running until cancelled. Raises: `ControllersEnded` when it ends by itself."""
        self._stream.subscribe(self)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._stream.run(), name=str(self._stream))
            await self._stream.wait_until_synced()
            while True:
                known = self._served()
                await self._run_until_new(known)
                log.info("starting the controllers again, for %s", ", ".join(sorted(self._served() - known)))

    async def _run_until_new(self, known: frozenset[str]) -> None:
        """Run the process until a kind is served that it does not know."""
        with self._log_file.open("ab") as output:
            process = await asyncio.create_subprocess_exec(
                *self._command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
            )
        ended = asyncio.create_task(process.wait())
        try:
            while self._served() <= known:  # a kind that went needs no new process
                self._changed.clear()
                changed = asyncio.create_task(self._changed.wait())
                await asyncio.wait({ended, changed}, return_when=asyncio.FIRST_COMPLETED)
                changed.cancel()
                if ended.done():
                    lines = self._log_file.read_text(encoding="utf-8", errors="replace").splitlines()[-5:]
                    raise ControllersEnded("\n".join(["kube-controller-manager ended:", *lines]))
            await asyncio.sleep(GATHER_SECONDS)
        finally:
            # Killed, not asked to end: controllers are made for that, and it takes no time.
            with suppress(ProcessLookupError):
                process.kill()
            await ended

    def _served(self) -> frozenset[str]:
        """The names of the definitions whose kinds the API server serves, with their UIDs."""
        definitions = (item.decode() for item in self._stream.store.items())
        return frozenset(
            f"{each['metadata']['name']} {each['metadata']['uid']}" for each in definitions if served(each)
        )


def served(definition: dict[str, Any]) -> bool:
    """Whether the API server serves the kind of a definition."""
    conditions = definition.get("status", {}).get("conditions") or ()  # null in a new one
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)
