"""Probes: what they answer, and what a client cannot do to the operator."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from email.utils import parsedate_to_datetime
from types import SimpleNamespace

import pytest

from bonny.errors import UsageError
from bonny.run import probes as probes_module
from bonny.run.probes import LIMITS, Limits, Pages, Probes, Report

pytestmark = pytest.mark.both_loops

PATIENCE = 20.0
GET = b"GET %s HTTP/1.1\r\nHost: 10.0.0.1:8080\r\nUser-Agent: kube-probe/1.36\r\n\r\n"


@asynccontextmanager
async def serving(
    *,
    report: Callable[[], Report] = lambda: Report(True, ()),
    metrics: bytes = b"up 1\n",
    host: str = "127.0.0.1",
    limits: Limits = LIMITS,
) -> AsyncIterator[Probes]:
    reports = {"/healthz": report, "/readyz": report}
    probes = Probes(Pages(reports, lambda accept: (metrics, accept or "text/plain")), host, 0, limits)
    await probes.start()
    try:
        async with asyncio.timeout(PATIENCE):
            yield probes
    finally:
        await probes.stop()


class Client:
    """One connection to the probes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def answer(self, request: bytes = b"", *, body: bool = True) -> SimpleNamespace:
        """Send a request and read its answer."""
        self.writer.write(request)
        status, *lines = (await self.reader.readuntil(b"\r\n\r\n")).decode().splitlines()
        headers = {name.lower(): value for line in lines if line for name, value in [line.split(": ", 1)]}
        text = await self.reader.readexactly(int(headers["content-length"])) if body else b""
        return SimpleNamespace(status=int(status.split()[1]), headers=headers, body=text.decode())

    async def repeat(self, data: bytes, *, pause: float = 0.0) -> None:
        """Send `data` again and again."""
        with contextlib.suppress(ConnectionError):
            while True:
                self.writer.write(data)
                await self.writer.drain()
                await asyncio.sleep(pause)

    async def closed(self) -> bytes:
        """Wait until the server closes the connection. Returns: what it sent before."""
        with contextlib.suppress(ConnectionError):
            return await self.reader.read()
        return b""


@asynccontextmanager
async def connected(probes: Probes) -> AsyncIterator[Client]:
    client = Client(*await asyncio.open_connection("127.0.0.1", probes.port))
    try:
        yield client
    finally:
        client.writer.close()
        with contextlib.suppress(ConnectionError):
            await client.writer.wait_closed()


# --- answers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [b"/healthz", b"/readyz"])
async def test_a_probe_answers_with_its_reasons(path: bytes) -> None:
    reports = [Report(True, ()), Report(False, ("widgets: syncing", "gr\u00f6\u00dfe"))]
    async with serving(report=lambda: reports.pop(0)) as probes, connected(probes) as client:
        green, red = await client.answer(GET % path), await client.answer(GET % path)

    assert (green.status, green.body) == (200, "ok\n")
    assert (red.status, red.body) == (503, "not ok\nwidgets: syncing\ngr\u00f6\u00dfe\n")
    assert green.headers["content-type"] == "text/plain; charset=utf-8"
    assert parsedate_to_datetime(green.headers["date"]).tzinfo is not None


async def test_metrics_come_in_the_format_that_is_asked_for() -> None:
    async with serving() as probes, connected(probes) as client:
        answer = await client.answer(
            b"GET /metrics?all=1 HTTP/1.1\r\nhost: a\r\nACCEPT: application/openmetrics-text\r\n\r\n"
        )
    assert (answer.status, answer.body) == (200, "up 1\n")
    assert answer.headers["content-type"] == "application/openmetrics-text"


async def test_head_answers_without_a_body_and_the_connection_stays() -> None:
    async with serving() as probes, connected(probes) as client:
        answer = await client.answer((GET % b"/healthz").replace(b"GET", b"HEAD"), body=False)
        assert (answer.status, answer.headers["content-length"]) == (200, "3")
        assert (await client.answer(GET % b"/readyz")).body == "ok\n"


@pytest.mark.parametrize("method", [b"POST", b"PUT", b"DELETE", b"OPTIONS"])
async def test_other_methods_are_not_allowed(method: bytes) -> None:
    async with serving() as probes, connected(probes) as client:
        answer = await client.answer((GET % b"/healthz").replace(b"GET", method))
    assert (answer.status, answer.headers["allow"], answer.body) == (405, "GET, HEAD", "405: Method Not Allowed")


@pytest.mark.parametrize("path", [b"/", b"/healthz/", b"/Healthz", b"/metrics/up", b"//healthz", b"/healthz%00"])
async def test_other_paths_are_not_found(path: bytes) -> None:
    async with serving() as probes, connected(probes) as client:
        answer = await client.answer(GET % path)
    assert (answer.status, answer.body) == (404, "404: Not Found")


async def test_a_request_to_change_the_protocol_is_answered_in_http() -> None:
    upgrade = b"\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n"
    async with serving() as probes, connected(probes) as client:
        answer = await client.answer((GET % b"/healthz").replace(b"\r\n\r\n", upgrade))
    assert answer.body == "ok\n"


async def test_http_1_0_and_connection_close_end_the_connection() -> None:
    for request in (
        b"GET /healthz HTTP/1.0\r\n\r\n",
        (GET % b"/healthz").replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"),
    ):
        async with serving() as probes, connected(probes) as client:
            client.writer.write(request)
            assert (await client.closed()).endswith(b"\r\n\r\nok\n")


async def test_an_error_in_a_report_is_logged_and_answered(caplog: pytest.LogCaptureFixture) -> None:
    def report() -> Report:
        raise RuntimeError("a bug")

    async with serving(report=report) as probes, connected(probes) as client:
        assert (await client.answer(GET % b"/healthz")).status == 500
        async with connected(probes) as second:
            assert (await second.answer(GET % b"/metrics")).status == 200
    assert "a bug" in caplog.text


# --- addresses --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "0.0.0.0"])
async def test_the_probes_listen_on_an_address_or_a_name(host: str) -> None:
    async with serving(host=host) as probes, connected(probes) as client:
        assert (await client.answer(GET % b"/healthz")).status == 200


async def test_a_busy_port_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        probes = Probes(Pages({}, lambda _: (b"", "")), "127.0.0.1", port)
        with pytest.raises(UsageError) as refused:
            await probes.start()
    assert str(refused.value).startswith(f"port {port} for the probes is not free (")
    assert str(refused.value).endswith("): set BONNY_HTTP_PORT to another port, or to 0 for any free one")


# --- slow and hostile clients -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("begin", "more"),
    [
        pytest.param(b"GET /", b"a" * 1024, id="path"),
        pytest.param(b"GET / HTTP/1.1\r\n", b"a: b\r\n" * 128, id="headers"),
        pytest.param(b"GET / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n", b"a" * 1024, id="body"),
        pytest.param(
            b"GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", b"1;%s\r\na\r\n" % (b"a" * 999), id="chunks"
        ),
    ],
)
async def test_a_request_without_end_is_cut_off(begin: bytes, more: bytes) -> None:
    async with serving() as probes, connected(probes) as client:
        client.writer.write(begin)
        sending = asyncio.create_task(client.repeat(more))
        await client.closed()
        sending.cancel()
        async with connected(probes) as other:
            assert (await other.answer(GET % b"/healthz")).status == 200


@pytest.mark.parametrize("sent", [b"", b"GET /heal", GET % b"/healthz" + b"GET /", (GET % b"/healthz") * 2])
async def test_a_connection_without_a_complete_answer_for_too_long_is_closed(sent: bytes) -> None:
    async with serving(limits=LIMITS._replace(seconds=0.1)) as probes, connected(probes) as client:
        client.writer.write(sent)
        assert (await client.closed()).count(b"ok\n") in (sent.count(b"healthz"), 0)


async def test_a_client_that_drips_its_request_is_closed() -> None:
    async with serving(limits=LIMITS._replace(seconds=0.2)) as probes, connected(probes) as client:
        client.writer.write(b"GET /healthz HTTP/1.1\r\n")
        dripping = asyncio.create_task(client.repeat(b"a: b\r\n", pause=0.02))
        assert await client.closed() == b""
        dripping.cancel()


async def test_a_client_that_does_not_read_is_closed() -> None:
    async with (
        serving(metrics=b"a" * 2**26, limits=LIMITS._replace(seconds=0.2)) as probes,
        connected(probes) as client,
    ):
        client.writer.write(GET % b"/metrics")
        await client.reader.readexactly(1)
        async with connected(probes) as other:
            assert (await other.answer(GET % b"/healthz")).status == 200
        while probes.connections:  # noqa: ASYNC110  the server sends no notification
            await asyncio.sleep(0.01)
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await client.reader.readexactly(2**26)


async def test_of_too_many_connections_the_oldest_is_closed() -> None:
    async with serving(limits=LIMITS._replace(connections=3)) as probes, contextlib.AsyncExitStack() as open_ones:
        first, second, third = [await open_ones.enter_async_context(connected(probes)) for _ in range(3)]
        for client in (second, third, first):
            assert (await client.answer(GET % b"/healthz")).status == 200
        newest = await open_ones.enter_async_context(connected(probes))
        assert await second.closed() == b""
        for client in (newest, first, third):
            assert (await client.answer(GET % b"/healthz")).status == 200


async def test_what_is_not_http_is_refused_and_fills_no_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with serving() as probes:
        for sent in (
            b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n",
            b"CONNECT a:1 HTTP/1.1\r\n\r\n",
            b"GET  HTTP/1.1\r\n\r\n",
        ):
            async with connected(probes) as client:
                client.writer.write(sent)
                assert (await client.closed()).startswith(b"HTTP/1.1 400 ")
    assert [record for record in caplog.records if record.name != "asyncio"] == []


# --- the end ----------------------------------------------------------------------------------------------------------


async def test_the_end_does_not_wait_for_idle_connections() -> None:
    async with contextlib.AsyncExitStack() as open_ones:
        async with serving() as probes:
            idle, silent, half = [await open_ones.enter_async_context(connected(probes)) for _ in range(3)]
            half.writer.write(b"GET /heal")
            assert (await idle.answer(GET % b"/healthz")).status == 200
            began = asyncio.get_running_loop().time()
        assert asyncio.get_running_loop().time() - began < probes_module.STOP_SECONDS
        for client in (idle, silent, half):
            assert await client.closed() == b""
        with pytest.raises(ConnectionError):
            await asyncio.open_connection("127.0.0.1", probes.port)


async def test_an_answer_that_is_being_sent_ends_before_the_server_does() -> None:
    async with contextlib.AsyncExitStack() as open_ones:
        async with serving(metrics=b"a" * 2**24) as probes:
            client = await open_ones.enter_async_context(connected(probes))
            client.writer.write(GET % b"/metrics")
            head = await client.reader.readuntil(b"\r\n\r\n")
            reading = asyncio.create_task(client.reader.readexactly(2**24))
        assert b" 200 OK" in head
        assert len(await reading) == 2**24


async def test_a_client_that_does_not_read_delays_the_end_by_a_second_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes_module, "STOP_SECONDS", 0.2)
    async with contextlib.AsyncExitStack() as open_ones:
        async with serving(metrics=b"a" * 2**26) as probes:
            client = await open_ones.enter_async_context(connected(probes))
            client.writer.write(GET % b"/metrics")
            await client.reader.readexactly(1)
            began = asyncio.get_running_loop().time()
        assert asyncio.get_running_loop().time() - began < PATIENCE / 2
