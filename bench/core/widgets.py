"""Widgets: the kind that is followed, its objects of 0.9 KB, and fast writes of many of them.

The API server is what bounds these writes: 32 requests under way on as many connections, bodies as bytes, answers
unread but for their status.
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

from bonny.resource import Resource
from bonny.sandbox import Sandbox

__all__ = ["DEFINITION", "PATH", "create", "define", "follow", "update", "version_of"]

PATH: Final = "/apis/example.com/v1/namespaces/default/widgets"
UNDER_WAY: Final = 32
# Makes 900 bytes of what the API server sends for one object, managedFields included.
TEXT: Final = "x" * 450

DEFINITION: Final[Resource] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"kind": "Widget", "plural": "widgets", "singular": "widget", "listKind": "WidgetList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {"size": {"type": "integer"}, "text": {"type": "string"}},
                            }
                        },
                    }
                },
            }
        ],
    },
}


def define(sandbox: Sandbox, definitions: Resource | list[Resource]) -> None:
    """Apply the definition of Widgets and return once they are served."""
    sandbox.apply(definitions)
    sandbox.eventually(lambda: sandbox.request("GET", PATH).status == 200)


def create(sandbox: Sandbox, numbers: Iterable[int], spec: Resource | None = None) -> None:
    """Create the Widgets w<number>; `spec` is by default one of size 1. Raises: `RuntimeError` for a refusal."""
    given = spec or {"size": 1, "text": TEXT}
    bodies = (
        {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": f"w{number}"}, "spec": given}
        for number in numbers
    )
    asyncio.run(_send(sandbox, "POST", ((PATH, json.dumps(body).encode()) for body in bodies)))


def update(sandbox: Sandbox, count: int, *, size: int) -> float:
    """Change the size of the first `count` Widgets; returns when the last answer came (seconds since 1970)."""
    body = json.dumps({"spec": {"size": size}}).encode()
    asyncio.run(_send(sandbox, "PATCH", ((f"{PATH}/w{number}", body) for number in range(count))))
    return time.time()


def version_of(sandbox: Sandbox, path: str) -> str:
    """The version of a collection as it is now, to follow it from there."""
    version: str = sandbox.request("GET", f"{path}?limit=1").body["metadata"]["resourceVersion"]
    return version


async def follow(sandbox: Sandbox, path: str, version: str, seen: Callable[[str, Resource], bool]) -> float:
    """Watch a collection until `seen(type, object)` says so; returns when that was (seconds since 1970).

    Raises: `RuntimeError` when the watch ends before.
    """
    url = f"{sandbox.url}{path}?watch=true&resourceVersion={version}"
    async with _session(sandbox) as session, session.get(url, timeout=aiohttp.ClientTimeout()) as answer:
        async for line in answer.content:
            event = json.loads(line)
            if seen(event["type"], event["object"]):
                return time.time()
    raise RuntimeError(f"the watch of {path} ended too early")


async def _send(sandbox: Sandbox, method: str, requests: Iterable[tuple[str, bytes]]) -> None:
    kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
    left = iter(requests)

    async def worker(session: aiohttp.ClientSession) -> None:
        # The iterator is shared: each takes the next one when its own is answered.
        for path, body in left:
            async with session.request(method, sandbox.url + path, data=body, headers={"Content-Type": kind}) as answer:
                if answer.status >= 300:
                    raise RuntimeError(f"{method} {path} was refused ({answer.status}): {await answer.text()}")
                await answer.release()

    async with _session(sandbox) as session, asyncio.TaskGroup() as group:
        for _ in range(UNDER_WAY):
            group.create_task(worker(session))


@asynccontextmanager
async def _session(sandbox: Sandbox) -> AsyncIterator[aiohttp.ClientSession]:
    connector = aiohttp.TCPConnector(limit=UNDER_WAY, ssl=ssl.create_default_context(cafile=str(sandbox.ca_file)))
    headers: dict[str, Any] = {"Authorization": f"Bearer {sandbox.token}", "User-Agent": "bench"}
    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:
        yield session
