"""Load: many requests to the API server at once, as its administrator; a thousand and more a second.

You need it to arrange thousands of objects, or a storm of updates. For a few objects `Sandbox.apply` is simpler.
"""

from __future__ import annotations

import asyncio
import io
import json
import ssl
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Final

import aiohttp

from bonny.resource import Resource
from bonny_dev.sandbox import Sandbox

__all__ = ["Storm", "create", "patch", "remove", "storm"]

# More keep the API server no busier, and only queue up in it.
AT_ONCE: Final = 24
REQUEST_SECONDS: Final = 60.0
MERGE_PATCH: Final = "application/merge-patch+json"
# An aborted TLS connection closes its socket in the loop's next rounds.
CLOSING_ROUNDS: Final = 10
# A new kind refuses while its storage is made.
NOT_YET_SECONDS: Final = 0.2


def create(sandbox: Sandbox, path: str, objects: Iterable[Resource], *, at_once: int = AT_ONCE) -> None:
    """POST each of `objects` to the collection `path`. Raises: `AssertionError` for a refusal."""
    asyncio.run(_send_all(sandbox, (("POST", path, made) for made in objects), at_once))


def patch(sandbox: Sandbox, paths: Iterable[str], change: Resource, *, at_once: int = AT_ONCE) -> None:
    """Merge `change` into the object at each of `paths`. Raises: `AssertionError` for a refusal."""
    asyncio.run(_send_all(sandbox, (("PATCH", path, change) for path in paths), at_once))


def remove(sandbox: Sandbox, paths: Iterable[str], *, at_once: int = AT_ONCE) -> None:
    """DELETE the object at each of `paths`. Raises: `AssertionError` for a refusal."""
    asyncio.run(_send_all(sandbox, (("DELETE", path, None) for path in paths), at_once))


@dataclass(slots=True)
class Storm:
    """What a storm did so far."""

    sent: int = 0
    began: float = field(default_factory=time.monotonic)
    ended: float = 0.0

    @property
    def seconds(self) -> float:
        """How long it lasted, so far."""
        return (self.ended or time.monotonic()) - self.began

    @property
    def rate(self) -> float:
        """Updates a second."""
        return self.sent / self.seconds


@contextmanager
def storm(sandbox: Sandbox, path: str, change: Callable[[int], Resource], *, patchers: int) -> Iterator[Storm]:
    """Send merge patches, `change(n)` as the n-th, to the object at `path` as fast as the API server takes them.

    Raises: `AssertionError` at the end when a patch was refused.
    """
    stop = threading.Event()
    counted = Storm()
    failures: list[BaseException] = []

    def run() -> None:
        try:
            asyncio.run(_storm(sandbox, path, change, counted=counted, stop=stop, patchers=patchers))
        except BaseException as error:  # noqa: BLE001  raised in the test's own thread
            failures.append(error)

    thread = threading.Thread(target=run, name="storm")
    thread.start()
    try:
        yield counted
    finally:
        stop.set()
        thread.join()
        counted.ended = time.monotonic()
    assert not failures, failures


async def _storm(
    sandbox: Sandbox,
    path: str,
    change: Callable[[int], Resource],
    *,
    counted: Storm,
    stop: threading.Event,
    patchers: int,
) -> None:
    async with _session(sandbox, patchers) as session, asyncio.TaskGroup() as group:

        async def patch() -> None:
            while not stop.is_set():
                counted.sent += 1
                await _send(session, "PATCH", path, change(counted.sent))

        for _ in range(patchers):
            group.create_task(patch())


async def _send_all(sandbox: Sandbox, requests: Iterable[tuple[str, str, Resource | None]], at_once: int) -> None:
    waiting = iter(requests)
    async with _session(sandbox, at_once) as session, asyncio.TaskGroup() as group:

        async def worker() -> None:
            for method, path, body in waiting:
                await _send(session, method, path, body)

        for _ in range(at_once):
            group.create_task(worker())


@asynccontextmanager
async def _session(sandbox: Sandbox, at_once: int) -> AsyncIterator[aiohttp.ClientSession]:
    context = ssl.create_default_context(cafile=sandbox.ca_file)
    connector = aiohttp.TCPConnector(limit=at_once, ssl=context)
    session = aiohttp.ClientSession(
        base_url=sandbox.url,
        connector=connector,
        headers={"Authorization": f"Bearer {sandbox.token}"},
        timeout=aiohttp.ClientTimeout(total=REQUEST_SECONDS),
    )
    try:
        yield session
    finally:
        await connector.close(abort_ssl=True)
        await session.close()
        for _ in range(CLOSING_ROUNDS):
            await asyncio.sleep(0)


async def _send(session: aiohttp.ClientSession, method: str, path: str, body: Resource | None) -> None:
    encoded = b"" if body is None else json.dumps(body).encode()
    headers = {} if body is None else {"Content-Type": MERGE_PATCH if method == "PATCH" else "application/json"}
    while True:
        # aiohttp warns of bytes that are longer than 1 MiB.
        data = io.BytesIO(encoded) if encoded else None
        async with session.request(method, path, data=data, headers=headers) as answer:
            text = await answer.text()
            if answer.status != 429:
                assert answer.status < 400, f"{method} {path}: {answer.status} {text[:300]}"
                return
        await asyncio.sleep(NOT_YET_SECONDS)
