"""What every transport must do: another one is held to the same by adding it to `TRANSPORTS`.

The runtime's is compared with one on aiohttp, which shows that a test asks for HTTP and not for our way to speak it.
"""

from __future__ import annotations

import asyncio
import sys
import time
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest
import uvloop

from bonny.client import transport
from bonny.client.config import Connection
from bonny.client.errors import Unreachable
from bonny.client.http import connection, dial
from bonny.client.transport import Transport
from bonny_dev.sandbox import Sandbox
from tests.support import aiohttp_transport

TRANSPORTS: Final[dict[str, Callable[..., Any]]] = {"ours": Transport, "aiohttp": aiohttp_transport.Transport}
MODULES: Final[tuple[ModuleType, ...]] = (transport, connection, dial, aiohttp_transport)

# With uvloop only the runtime's own: the reference would show nothing more.
LOOPS: Final[dict[str, Callable[[], asyncio.AbstractEventLoop]]] = {
    "asyncio": asyncio.new_event_loop,
    "uvloop": uvloop.new_event_loop,
}

USER_AGENT: Final = "conformance/1.0"
SECRET: Final = "Bearer hunter2"
# On a busy machine everything takes longer; what this must tell apart is tens of seconds, or for ever.
PATIENCE: Final = 5.0

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="asks the kernel through /proc")


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    return LOOPS


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    items[:] = [item for item in items if not (item.path.parent == here and {"aiohttp", "uvloop"} <= words_of(item))]
    for item in items:
        if item.path.parent == here and "aiohttp" in words_of(item):
            item.add_marker(pytest.mark.slow)  # it is about the tests, not about the runtime


def words_of(item: pytest.Item) -> set[str]:
    """The names of the parameters in an item's name."""
    return set(item.name.partition("[")[2].rstrip("]").split("-"))


@pytest.fixture(params=TRANSPORTS.values(), ids=TRANSPORTS.keys())
def factory(request: pytest.FixtureRequest) -> Callable[[], Transport]:
    """Makes transports of the kind that is tested; the test closes them."""
    return lambda: request.param(user_agent=USER_AGENT)


@pytest.fixture
def setting(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Any], None]:
    """Changes a constant of the transports, wherever each keeps it."""

    def change(name: str, value: Any) -> None:
        found = [module for module in MODULES if hasattr(module, name)]
        assert len(found) > 1, name
        for module in found:
            monkeypatch.setattr(module, name, value)

    return change


@pytest.fixture(name="transport")
async def made_transport(factory: Callable[[], Transport]) -> AsyncIterator[Transport]:
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
