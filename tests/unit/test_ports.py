"""Each port that any client may reach has a budget of connections, bytes and time, which docs/security.md states."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bonny import Operator
from bonny.metrics_auth.scrapers import Scrapers
from bonny.metrics_auth.server import SERVER as SECURE_METRICS
from bonny.metrics_auth.server import MetricsRun
from bonny.run.config import Config
from bonny.run.probes import LIMITS, Limits, Pages, Probes, Report
from bonny.run.process import Process
from bonny.tls import server as tls_server
from bonny.tls.http_server import ServerOptions
from bonny.tls.server import TlsServer
from bonny.webhooks.app import MOST_BYTES, WebhookApp
from bonny.webhooks.memory import MOST_MEMORY
from bonny.webhooks.serving import SERVER as WEBHOOKS
from tests.support.certificates import Authority
from tests.support.waiting import until
from tests.unit.test_http_server import Client, Reviews

pytestmark = pytest.mark.both_loops

SECONDS = 30.0
OPERATOR = Operator(name="op", group="example.com", controllers=[Reviews])
PAGES = Pages({"/healthz": lambda: Report(True, ())}, lambda _: (b"up 1\n", "text/plain"))


def secure_metrics(options: ServerOptions, context: ssl.SSLContext) -> TlsServer:
    process: Any = Process(OPERATOR, Config(http_host="127.0.0.1"), SimpleNamespace())
    process.client, process.exposition = SimpleNamespace(), PAGES.metrics
    run = MetricsRun(process)
    run._scrapers = Scrapers(process.client)
    return TlsServer(run._serve, "127.0.0.1", 0, options, context=context)


def probes(options: ServerOptions, _: ssl.SSLContext) -> Probes:
    connections = min(options.connections, options.unanswered_bytes // options.request_bytes)
    return Probes(PAGES, "127.0.0.1", 0, Limits(options.request_bytes, options.answer, connections))


# The limits of the probes by their names elsewhere. Unanswered bytes are bounded by the number of connections.
PROBES = ServerOptions(
    "the probes",
    "BONNY_HTTP_PORT",
    request_bytes=LIMITS.request_bytes,
    answer=LIMITS.seconds,
    request=LIMITS.seconds,
    unanswered_bytes=LIMITS.request_bytes * LIMITS.connections,
    connections=LIMITS.connections,
)
# The options, the server, and a request with its status.
PORTS: dict[str, tuple[ServerOptions, Callable[[ServerOptions, ssl.SSLContext], TlsServer | Probes], str, int]] = {
    "probes": (PROBES, probes, "GET /healthz", 200),
    "secure metrics": (SECURE_METRICS, secure_metrics, "GET /metrics", 401),
    "webhooks": (
        WEBHOOKS,
        lambda options, context: TlsServer(WebhookApp(OPERATOR, None), "127.0.0.1", 0, options, context=context),
        "POST /validate/reviews",
        400,
    ),
}


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


class Port:
    """A running server, and what its clients do."""

    def __init__(self, server: TlsServer | Probes, trust: ssl.SSLContext | None, line: str, status: int) -> None:
        self.server, self._trust, self._line, self._status = server, trust, line, status
        self.writers: list[asyncio.StreamWriter] = []

    @property
    def connections(self) -> list[Any]:
        own = self.server.connections.values() if isinstance(self.server, Probes) else self.server._state.connections
        return list(own)

    @property
    def received(self) -> int:
        return sum(each.received for each in self.connections if not each.transport.is_closing())

    async def client(self, *, shakes_hands: bool = True) -> Client:
        trust = self._trust if shakes_hands else None
        reader, writer = await asyncio.open_connection("127.0.0.1", self.server.port, ssl=trust)
        self.writers.append(writer)
        return Client(reader, writer)

    def request(self, size: int = 2) -> bytes:
        return f"{self._line} HTTP/1.1\r\nhost: a\r\ncontent-length: {size}\r\n\r\n".encode()

    async def answers(self) -> bool:
        """Whether a new client is answered as always."""
        client = await self.client()
        client.writer.write(self.request() + b"{}")
        answer = await client.answer()
        return bool(answer.status == self._status)


@pytest.fixture(params=PORTS)
def port(request: pytest.FixtureRequest, authority: Authority) -> Callable[..., Any]:
    options, make, line, status = PORTS[request.param]
    trust = None if request.param == "probes" else ssl.create_default_context(cafile=str(authority.certificate))

    @asynccontextmanager
    async def serving(**limits: Any) -> AsyncIterator[Port]:
        server = make(replace(options, **limits), authority.issue("port").server_context())
        await server.start()
        served = Port(server, trust, line, status)
        try:
            async with asyncio.timeout(SECONDS):
                yield served
        finally:
            for writer in served.writers:
                writer.transport.abort()
            await server.stop()

    return serving


async def test_connections_and_handshakes_are_counted(port: Callable[..., Any]) -> None:
    async with port(connections=4) as served:
        for _ in range(12):
            await served.client(shakes_hands=False)
            await served.client()
        await until(lambda: len(served.connections) <= 4)
        if isinstance(served.server, TlsServer):
            await until(lambda: len(served.server._handshakes) <= 4)
        assert await served.answers()


async def test_bytes_of_all_clients_are_counted(port: Callable[..., Any]) -> None:
    async with port(unanswered_bytes=50_000, request_bytes=20_000) as served:
        clients = [await served.client() for _ in range(10)]
        most = 0
        for client in clients:
            # The head is not complete, so no answer comes before the end of it.
            client.writer.write(served.request()[:-2] + b"a: " + b"a" * 9_000)
            with contextlib.suppress(ConnectionError):
                await client.writer.drain()
            await asyncio.sleep(0)
            most = max(most, served.received)
        assert most <= 50_000 + 9_000
        assert await served.answers()


async def test_a_request_that_is_too_large_ends_its_connection_alone(port: Callable[..., Any]) -> None:
    async with port(request_bytes=20_000) as served:
        large = await served.client()
        large.writer.write(served.request()[:-2] + b"a: " + b"a" * 30_000)
        await large.closed()
        assert await served.answers()


@pytest.mark.parametrize("sent", [b"", b"G", b"GET /heal", b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\n{"])
async def test_slow_clients_are_closed(port: Callable[..., Any], sent: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tls_server, "HANDSHAKE_SECONDS", 0.3)
    async with port(answer=0.3, request=0.2) as served:
        for client in (await served.client(), await served.client(shakes_hands=False)):
            client.writer.write(sent)
            await client.closed()


@pytest.mark.parametrize(
    "garbage",
    [
        b"\0" * 1000,
        b"\x16\x03\x01\xff\xff" + b"a" * 500,
        b"GET\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"{" * 999,
    ],
)
async def test_garbage_is_neither_answered_by_an_error_nor_logged(
    port: Callable[..., Any], garbage: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with port() as served:
        for client in (await served.client(), await served.client(shakes_hands=False)):
            client.writer.write(garbage)
            await client.closed()
        assert await served.answers()
    assert [record.message for record in caplog.records if record.levelno >= logging.WARNING] == []


@pytest.mark.parametrize(
    ("client", "options", "more"),
    [
        ("a client of the port of probes and metrics", PROBES, []),
        (
            "a client of the port of webhooks, with webhooks or conversions",
            WEBHOOKS,
            [f"{MOST_BYTES >> 20} MiB", f"{MOST_MEMORY >> 20} MiB of memory", "35 s"],
        ),
        ("a client of the port of metrics, with `secure_metrics`", SECURE_METRICS, []),
    ],
)
def test_the_documentation_has_the_limits_of_each_port(client: str, options: ServerOptions, more: list[str]) -> None:
    table = (Path(__file__).parents[2] / "docs" / "security.md").read_text("utf-8")
    (row,) = [line for line in table.splitlines() if line.startswith(f"| {client} |")]
    figures = [f"{options.unanswered_bytes / 2**20:.2g} MiB", f"more than {options.connections} connections", *more]
    if options is not WEBHOOKS:  # there the app refuses a smaller one with a text
        figures += [f"{options.request_bytes >> 10} KiB", f"{options.answer:g} s"]
    assert [figure for figure in figures if not re.search(rf"\b{figure}\b", row)] == []
