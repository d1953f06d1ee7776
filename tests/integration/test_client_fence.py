"""The fence of a client, on a real API server: once its time is over no write is begun, whatever was waited for."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from bonny.client.api import JSON, Client
from bonny.client.config import Connection
from bonny.client.errors import NotFound, NotLeading, Unreachable
from bonny.client.request import ApiRequest, path_of
from bonny.kinds import Kind
from bonny.resource import OWNER_UID, Key, Resource
from bonny_dev.sandbox import Sandbox
from bonny_dev.testing.faults import Drop, Fault, FaultProxy, Hold, Respond, is_any, is_write

CONFIG_MAP = Kind("v1", "ConfigMap")
NOTHING = Key("default", "is-not-there")


@dataclass
class Place:
    """The proxy as a cluster, whose credentials take their time, and a fence that is closed by hand."""

    proxy: FaultProxy
    source: str = "the proxy"
    left: float = 30.0
    readings: int = 0
    slow: asyncio.Event = field(default_factory=asyncio.Event)

    async def connect(self) -> Connection:
        self.readings += 1
        await self.slow.wait()
        return Connection(server=self.proxy.url)

    def fence(self) -> float:
        return self.left


@pytest.fixture
def place(sandbox: Sandbox) -> Iterator[Place]:
    with FaultProxy(sandbox) as proxy:
        made = Place(proxy)
        made.slow.set()
        yield made


@pytest.fixture
async def client(place: Place) -> AsyncIterator[Client]:
    async with Client(place, user_agent="fence/1.0", timeout=10, fence=place.fence) as made:
        yield made


def config_map() -> Resource:
    metadata = {"name": f"fence-{uuid.uuid4().hex[:8]}", "namespace": "default", "labels": {OWNER_UID: "u-1"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


WRITES: dict[str, Callable[[Client], Awaitable[Any]]] = {
    "apply": lambda client: client.apply(CONFIG_MAP, config_map(), manager="m"),
    "create": lambda client: client.create(CONFIG_MAP, config_map()),
    "replace": lambda client: client.replace(CONFIG_MAP, config_map()),
    "merge_patch": lambda client: client.merge_patch(CONFIG_MAP, NOTHING, {}),
    "json_patch": lambda client: client.json_patch(CONFIG_MAP, NOTHING, []),
    "delete": lambda client: client.delete(CONFIG_MAP, NOTHING),
    "exchange": lambda client: client.exchange(
        ApiRequest("POST", path_of(CONFIG_MAP, "default"), headers={"Content-Type": JSON}, body=b"{}")
    ),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())
async def test_behind_a_closed_fence_nothing_is_written(
    place: Place, client: Client, write: Callable[[Client], Awaitable[Any]]
) -> None:
    place.left = 0.0
    with pytest.raises(NotLeading, match="was not sent: this replica does not lead"):
        await write(client)

    assert place.proxy.count(is_any) == 0


async def test_behind_a_closed_fence_everything_can_be_read(place: Place, client: Client) -> None:
    place.left = 0.0
    with pytest.raises(NotFound):
        await client.get(CONFIG_MAP, NOTHING.name, namespace=NOTHING.namespace)

    # The API server reports to be ready only when it has these; ConfigMaps come some time later.
    assert await client.list(Kind("v1", "Namespace"))
    watch = {"watch": "true", "timeoutSeconds": "1"}
    async with client.stream(path_of(CONFIG_MAP), query=watch, read_timeout=5) as answer:
        assert answer.status == 200


async def test_a_write_that_was_told_to_wait_is_not_sent_again_when_the_fence_closed_meanwhile(
    place: Place, client: Client
) -> None:
    throttled = place.proxy.add(Fault(Respond(429, b"Too many requests", retry_after="1"), times=None))
    writing = asyncio.create_task(client.create(CONFIG_MAP, config_map()))
    await until(lambda: throttled.hits == 1)
    place.left = 0.0
    with pytest.raises(NotLeading):
        await writing

    assert place.proxy.count(is_any) == 1


async def test_a_write_whose_credentials_came_when_the_fence_was_closed_is_not_sent(
    place: Place, client: Client
) -> None:
    place.slow.clear()
    writing = asyncio.create_task(client.create(CONFIG_MAP, config_map()))
    await until(lambda: place.readings == 1)
    place.left = 0.0
    place.slow.set()
    with pytest.raises(NotLeading):
        await writing

    assert place.proxy.count(is_any) == 0


async def test_a_write_that_was_refused_is_not_sent_again_with_credentials_that_came_too_late(
    place: Place, client: Client
) -> None:
    place.proxy.add(Fault(Respond(401, b"Unauthorized"), times=None))
    await client.connection()
    place.slow.clear()
    writing = asyncio.create_task(client.create(CONFIG_MAP, config_map()))
    await until(lambda: place.readings == 2)
    place.left = 0.0
    place.slow.set()
    with pytest.raises(NotLeading):
        await writing

    assert place.proxy.count(is_any) == 1


async def test_a_creation_that_got_no_answer_is_not_sent_again_when_the_fence_closed_meanwhile(
    place: Place, client: Client
) -> None:
    lost = place.proxy.add(Fault(Drop(), on=is_write, times=None))
    writing = asyncio.create_task(client.create(CONFIG_MAP, config_map()))
    await until(lambda: lost.hits == 1)
    place.left = 0.0
    with pytest.raises(NotLeading):
        await writing

    assert place.proxy.count(is_write) == 1


async def test_a_write_that_is_not_answered_is_given_up_within_the_fence(place: Place, client: Client) -> None:
    held = place.proxy.add(Fault(Hold()))
    place.left = 0.5
    began = time.monotonic()
    with pytest.raises(Unreachable, match="did not answer"):
        await client.create(CONFIG_MAP, config_map(), subresource="eviction")

    assert held.hits == 1
    assert 0.4 < time.monotonic() - began < 2.0


async def test_a_request_that_is_not_answered_is_named_like_one_that_is_refused(place: Place) -> None:
    """Regression: the error named the server alone, so nobody knew which of many children it was about."""
    place.proxy.add(Fault(Hold(), on=is_any, times=None))
    lost, made = f"configmaps {NOTHING}", config_map()
    key = Key("default", made["metadata"]["name"])
    asked: dict[str, Callable[[Client], Awaitable[object]]] = {
        f"cannot apply configmaps {key}": lambda client: client.apply(CONFIG_MAP, made),
        f"cannot get {lost}": lambda client: client.get(CONFIG_MAP, NOTHING.name, namespace=NOTHING.namespace),
        f"cannot patch {lost}": lambda client: client.merge_patch(CONFIG_MAP, NOTHING, {"data": {}}),
        f"cannot delete {lost}": lambda client: client.delete(CONFIG_MAP, NOTHING),
        f"cannot create configmaps {key.name}": lambda client: client.create(CONFIG_MAP, made),
    }
    async with Client(place, user_agent="fence/1.0", timeout=0.6, fence=place.fence) as client:
        for said, request in asked.items():
            with pytest.raises(Unreachable, match=rf"^{said}: https?://\S+ (did not answer within|cannot be reached)"):
                await request(client)


async def test_a_fence_that_is_open_for_longer_than_the_timeout_does_not_prolong_it(place: Place) -> None:
    place.proxy.add(Fault(Hold()))
    began = time.monotonic()
    async with Client(place, user_agent="fence/1.0", timeout=0.5, fence=place.fence) as client:
        with pytest.raises(Unreachable, match="did not answer"):
            await client.delete(CONFIG_MAP, NOTHING)

    assert time.monotonic() - began < 2.0


async def until(holds: Callable[[], object]) -> None:
    """Return once it holds. Raises: `TimeoutError` when it does not for long."""
    async with asyncio.timeout(5):
        while not holds():  # noqa: ASYNC110  what is waited for is the proxy's state, and tells nobody
            await asyncio.sleep(0.01)
