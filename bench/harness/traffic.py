"""Traffic: fast writes of many Widgets, and watching them from outside.

The API server is what bounds these writes: 32 requests under way on as many connections, bodies as bytes, and of
answers only the status is decoded.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any, Final

import aiohttp
import msgspec

from bonny.resource import Resource
from bonny_dev.sandbox import Sandbox

__all__ = ["CONFIG_MAPS", "PATH", "create", "created", "define", "follow", "paced", "send", "send_all", "session",
           "update", "version_of"]  # fmt: skip

PATH: Final = "/apis/example.com/v1/namespaces/default/widgets"
CONFIG_MAPS: Final = "/api/v1/namespaces/default/configmaps"
UNDER_WAY: Final = 32


def define(sandbox: Sandbox, definitions: Resource | list[Resource], *, path: str = PATH) -> None:
    """Apply the definition of a kind, by default of Widgets, and return once it is served at `path`."""
    sandbox.apply(definitions)
    sandbox.eventually(lambda: sandbox.request("GET", path).status == 200)


def create(sandbox: Sandbox, numbers: Iterable[int], spec: Resource) -> None:
    """Create the Widgets w<number>. Raises: `RuntimeError` for a refusal."""
    asyncio.run(created(sandbox, (f"w{number}" for number in numbers), spec))


async def created(sandbox: Sandbox, names: Iterable[str], spec: Resource) -> None:
    """Create the Widgets of these names. Raises: `RuntimeError` for a refusal."""
    await send_all(sandbox, "POST", ((PATH, widget(name, spec)) for name in names))


def update(sandbox: Sandbox, count: int, *, size: int) -> float:
    """Change the size of the first `count` Widgets; returns when the last answer came (seconds since 1970)."""
    body = json.dumps({"spec": {"size": size}}).encode()
    asyncio.run(send_all(sandbox, "PATCH", ((f"{PATH}/w{number}", body) for number in range(count))))
    return time.time()


def widget(name: str, spec: Resource) -> bytes:
    """A Widget as it is sent."""
    metadata = {"name": name}
    return json.dumps({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata, "spec": spec}).encode()


def version_of(sandbox: Sandbox, path: str) -> str:
    """The version of a collection as it is now, to follow it from there."""
    version: str = sandbox.request("GET", f"{path}?limit=1").body["metadata"]["resourceVersion"]
    return version


async def follow(sandbox: Sandbox, path: str, version: str, seen: Callable[[str, Resource], bool]) -> float:
    """Watch a collection until `seen(type, object)` says so; returns when that was (seconds since 1970).

    On a busy machine the API server ends a watch now and then: it goes on from the last version.
    Raises: `RuntimeError` when the API server does not know that version any more.
    """
    async with session(sandbox) as http:
        while True:
            url = f"{path}?watch=true&resourceVersion={version}"
            async with http.get(url, timeout=aiohttp.ClientTimeout()) as answer:
                async for line in answer.content:
                    event = msgspec.json.decode(line)
                    if event["type"] == "ERROR":
                        raise RuntimeError(f"the watch of {path} ended: {event['object'].get('message')}")
                    version = event["object"]["metadata"]["resourceVersion"]
                    if seen(event["type"], event["object"]):
                        return time.time()


async def send_all(sandbox: Sandbox, method: str, requests: Iterable[tuple[str, bytes]]) -> None:
    """Send writes, each a path and a body, as fast as they are answered. Raises: `RuntimeError` for a refusal."""
    left = iter(requests)

    async def worker(http: aiohttp.ClientSession) -> None:
        # The iterator is shared: each takes the next one when its own is answered.
        for path, body in left:
            await send(http, method, path, body)

    async with session(sandbox) as http, asyncio.TaskGroup() as group:
        for _ in range(UNDER_WAY):
            group.create_task(worker(http))


async def paced(sandbox: Sandbox, method: str, requests: Iterable[tuple[str, bytes]], *, per_second: float) -> None:
    """Send writes, each a path and a body, at a rate; later ones do not wait for slow answers.

    Raises: `RuntimeError` for a refusal.
    """
    began = asyncio.get_running_loop().time()
    async with session(sandbox) as http, asyncio.TaskGroup() as group:
        for number, (path, body) in enumerate(requests):
            await asyncio.sleep(began + number / per_second - asyncio.get_running_loop().time())
            group.create_task(send(http, method, path, body))


async def send(http: aiohttp.ClientSession, method: str, path: str, body: bytes) -> None:
    """Send one write and await its answer. Raises: `RuntimeError` for a refusal."""
    kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
    async with http.request(method, path, data=body, headers={"Content-Type": kind}) as answer:
        if answer.status >= 300:
            raise RuntimeError(f"{method} {path} was refused ({answer.status}): {await answer.text()}")
        # To its end: otherwise the connection is closed, and its TLS farewell may outlive the event loop.
        await answer.read()


@asynccontextmanager
async def session(sandbox: Sandbox) -> AsyncIterator[aiohttp.ClientSession]:
    """Connections as the administrator; paths are those of the API server."""
    connector = aiohttp.TCPConnector(limit=UNDER_WAY, ssl=ssl.create_default_context(cafile=str(sandbox.ca_file)))
    headers: dict[str, Any] = {"Authorization": f"Bearer {sandbox.token}", "User-Agent": "bench"}
    async with aiohttp.ClientSession(sandbox.url, connector=connector, headers=headers) as http:
        yield http
