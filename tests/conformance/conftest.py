"""What every transport must do: another one is held to the same by adding it to `TRANSPORTS`."""

from __future__ import annotations

import asyncio
import sys
import time
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final

import pytest

from bonny.client.config import Connection
from bonny.client.errors import Unreachable
from bonny.client.transport import Transport
from bonny_dev.sandbox import Sandbox

TRANSPORTS: Final[dict[str, Callable[..., Transport]]] = {"aiohttp": Transport}

USER_AGENT: Final = "conformance/1.0"
SECRET: Final = "Bearer hunter2"
# On a busy machine everything takes longer; what this must tell apart is tens of seconds, or for ever.
PATIENCE: Final = 5.0

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="asks the kernel through /proc")


@pytest.fixture(params=TRANSPORTS.values(), ids=TRANSPORTS.keys())
def factory(request: pytest.FixtureRequest) -> Callable[[], Transport]:
    """Makes transports of the kind that is tested; the test closes them."""
    return lambda: request.param(user_agent=USER_AGENT)


@pytest.fixture
async def transport(factory: Callable[[], Transport]) -> AsyncIterator[Transport]:
    made = factory()
    yield made
    await made.close()


@pytest.fixture
def cluster(sandbox: Sandbox) -> Connection:
    """The real API server, as its administrator."""
    return Connection(server=sandbox.url, authorization=f"Bearer {sandbox.token}", ca_file=str(sandbox.ca_file))


async def refused(doing: Awaitable[Any], *, within_seconds: float = PATIENCE) -> Unreachable:
    """The `Unreachable` that `doing` ends with, in time and without the authorization anywhere in its traceback."""
    began = time.monotonic()
    with pytest.raises(Unreachable) as caught:
        async with asyncio.timeout(within_seconds + PATIENCE):
            await doing
    assert time.monotonic() - began < within_seconds
    assert SECRET.split()[1] not in "".join(traceback.format_exception(caught.value))
    return caught.value


async def until(holds: Callable[[], object]) -> None:
    """Return once it holds. Raises: `TimeoutError` when it does not for long."""
    async with asyncio.timeout(PATIENCE):
        while not holds():  # noqa: ASYNC110  what is waited for is another's state, and tells nobody
            await asyncio.sleep(0.01)
