"""Watched: an operator with the console, and the page of the developer tools that shows it."""

from __future__ import annotations

import asyncio
import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bonny import Axn, Controller, Field, Operator, Owned, Spec, Status, Version, Wait, WithConditions
from bonny.client.api import Client
from bonny.client.config import Kubeconfig
from bonny.console.server import ConsoleRun
from bonny.console.settings import ConsoleSettings
from bonny.run.process import Process
from bonny_dev.console.server import serve
from bonny_dev.inside.reading import AtAddress, InCluster, Inside
from bonny_dev.manifest import bundle
from bonny_dev.sandbox import Sandbox

from .serving import Serving

GROUP = "watched.example.com"
TOKEN = "t0ken"
NAMES = ("calm", "late", "broken", "hostile")
HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>"


class ClockSpec(Spec):
    """The desired state."""

    mood: str = Field("", max_length=20)


class ClockStatus(Status, WithConditions):
    """The observed state."""


class Clock(Version):
    """Ticks."""

    kind = "Clock"
    version = "v1"
    storage = True
    hub = True
    spec: ClockSpec
    status: ClockStatus


class ClockController(Controller[Clock]):
    """Waits, fails or makes a Secret, as the object asks."""

    owns = (Owned("v1", "Secret"),)

    async def reconcile(self, axn: Axn[Clock]) -> None:
        """Register a Secret."""
        metadata = {"name": axn.key.name, "namespace": axn.key.namespace}
        axn.register_descendant(
            {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"key": "very secret"}}
        )
        match axn.spec.mood:
            case "wait":
                raise Wait("it is not noon yet", after=600)
            case "hostile":
                raise Wait(HOSTILE, after=600)
            case "fail":
                raise RuntimeError("the very secret value")


def clock(name: str, mood: str = "") -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": f"{GROUP}/v1", "kind": "Clock", "metadata": metadata, "spec": {"mood": mood}}


def operator() -> Operator:
    return Operator(name="watched", group=GROUP, controllers=[ClockController], version="1.2.3")


@contextmanager
def watched(sandbox: Sandbox) -> Iterator[int]:
    """Run the operator on some objects; yields the port of its console."""
    made = operator()
    sandbox.apply(bundle.documents(made, image=None, namespace="watched", local=True))
    Sandbox.eventually(lambda: sandbox.request("GET", f"/apis/{GROUP}/v1/clocks").status == 200)
    sandbox.apply([clock("calm"), clock("late", "wait"), clock("broken", "fail"), clock("hostile", "hostile")])
    try:
        with serving(made, sandbox.kubeconfig, ConsoleSettings(port=0, token=TOKEN)) as process:
            (run,) = (each for each in process.extras if isinstance(each, ConsoleRun))
            yield run.server.port
    finally:
        for name in NAMES:
            sandbox.delete(f"{GROUP}/v1", "Clock", name, namespace="default")
            # Nothing collects the children in a sandbox.
            sandbox.delete("v1", "Secret", name, namespace="default")


@contextmanager
def serving(made: Operator, kubeconfig: Path, settings: ConsoleSettings) -> Iterator[Process]:
    """Run the operator with these settings of its console."""
    at_work = Serving(made, kubeconfig, leader_election=False)
    at_work.process.config = at_work.process.config.with_(ConsoleSettings, port=settings.port, token=settings.token)
    at_work.start()
    try:
        yield at_work.process
    finally:
        at_work.stop()


@contextmanager
def page(sandbox: Sandbox, inside: int | None) -> Iterator[str]:
    """Serve the page, for an operator whose console has the port `inside`; yields its link."""
    links: list[str] = []
    loop = asyncio.new_event_loop()
    made, cluster = operator(), Kubeconfig(str(sandbox.kubeconfig))

    def reach(client: Client) -> Inside:
        return AtAddress(f"http://127.0.0.1:{inside}", TOKEN) if inside else InCluster(client, made, "watched")

    page_of = serve(cluster, made, namespace="watched", reach=reach, opened=links.append)
    task = loop.create_task(page_of)

    def run() -> None:
        asyncio.set_event_loop(loop)
        try:
            loop.run_until_complete(task)
        except asyncio.CancelledError:
            loop.close()

    thread = threading.Thread(target=run, name="the page", daemon=True)
    thread.start()
    Sandbox.eventually(lambda: bool(links) or not thread.is_alive(), within_seconds=30.0)
    try:
        yield links[0]
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join(30)


def exchange(
    port: int, path: str, *, method: str = "GET", body: Any = None, **headers: str
) -> tuple[int, bytes, dict[str, str]]:
    """Send one request with exactly these headers, and a Host; returns status, body and headers."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    text = b"" if body is None else json.dumps(body).encode()
    try:
        connection.putrequest(method, path, skip_host=True)
        for name, value in {"Host": f"127.0.0.1:{port}", "Content-Length": str(len(text)), **headers}.items():
            connection.putheader(name, value)
        connection.endheaders(text)
        answer = connection.getresponse()
        return answer.status, answer.read(), {name.lower(): value for name, value in answer.getheaders()}
    finally:
        connection.close()
