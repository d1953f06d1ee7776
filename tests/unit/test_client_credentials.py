"""When credentials are read again, by whom, and what holds while that fails."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest

from bonny.client.api import Client
from bonny.client.config import Connection
from bonny.client.errors import Unreachable
from bonny.client.request import ApiRequest
from bonny.errors import UsageError
from tests.support.virtual import Clock

INFINITE = float("inf")


@dataclass
class Scripted:
    """A cluster whose credentials have a number; `held` lets a reading wait, `broken` lets it fail."""

    source: str = "the test"
    max_age: float = INFINITE
    readings: int = 0
    broken: bool = False
    held: asyncio.Event = field(default_factory=asyncio.Event)

    async def connect(self) -> Connection:
        self.readings += 1
        number = self.readings
        await self.held.wait()
        if self.broken:
            raise UsageError(f"reading {number} failed")
        return Connection(server=f"https://{number}.invalid", max_age=self.max_age)


@pytest.fixture
def cluster() -> Scripted:
    made = Scripted()
    made.held.set()
    return made


@pytest.fixture
async def client(cluster: Scripted) -> AsyncIterator[Client]:
    async with Client(cluster, user_agent="test/1", timeout=0.3) as made:
        yield made


async def test_they_are_read_once_and_again_when_that_is_asked_for(client: Client, cluster: Scripted) -> None:
    servers = [(await client.connection(renew=renew)).server for renew in (False, False, True, False)]

    assert servers == ["https://1.invalid", "https://1.invalid", "https://2.invalid", "https://2.invalid"]


async def test_they_are_read_again_when_they_are_old(client: Client, cluster: Scripted) -> None:
    cluster.max_age = -1.0
    first = await client.connection()
    second = await client.connection()

    assert (first.server, second.server) == ("https://1.invalid", "https://2.invalid")


def test_after_a_certificate_was_not_trusted_they_are_read_again_but_not_for_each_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A new authority may be inside of the kubeconfig; what is read may also run a plugin."""
    clock, readings, cluster = Clock(monkeypatch), list[int](), Scripted()

    async def main() -> None:
        cluster.held.set()
        async with Client(cluster, user_agent="test/1") as client:
            for second in range(25):
                await client.connection()
                if second in {3, 4, 5, 16}:
                    client._transport.distrusted_at = time.monotonic()
                readings.append(cluster.readings)
                await asyncio.sleep(1.0)

    clock.run(main)
    assert readings == [1] * 11 + [2] * 11 + [3] * 3


async def test_while_that_fails_the_old_ones_are_used_until_the_server_refuses_them(
    client: Client, cluster: Scripted
) -> None:
    """Regression: a token file that was missing for a moment failed every request, though the token was still good."""
    cluster.max_age = -1.0
    first = await client.connection()
    cluster.broken = True

    assert await client.connection() is first
    with pytest.raises(UsageError, match="failed"):
        await client.connection(renew=True)
    cluster.broken = False
    assert (await client.connection()).server != first.server


async def test_without_old_ones_a_failure_is_told(client: Client, cluster: Scripted) -> None:
    cluster.broken = True
    for number in (1, 2):
        with pytest.raises(UsageError, match=f"^reading {number} failed$"):
            await client.connection()


async def test_however_many_ask_they_are_read_once_at_a_time(client: Client, cluster: Scripted) -> None:
    """Regression: a hundred requests that were refused together ran a plugin a hundred times."""
    cluster.held.clear()
    asking = [asyncio.create_task(client.connection(renew=number % 2 == 0)) for number in range(100)]
    await asyncio.sleep(0)
    cluster.held.set()

    assert {one.server for one in await asyncio.gather(*asking)} == {"https://1.invalid"}
    assert cluster.readings == 1


async def test_who_gives_up_waiting_ends_nobody_elses_reading(client: Client, cluster: Scripted) -> None:
    cluster.held.clear()
    first, second = (asyncio.create_task(client.connection()) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.wait([first])
    cluster.held.set()

    assert (await second).server == "https://1.invalid"
    assert cluster.readings == 1


async def test_a_request_does_not_wait_for_credentials_longer_than_its_deadline(
    client: Client, cluster: Scripted
) -> None:
    """Regression: a plugin that hung kept every request for ever."""
    cluster.held.clear()
    began = time.monotonic()
    with pytest.raises(Unreachable, match="the credentials of the test could not be read in time"):
        await client.exchange(ApiRequest("GET", "/"))

    assert time.monotonic() - began < 5


async def test_a_stream_does_not_wait_for_credentials_longer_than_a_request(client: Client, cluster: Scripted) -> None:
    """Regression: only requests had a deadline; a watch waited for the plugin for ever."""
    cluster.held.clear()
    with pytest.raises(Unreachable, match="the credentials of the test could not be read in time"):
        async with asyncio.timeout(5), client.stream("/", query={}, read_timeout=300.0):
            pass


async def test_who_waits_when_the_client_is_closed_is_told(cluster: Scripted) -> None:
    cluster.held.clear()
    client = Client(cluster, user_agent="test/1")
    waiting = asyncio.create_task(client.connection())
    await asyncio.sleep(0)
    await client.close()

    with pytest.raises(Unreachable, match="closed"):
        await waiting
