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

from bonny import Kind, Operator
from bonny.tls import server as tls_server
from bonny.tls.http_server import HttpServer, Message, Send, ServerOptions
from bonny.tls.server import TlsServer
from bonny.webhooks import Admission, Review
from bonny.webhooks.app import WebhookApp
from bonny.webhooks.serving import SERVER as WEBHOOKS
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
    *, app: Any = length, options: ServerOptions = WEBHOOKS, context: ssl.SSLContext | None = None
) -> AsyncIterator[HttpServer]:
    here = app, "127.0.0.1", 0, options
    server = HttpServer(*here) if context is None else TlsServer(*here, context=context)
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


class Reviews(Admission[Any]):
    resource = Kind("v1", "ConfigMap")

    def validate(self, review: Review[Any]) -> None:
        """Not called."""


def trusting(authority: Authority) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(authority.certificate))


# --- the size of a request --------------------------------------------------------------------------------------------


async def test_a_body_of_7_mib_is_read_and_a_larger_one_is_answered_with_413_wherever_it_ends() -> None:
    app = WebhookApp(Operator(name="op", group="example.com", controllers=[Reviews]), None)
    (path,) = app.routes
    head = POST.replace(b"/validate", path.encode())
    async with serving(app=app) as server, connected(server) as client:
        for size, status in ((7 * 2**20, 400), (7 * 2**20 + 1, 413), (14 * 2**20, 413), (2, 400)):
            client.writer.write(head % size + b"a" * size)
            assert (await client.answer()).status == status
        client.writer.write(head % 2**40)
        sending = asyncio.create_task(repeated(client, b"a" * 2**16))
        assert (await client.answer()).status == 413
        await client.closed()
        await sending
        async with connected(server) as other:
            assert (await other.post()).status == 404


async def test_a_client_that_never_ends_its_refused_request_is_closed() -> None:
    async def refuses(_: Message, __: object, send: Send) -> None:
        await send({"type": "http.response.start", "status": 413, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})

    options = replace(WEBHOOKS, answer=0.2)
    async with serving(app=refuses, options=options) as server, connected(server) as client:
        client.writer.write(POST % 2**30 + b"a" * 2000)
        assert b" 413 " in await client.closed()


async def test_all_bytes_of_a_request_are_counted() -> None:
    chunked = b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n"
    async with serving(options=replace(WEBHOOKS, request_bytes=1000)) as server:
        async with connected(server) as client:
            for _ in range(3):
                client.writer.write(chunked + b"1f4\r\n" + b"a" * 500 + b"\r\n0\r\n\r\n")
                assert (await client.answer()).body == "500"
        for begin, more in (
            (chunked, b"1;%s\r\na\r\n" % (b"a" * 99)),
            (POST % 2**30, b"a" * 100),
            (b"POST /", b"a" * 100),
        ):
            async with connected(server) as client:
                client.writer.write(begin)
                await repeated(client, more)
                assert await client.closed() == b""


async def repeated(client: Client, data: bytes) -> None:
    """Send `data` again and again, until the connection is closed."""
    with contextlib.suppress(ConnectionError):
        while True:
            client.writer.write(data)
            await client.writer.drain()
            await asyncio.sleep(0)


# --- the time of a request --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sent", [b"POST /val", POST % 100, POST % 100 + b"a" * 99])
async def test_a_slow_request_is_cut_off_and_an_idle_connection_is_not(sent: bytes) -> None:
    async with serving(options=replace(WEBHOOKS, request=0.5)) as server, contextlib.AsyncExitStack() as open_ones:
        fresh, used, slow = [await open_ones.enter_async_context(connected(server)) for _ in range(3)]
        assert (await used.post()).status == 200
        slow.writer.write(sent)
        assert await slow.closed() == b""
        assert [(await client.post()).status for client in (fresh, used)] == [200, 200]


async def test_a_request_that_drips_gets_no_more_time_with_each_byte() -> None:
    async with serving(options=replace(WEBHOOKS, request=0.2)) as server, connected(server) as client:
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
    async with serving(options=replace(WEBHOOKS, answer=0.2)) as server:
        async with connected(server) as fresh:
            assert await fresh.closed() == b""
        async with connected(server) as used:
            assert (await used.post()).status == 200
            assert await used.closed() == b""


async def test_a_request_that_stops_after_an_earlier_answer_is_cut_off() -> None:
    async with serving(options=replace(WEBHOOKS, answer=0.2)) as server, connected(server) as client:
        assert (await client.post()).status == 200
        client.writer.write(b"POST /val")
        assert await client.closed() == b""


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
        serving(app=waits, options=replace(WEBHOOKS, connections=2)) as server,
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
        serving(app=waits, options=replace(WEBHOOKS, connections=2)) as server,
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


async def test_a_client_that_does_not_end_its_handshake_is_closed(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tls_server, "HANDSHAKE_SECONDS", 0.5)
    context = authority.issue("slow").server_context()
    async with serving(context=context) as server:
        async with connected(server) as silent, connected(server) as half:
            half.writer.write(b"\x16\x03\x01")
            assert await silent.closed() == await half.closed() == b""
        async with connected(server, trusting(authority)) as client:
            assert (await client.post()).status == 200


async def test_a_slow_request_is_cut_off_by_tls_as_without(authority: Authority) -> None:
    context = authority.issue("cut").server_context()
    options = replace(WEBHOOKS, request=0.2)
    async with serving(context=context, options=options) as server, connected(server, trusting(authority)) as slow:
        slow.writer.write(POST % 100)
        assert await slow.closed() == b""
    async with serving(context=context) as server, connected(server, trusting(authority)) as client:
        assert (await client.post(b"a" * 7 * 2**20)).body == str(7 * 2**20)


# --- the end ----------------------------------------------------------------------------------------------------------


async def test_while_it_drains_requests_are_answered_and_each_connection_is_closed_after_its_answer(
    authority: Authority,
) -> None:
    context, trust = authority.issue("drained").server_context(), trusting(authority)
    async with contextlib.AsyncExitStack() as open_ones:
        async with serving(context=context) as server:
            assert isinstance(server, TlsServer)
            used, idle = [await open_ones.enter_async_context(connected(server, trust)) for _ in range(2)]
            assert "connection" not in (await used.post()).headers
            server.drain()
            new = await open_ones.enter_async_context(connected(server, trust))
            for client in (used, new):
                answer = await client.post()
                assert (answer.status, answer.headers["connection"]) == (200, "close")
                assert await client.closed() == b""
        assert await idle.closed() == b""
        with pytest.raises(ConnectionError):
            await asyncio.open_connection("127.0.0.1", server.port)


async def test_of_too_many_handshakes_the_oldest_is_given_up(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tls_server, "HANDSHAKE_SECONDS", 60.0)
    context = authority.issue("many").server_context()
    options = replace(WEBHOOKS, connections=2)
    async with serving(context=context, options=options) as server, contextlib.AsyncExitStack() as open_ones:
        silent = [await open_ones.enter_async_context(connected(server)) for _ in range(2)]
        async with connected(server, trusting(authority)) as client:
            assert (await client.post()).status == 200
            assert await silent[0].closed() == b""
    assert await silent[1].closed() == b""


async def test_unfinished_bodies_have_one_budget_and_the_oldest_gives_way() -> None:
    """Regression: 60 clients that sent 6.9 MiB of a body and stopped took 420 MiB, and 500 were allowed."""
    options = replace(WEBHOOKS, unanswered_bytes=150_000)
    async with (
        serving(options=options) as server,
        connected(server) as first,
        connected(server) as second,
        connected(server) as third,
    ):
        first.writer.write(POST % 200_000 + b"a" * 100_000)
        await first.writer.drain()
        while sum(each.received for each in server._state.connections) < 100_000:  # type: ignore[attr-defined]  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        for client in (second, third):
            client.writer.write(POST % 60_000 + b"a" * 40_000)
        assert await first.closed() == b""
        for client in (second, third):
            client.writer.write(b"a" * 20_000)
            assert (await client.answer()).body == "60000"


async def test_complete_bodies_that_wait_for_their_answers_are_counted_too() -> None:
    """Regression: a small unfinished request made room for a large one that was complete, again and again."""
    go_on = asyncio.Event()

    async def waits(request: Message, receive: Any, send: Send) -> None:
        while (await receive()).get("more_body"):
            pass
        await go_on.wait()
        await length(request, receive, send)

    options = replace(WEBHOOKS, unanswered_bytes=150_000)
    async with serving(app=waits, options=options) as server, contextlib.AsyncExitStack() as all_:
        small = [await all_.enter_async_context(connected(server)) for _ in range(5)]
        for client in small:
            client.writer.write(POST % 100 + b"a")
        large = [await all_.enter_async_context(connected(server)) for _ in range(5)]
        for client in large:
            client.writer.write(POST % 60_000 + b"a" * 60_000)
        closed = [asyncio.create_task(client.closed()) for client in large]
        done, _ = await asyncio.wait(closed, timeout=PATIENCE, return_when=asyncio.FIRST_COMPLETED)
        while len(done) < 3:
            more, _ = await asyncio.wait({*closed} - done, timeout=PATIENCE, return_when=asyncio.FIRST_COMPLETED)
            assert more
            done |= more
        assert len(done) == 3
        go_on.set()
        await asyncio.wait({*closed} - done, timeout=0)
