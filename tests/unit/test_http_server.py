"""HTTP server: the limits of webhooks, TLS, and what a client sees while the server drains and stops."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from bonny.run.http_server import WEBHOOKS, HttpServer, Limits, Message, Send
from tests.support.certificates import Authority

pytestmark = pytest.mark.both_loops

PATIENCE = 20.0
POST = b"POST /validate HTTP/1.1\r\nhost: a\r\ncontent-length: %d\r\n\r\n"
# What an API server has: client-go keeps an idle connection for 90 s.
CLIENT_IDLE_SECONDS = 90
CLIENT_ANSWER_SECONDS = 30


async def length(_: Message, receive: Callable[[], Awaitable[Message]], send: Send) -> None:
    """Answer with the number of bytes of the body."""
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        size, more = size + len(message["body"]), message["more_body"]
    body = str(size).encode()
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@asynccontextmanager
async def serving(
    *, app: Any = length, limits: Limits = WEBHOOKS, context: ssl.SSLContext | None = None
) -> AsyncIterator[HttpServer]:
    server = HttpServer(
        app, "127.0.0.1", 0, limits=limits, context=context, purpose="webhooks", variable="BONNY_WEBHOOK_PORT"
    )
    await server.start()
    try:
        async with asyncio.timeout(PATIENCE):
            yield server
    finally:
        await server.stop()


class Client:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def post(self, body: bytes = b"{}") -> SimpleNamespace:
        self.writer.write(POST % len(body) + body)
        return await self.answer()

    async def answer(self) -> SimpleNamespace:
        status, *lines = (await self.reader.readuntil(b"\r\n\r\n")).decode().splitlines()
        headers = {name.lower(): value for line in lines if line for name, value in [line.split(": ", 1)]}
        body = await self.reader.readexactly(int(headers["content-length"]))
        return SimpleNamespace(status=int(status.split()[1]), headers=headers, body=body.decode())

    async def closed(self) -> bytes:
        """Wait until the server closes the connection. Returns: what it sent before."""
        with contextlib.suppress(ConnectionError):
            return await self.reader.read()
        return b""


@asynccontextmanager
async def connected(server: HttpServer, trust: ssl.SSLContext | None = None) -> AsyncIterator[Client]:
    client = Client(*await asyncio.open_connection("127.0.0.1", server.port, ssl=trust))
    try:
        yield client
    finally:
        client.writer.transport.abort()


def trusting(authority: Authority) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(authority.certificate))


# --- the size of a request --------------------------------------------------------------------------------------------


async def test_a_body_of_7_mib_is_read_and_one_byte_more_is_answered_with_413() -> None:
    async with serving() as server:
        async with connected(server) as client:
            answers = [await client.post(b"a" * 7 * 2**20) for _ in range(2)]
            assert [(answer.status, answer.body) for answer in answers] == [(200, str(7 * 2**20))] * 2
        async with connected(server) as client:
            refused = await client.post(b"a" * (7 * 2**20 + 1))
            assert (refused.status, refused.headers["connection"]) == (413, "close")
            assert refused.body == "413: Content Too Large"


async def test_a_client_that_goes_on_sending_reads_413_and_is_closed() -> None:
    sent = 2**16
    async with serving(limits=replace(WEBHOOKS, body_bytes=1000)) as server, connected(server) as client:
        client.writer.write(POST % (2 * sent) + b"a" * sent)
        assert (await client.answer()).status == 413
        client.writer.write(b"a" * sent)
        await client.writer.drain()
        client.writer.write_eof()
        assert await client.closed() == b""
        async with connected(server) as other:
            assert (await other.post()).status == 200


async def test_a_client_that_never_ends_its_refused_request_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bonny.run.http_server.REFUSED_SECONDS", 0.1)
    async with serving(limits=replace(WEBHOOKS, body_bytes=1000)) as server, connected(server) as client:
        client.writer.write(POST % 2**30 + b"a" * 2000)
        assert b" 413 " in await client.closed()


async def test_chunks_are_counted_too() -> None:
    head = b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n"
    async with serving(limits=replace(WEBHOOKS, body_bytes=1000)) as server, connected(server) as client:
        client.writer.write(head + b"1f4\r\n" + b"a" * 500 + b"\r\n1f4\r\n" + b"a" * 500 + b"\r\n0\r\n\r\n")
        assert (await client.answer()).body == "1000"
        client.writer.write(head + b"3e8\r\n" + b"a" * 1000 + b"\r\n1\r\na\r\n0\r\n\r\n")
        assert (await client.answer()).status == 413


async def test_a_second_request_that_is_too_large_does_not_break_into_the_answer_of_the_first() -> None:
    answering, go_on = asyncio.Event(), asyncio.Event()

    async def slow(_: Message, __: object, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"4")]})
        answering.set()
        await go_on.wait()
        await send({"type": "http.response.body", "body": b"done"})

    async with serving(app=slow, limits=replace(WEBHOOKS, body_bytes=1000)) as server, connected(server) as client:
        client.writer.write(POST % 2 + b"{}")
        await answering.wait()
        client.writer.write(POST % 2000 + b"a" * 2000)
        assert b"413" not in await client.closed()


# --- the time of a request --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sent", [b"POST /val", POST % 100, POST % 100 + b"a" * 99])
async def test_a_slow_request_is_cut_off_and_an_idle_connection_is_not(sent: bytes) -> None:
    async with serving(limits=replace(WEBHOOKS, answer=60.0, request=0.1)) as server, connected(server) as idle:
        for _ in range(2):
            async with connected(server) as slow:
                slow.writer.write(sent)
                assert await slow.closed() == b""
        assert (await idle.post()).status == 200
        async with connected(server) as slow:
            slow.writer.write(sent)
            assert await slow.closed() == b""
        assert (await idle.post()).status == 200


async def test_a_request_that_drips_gets_no_more_time_with_each_byte() -> None:
    async with serving(limits=replace(WEBHOOKS, request=0.2)) as server, connected(server) as client:
        began = asyncio.get_running_loop().time()

        async def drip() -> None:
            with contextlib.suppress(ConnectionError):
                client.writer.write(POST % 10_000)
                while True:
                    client.writer.write(b"a")
                    await client.writer.drain()
                    await asyncio.sleep(0.01)

        dripping = asyncio.create_task(drip())
        assert await client.closed() == b""
        dripping.cancel()
        assert asyncio.get_running_loop().time() - began < PATIENCE / 2


async def test_an_idle_connection_is_closed_at_last() -> None:
    async with serving(limits=replace(WEBHOOKS, answer=0.2)) as server:
        async with connected(server) as fresh:
            assert await fresh.closed() == b""
        async with connected(server) as used:
            assert (await used.post()).status == 200
            assert await used.closed() == b""


def test_a_client_never_uses_a_connection_that_the_server_is_about_to_close() -> None:
    # Else a write of a user fails with EOF. The last request may come after the longest idle time of the client.
    assert WEBHOOKS.answer >= max(120, CLIENT_IDLE_SECONDS + CLIENT_ANSWER_SECONDS)
    assert WEBHOOKS.request > CLIENT_ANSWER_SECONDS


# --- connections ------------------------------------------------------------------------------------------------------


async def test_for_one_connection_too_many_an_idle_one_is_closed_before_one_that_is_answered() -> None:
    started, go_on = asyncio.Event(), asyncio.Event()

    async def waits(request: Message, receive: Any, send: Send) -> None:
        started.set()
        await go_on.wait()
        await length(request, receive, send)

    async with (
        serving(app=waits, limits=replace(WEBHOOKS, connections=2)) as server,
        contextlib.AsyncExitStack() as all_,
    ):
        first = await all_.enter_async_context(connected(server))
        answering = asyncio.create_task(first.post())
        await started.wait()
        idle, third = [await all_.enter_async_context(connected(server)) for _ in range(2)]
        assert await idle.closed() == b""
        go_on.set()
        assert (await answering).status == 200
        assert (await third.post()).status == 200


async def test_of_connections_that_are_all_answered_the_oldest_makes_room() -> None:
    go_on, count = asyncio.Event(), 0
    waiting = asyncio.Condition()

    async def waits(request: Message, receive: Any, send: Send) -> None:
        nonlocal count
        async with waiting:
            count += 1
            waiting.notify_all()
        await go_on.wait()
        await length(request, receive, send)

    async with (
        serving(app=waits, limits=replace(WEBHOOKS, connections=2)) as server,
        contextlib.AsyncExitStack() as all_,
    ):
        first, second = [await all_.enter_async_context(connected(server)) for _ in range(2)]
        requests = [asyncio.create_task(client.post()) for client in (first, second)]
        async with waiting:
            await waiting.wait_for(lambda: count == 2)
        newest = await all_.enter_async_context(connected(server))
        requests.append(asyncio.create_task(newest.post()))
        async with waiting:
            await waiting.wait_for(lambda: count == 3)
        go_on.set()
        answers = await asyncio.gather(*requests, return_exceptions=True)
        assert [isinstance(answer, Exception) for answer in answers] == [True, False, False]


# --- TLS --------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


async def test_a_client_that_does_not_end_its_handshake_is_closed(authority: Authority) -> None:
    context = authority.issue("slow").server_context()
    async with serving(context=context, limits=replace(WEBHOOKS, handshake=0.2)) as server:
        async with connected(server) as silent, connected(server) as half:
            half.writer.write(b"\x16\x03\x01")
            assert await silent.closed() == await half.closed() == b""
        async with connected(server, trusting(authority)) as client:
            assert (await client.post()).status == 200


async def test_a_slow_request_is_cut_off_by_tls_as_without(authority: Authority) -> None:
    context = authority.issue("cut").server_context()
    async with serving(context=context, limits=replace(WEBHOOKS, request=0.2)) as server:
        async with connected(server, trusting(authority)) as slow:
            slow.writer.write(POST % 100)
            assert await slow.closed() == b""
        async with connected(server, trusting(authority)) as client:
            refused = await client.post(b"a" * (7 * 2**20 + 1))
            assert refused.status == 413


# --- the end ----------------------------------------------------------------------------------------------------------


async def test_while_it_drains_requests_are_answered_and_each_connection_is_closed_after_its_answer() -> None:
    async with contextlib.AsyncExitStack() as open_ones:
        async with serving() as server:
            used, idle = [await open_ones.enter_async_context(connected(server)) for _ in range(2)]
            assert "connection" not in (await used.post()).headers
            server.drain()
            new = await open_ones.enter_async_context(connected(server))
            for client in (used, new):
                answer = await client.post()
                assert (answer.status, answer.headers["connection"]) == (200, "close")
                assert await client.closed() == b""
        assert await idle.closed() == b""
        with pytest.raises(ConnectionError):
            await asyncio.open_connection("127.0.0.1", server.port)
