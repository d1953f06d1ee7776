"""Failures: whatever happens to a connection is `Unreachable`, in time, without a secret, and hurts nothing else."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from bonny.client.config import Connection
from bonny.client.errors import Unreachable
from bonny.client.transport import Transport
from bonny_dev.sandbox import Sandbox
from tests.conformance.conftest import LINUX, PATIENCE, SECRET, refused, until
from tests.support.peer import Call, Peer, Script, answer, full_backlog
from tests.support.processes import frozen
from tests.support.sockets import between

METHODS = ("GET", "PATCH", "DELETE")
HALF = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"
HALF_CHUNK = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n64\r\nhalf"


def told(url: str) -> Connection:
    return Connection(server=url, authorization=SECRET)


def ask(transport: Transport, url: str, *, method: str = "GET", body: bytes | None = None, timeout: float = 10) -> Any:
    return transport.request(told(url), method, "/api", body=body, timeout=timeout)


def says(data: bytes, *, then: str) -> Script:
    """Reads one request, sends these bytes, and then resets or closes the connection, or keeps it open in silence."""

    async def script(call: Call) -> None:
        await call.request()
        await call.say(data)
        match then:
            case "resets":
                call.reset()
            case "is silent":
                await call.hung_up()

    return script


async def mute(call: Call) -> None:
    """Takes the connection and not one byte."""
    await asyncio.Event().wait()


# --- broken connections -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
async def test_a_refused_connection(transport: Transport, method: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"

    error = await refused(ask(transport, url, method=method))

    assert str(error).startswith(f"{url} cannot be reached: ")
    assert "object at 0x" not in str(error)


async def test_a_host_that_does_not_exist(transport: Transport) -> None:
    error = await refused(ask(transport, "http://nowhere.invalid:1"), within_seconds=10)

    assert "http://nowhere.invalid:1" in str(error)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("then", ["resets", "closes"])
@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="before-the-answer"),
        pytest.param(b"HTTP/1.1 200 OK\r\nConte", id="in-the-head"),
        pytest.param(HALF, id="in-the-body"),
        pytest.param(HALF_CHUNK, id="in-a-chunk"),
    ],
)
async def test_a_connection_that_breaks(transport: Transport, method: str, then: str, data: bytes) -> None:
    async with Peer(says(data, then=then)) as peer:
        await refused(ask(transport, peer.url, method=method, body=b"{}"))


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"SSH-2.0-OpenSSH_9.6\r\n", id="another-protocol"),
        pytest.param(b"\x15\x03\x01\x00\x02\x02\x46" * 10, id="tls"),
        pytest.param(b"HTTP/1.1 abc OK\r\n\r\n", id="status"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n", id="length"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", id="negative-length"),
        pytest.param(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\nabc\r\n0\r\n\r\n", id="chunk"),
        pytest.param(b"HTTP/1.1 200 OK\r\nX: " + b"y" * 1_000_000 + b"\r\n\r\n", id="endless-header"),
        pytest.param(answer(b"\x1f\x8bnot gzip", headers=("Content-Encoding: gzip",)), id="gzip"),
        pytest.param(answer(b"abc", headers=("Content-Encoding: deflate",)), id="deflate"),
    ],
)
async def test_an_answer_that_is_no_http(transport: Transport, data: bytes) -> None:
    async with Peer(says(data, then="closes")) as peer:
        await refused(ask(transport, peer.url))
        await refused(ask(transport, peer.url, method="PATCH", body=b"{}"))


async def test_a_server_that_speaks_no_tls(transport: Transport) -> None:
    async def plain(call: Call) -> None:
        await call.say(answer(b"this is HTTP", status="400 Bad Request"))
        await call.hung_up()

    async with Peer(plain) as peer:
        await refused(ask(transport, peer.url.replace("http:", "https:")))


async def test_a_header_that_would_be_two(transport: Transport) -> None:
    """A token file with an end of line in it: said without the token."""
    async with Peer() as peer:
        connection = Connection(server=peer.url, authorization=SECRET + "\r\nX: y")
        await refused(transport.request(connection, "GET", "/", timeout=5))

        assert peer.heard == []


@pytest.mark.parametrize("server", ["http://[::1", "http://", "ftp://127.0.0.1", "http://127.0.0.1:99999", "127.0.0.1"])
async def test_a_server_that_is_no_url(transport: Transport, server: str) -> None:
    await refused(ask(transport, server))


# --- deadlines --------------------------------------------------------------------------------------------------------


async def test_a_server_that_takes_no_connections_is_given_up_in_time(transport: Transport) -> None:
    with full_backlog() as url:
        error = await refused(ask(transport, url, timeout=0.5))

    assert str(error).startswith(f"{url} did not answer within ")


async def drips(call: Call) -> None:
    """Always about to be done."""
    await call.request()
    await call.say(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
    while True:
        await call.say(b"x")
        await asyncio.sleep(0.05)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "script",
    [
        pytest.param(mute, id="before-the-request"),
        pytest.param(says(b"", then="is silent"), id="before-the-answer"),
        pytest.param(says(b"HTTP/1.1 200 OK\r\nConte", then="is silent"), id="in-the-head"),
        pytest.param(says(HALF, then="is silent"), id="in-the-body"),
        pytest.param(drips, id="drop-by-drop"),
    ],
)
async def test_a_silent_server_is_given_up_in_time(transport: Transport, method: str, script: Script) -> None:
    async with Peer(script) as peer:
        error = await refused(ask(transport, peer.url, method=method, timeout=0.5))

        assert str(error).startswith(f"{peer.url} did not answer within ")


async def test_a_server_that_takes_no_body_is_given_up_in_time(transport: Transport) -> None:
    async with Peer(mute) as peer:
        await refused(ask(transport, peer.url, method="PATCH", body=b"x" * 20_000_000, timeout=0.5))


async def test_a_frozen_api_server_is_given_up_in_time(
    transport: Transport, cluster: Connection, sandbox: Sandbox
) -> None:
    await transport.request(cluster, "GET", "/version", timeout=10)
    with frozen(sandbox):
        # On the connection that is open, and on one that gets no TLS.
        first, second = await asyncio.gather(
            refused(transport.request(cluster, "GET", "/version", timeout=0.5)),
            refused(transport.request(cluster, "PATCH", "/version", timeout=0.5)),
        )
    assert "did not answer within" in str(first)
    assert "did not answer within" in str(second)

    again = await transport.request(cluster, "GET", "/version", timeout=10)
    assert again.status == 200


# --- ends -------------------------------------------------------------------------------------------------------------


async def waits(call: Call) -> None:
    await call.request()
    await call.hung_up()


async def begins(call: Call) -> None:
    await call.request()
    await call.say(HALF)
    await call.hung_up()


STAGES = [
    pytest.param(None, id="connecting", marks=LINUX),
    pytest.param(mute, id="sending"),
    pytest.param(waits, id="waiting"),
    pytest.param(begins, id="reading"),
]


@asynccontextmanager
async def under_way(transport: Transport, script: Script | None) -> AsyncIterator[list[asyncio.Task[Any]]]:
    """A request of each method and a stream, all of them as far as a server lets them come; None: not connected."""
    async with contextlib.AsyncExitStack() as stack:
        if script is None:
            url = stack.enter_context(full_backlog())
            port = int(url.rsplit(":", 1)[1])
            before = len(between(remote=port))
        else:
            peer = await stack.enter_async_context(Peer(script))
            url = peer.url
        body = b"x" * 20_000_000 if script is mute else b""
        doing = [asyncio.create_task(ask(transport, url, method=method, body=body, timeout=60)) for method in METHODS]
        doing.append(asyncio.create_task(_all(transport, url)))
        if script is None:
            await until(lambda: len(between(remote=port)) == before + len(doing))
        elif script is mute:
            await until(lambda: len(peer.calls) == len(doing))
        else:
            await until(lambda: len(peer.heard) == len(doing))
        assert not any(task.done() for task in doing)
        yield doing


@pytest.mark.parametrize("script", STAGES)
async def test_close_fails_what_is_under_way_and_what_comes_later(
    factory: Callable[[], Transport], script: Script | None
) -> None:
    """Regression: what was connecting or reading went on until its deadline; what came later was a RuntimeError."""
    transport = factory()
    async with Peer() as sound, under_way(transport, script) as doing:
        async with asyncio.timeout(PATIENCE):
            await transport.close()

        for task in doing:
            await refused(task)
        await refused(ask(transport, sound.url))
        await refused(_all(transport, sound.url))
        assert sound.heard == []
        await transport.close()


async def _all(transport: Transport, url: str) -> bytes:
    async with transport.stream(told(url), "/", read_timeout=60) as streamed:
        return b"".join([chunk async for chunk in streamed.chunks])


async def test_close_does_not_wait_for_a_frozen_api_server(
    factory: Callable[[], Transport], cluster: Connection, sandbox: Sandbox
) -> None:
    transport = factory()
    await transport.request(cluster, "GET", "/version", timeout=10)
    async with transport.stream(cluster, "/api/v1/namespaces?watch=true", read_timeout=60) as streamed:
        assert await anext(aiter(streamed.chunks))
        with frozen(sandbox):
            async with asyncio.timeout(PATIENCE):
                await transport.close()
            with pytest.raises(Unreachable):
                await anext(aiter(streamed.chunks))


@pytest.mark.parametrize("script", STAGES)
async def test_a_cancelled_request_ends_at_once_and_leaves_the_transport_usable(
    transport: Transport, script: Script | None
) -> None:
    async with Peer() as sound, under_way(transport, script) as doing:
        for task in doing:
            task.cancel()
        async with asyncio.timeout(PATIENCE):
            outcomes = await asyncio.gather(*doing, return_exceptions=True)

        assert [type(outcome) for outcome in outcomes] == [asyncio.CancelledError] * len(doing)
        assert (await ask(transport, sound.url)).status == 200


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_cancelled_request_closes_its_connection(transport: Transport, streamed: bool) -> None:
    async with Peer(waits) as peer:
        doing = asyncio.create_task(_all(transport, peer.url) if streamed else ask(transport, peer.url))
        await until(lambda: len(peer.heard) == 1)
        doing.cancel()
        await asyncio.wait([doing])

        await until(lambda: peer.open == 0)


async def test_answers_are_not_mixed_up_when_some_requests_are_cancelled(
    transport: Transport, cluster: Connection
) -> None:
    """Each path is answered with its own name; half of the requests are given up at different moments."""

    async def one(number: int) -> None:
        path = f"/api/v1/namespaces/default/configmaps/c{number}"
        got = await transport.request(cluster, "GET", path, timeout=30)
        assert msgspec.json.decode(got.body)["details"]["name"] == f"c{number}"

    async def given_up(number: int) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(number % 20 / 1000):
                await one(number)

    await asyncio.gather(*(given_up(number) if number % 2 else one(number) for number in range(200)))
