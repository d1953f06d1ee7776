"""Schedulers at work on a sandbox: in this process, on a loop of their own, so that tests may wait as they like."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from bonny import telemetry
from bonny.client.api import Client
from bonny.client.config import Kubeconfig
from bonny.core.watch import WatchOptions
from bonny.engine.stream import Stream
from bonny.events import EventRecorder
from bonny.kinds import Kind
from bonny.resource import Resource
from bonny.scheduler import Scheduler
from bonny.scheduler.server import SchedulerServer
from bonny.scheduler.streams import SchedulerStreams
from bonny_dev.sandbox import Sandbox

NODES, PODS = "/api/v1/nodes", "/api/v1/namespaces/default/pods"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
MERGE = "application/merge-patch+json"


class AtWork:
    """Schedulers that run until the end of the `with` block, and what they told."""

    def __init__(self, sandbox: Sandbox, *schedulers: Scheduler, kubeconfig: Path | None = None) -> None:
        self.told: list[tuple[str, Mapping[str, float], Mapping[str, Any]]] = []
        """Telemetry: name, measurements, metadata."""

        self.servers: list[SchedulerServer] = []
        self._kubeconfig = kubeconfig or sandbox.kubeconfig
        self._schedulers = schedulers
        self._listener = f"at work {id(self)}"
        self._started: Future[None] = Future()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ended: asyncio.Event | None = None
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), name="schedulers")

    def _tell(self, name: str, measurements: Mapping[str, float], metadata: Mapping[str, Any], _: object) -> None:
        self.told.append((name, measurements, metadata))

    def names_told(self) -> set[str]:
        return {name for name, _, _ in self.told}

    def do(self, work: Callable[[], Any]) -> Any:
        """Call `work` on the schedulers' loop, and return what it returns."""
        future: Future[Any] = Future()
        assert self._loop is not None
        self._loop.call_soon_threadsafe(lambda: future.set_result(work()))
        return future.result(10)

    def __enter__(self) -> Self:
        names = [name for name in telemetry.EVENTS if name.startswith("bonny.scheduler.")]
        telemetry.attach_many(self._listener, names, self._tell)
        self._thread.start()
        self._started.result(20)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._loop is not None and self._ended is not None:
            self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join(20)
        telemetry.detach(self._listener)
        assert not self._thread.is_alive(), "the schedulers did not end"

    async def _run(self) -> None:
        self._loop, self._ended = asyncio.get_running_loop(), asyncio.Event()
        try:
            async with Client(Kubeconfig(str(self._kubeconfig)), user_agent="schedulers/1.0.0", timeout=10.0) as client:
                streams: dict[Kind, Stream] = {}

                def follow(kind: Kind) -> Stream:
                    if kind not in streams:
                        options = WatchOptions(timeout=(3.0, 3.0), grace=3.0)
                        streams[kind] = Stream(client, kind, namespace=None, options=options)
                    return streams[kind]

                shared = SchedulerStreams(follow)
                recorder = EventRecorder(client, controller="schedulers", instance="tests")
                self.servers = [
                    SchedulerServer(known, client, streams=shared, recorder=recorder) for known in self._schedulers
                ]
                parts = [*streams.values(), *self.servers, recorder]
                tasks = [asyncio.create_task(part.run()) for part in parts]
                ended = asyncio.create_task(self._ended.wait())
                self._started.set_result(None)
                done, pending = await asyncio.wait([*tasks, ended], return_when=asyncio.FIRST_COMPLETED)
                for task in pending:
                    task.cancel()
                await asyncio.gather(*pending, return_exceptions=True)
                for task in done - {ended}:
                    task.result()
            # The end of the loop would leave open what a TLS peer has not said goodbye on.
            for transport in list(self._loop._transports.values()):  # type: ignore[attr-defined]
                transport.abort()
            await asyncio.sleep(0)
        except BaseException as error:
            if not self._started.done():
                self._started.set_exception(error)
            raise


def add_nodes(sandbox: Sandbox, nodes: Iterable[Resource]) -> None:
    """Create nodes as a kubelet would, once they are ready."""
    for node in nodes:
        answer = sandbox.request("POST", NODES, node)
        assert answer.status == 201, answer


def add_pods(sandbox: Sandbox, pods: Iterable[Resource]) -> None:
    for pod in pods:
        path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods"
        answer = sandbox.request("POST", path, pod)
        assert answer.status == 201, answer


def events(sandbox: Sandbox, name: str = "") -> list[Resource]:
    """The Events about pods, or about the pod of that name, as the API server has them."""
    found = sandbox.items("events.k8s.io/v1", "Event", namespace="default")
    return [event for event in found if name in ("", event["regarding"]["name"])]


def remove_all(sandbox: Sandbox) -> None:
    """Delete all nodes and pods; no kubelet has to agree."""
    for path in (PODS, NODES, EVENTS):
        sandbox.request("DELETE", f"{path}?gracePeriodSeconds=0")
    sandbox.eventually(lambda: not sandbox.items("v1", "Pod") and not sandbox.items("v1", "Node"))


def placed(sandbox: Sandbox) -> dict[str, str]:
    """The node of each pod that has one."""
    pods = sandbox.items("v1", "Pod", namespace="default")
    return {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in pods if pod["spec"].get("nodeName")}


def condition(sandbox: Sandbox, name: str) -> Resource:
    """PodScheduled of a pod. Raises: `LookupError` or `TypeError` while there is none."""
    found: Any = sandbox.get("v1", "Pod", name)
    (scheduled,) = [known for known in found["status"]["conditions"] if known["type"] == "PodScheduled"]
    told: Resource = scheduled
    return told
