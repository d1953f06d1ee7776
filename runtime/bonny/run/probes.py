"""Probes: the server of /healthz, /readyz and /metrics. The body of a probe gives the reasons (`run.health`).

The C parser of httptools (llhttp) reads the requests, as it reads the answers of the API server. A client can take
little: `Limits`. Servers with request bodies and TLS are extras and have another one (`bonny.tls.http_server`).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Mapping
from email.utils import formatdate
from http import HTTPStatus
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser, parse_url

from ..errors import UsageError

# For answers that are being sent when the server stops.
STOP_SECONDS: Final = 1.0
TEXT: Final = "text/plain; charset=utf-8"
# RFC 9110, 15.5: headers that belong to a status.
HEADERS: Final = {
    HTTPStatus.METHOD_NOT_ALLOWED: {"allow": "GET, HEAD"},
    HTTPStatus.UNAUTHORIZED: {"www-authenticate": "Bearer"},
}
NOT_HTTP: Final = b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"

Answer: TypeAlias = tuple[HTTPStatus, bytes, str]
"""Status, body and content type."""

Metrics: TypeAlias = Callable[[str], tuple[bytes, str]]
"""Text and content type for the Accept header of a request."""

log = logging.getLogger("bonny.run.probes")


class Limits(NamedTuple):
    """The limits of clients. A connection that exceeds one is aborted."""

    request_bytes: int = 16 * 2**10
    """One request, with its headers and its body. Bytes after its answer count as the next one. Prometheus and the
    kubelet send less than 2 KiB."""

    seconds: float = 75.0
    """From the accept, or from one answer, to the end of the next answer. Prometheus keeps its connection between two
    scrapes."""

    connections: int = 100
    """Connections at a time. One too many aborts the oldest, first of all one that answers no request."""


LIMITS: Final = Limits()


class Report(NamedTuple):
    """The answer to one probe: whether it is green, and lines with the reasons."""

    ok: bool
    lines: tuple[str, ...]


class Request(NamedTuple):
    """A request without a body. Names of headers are in lower case."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]


class Answers(Protocol):
    """The answers of a server."""

    def answer(self, request: Request) -> Answer:
        """Answer one request."""


class Pages:
    """The answers of the probes in `reports`, by path, and of /metrics, if there are any."""

    def __init__(self, reports: Mapping[str, Callable[[], Report]], metrics: Metrics | None) -> None:
        self._reports = reports
        self.metrics = metrics

    def answer(self, request: Request) -> Answer:
        """Answer one request."""
        metrics = self.metrics if request.path == "/metrics" else None
        if metrics is None and request.path not in self._reports:
            return HTTPStatus.NOT_FOUND, b"404: Not Found", TEXT
        if request.method not in {"GET", "HEAD"}:
            return HTTPStatus.METHOD_NOT_ALLOWED, b"405: Method Not Allowed", TEXT
        if metrics is not None:
            return HTTPStatus.OK, *metrics(request.headers.get("accept", ""))
        report = self._reports[request.path]()
        lines = "ok" if report.ok else "not ok", *report.lines, ""
        return (HTTPStatus.OK if report.ok else HTTPStatus.SERVICE_UNAVAILABLE), "\n".join(lines).encode(), TEXT


def headers_of(answer: Answer) -> dict[str, str]:
    """The headers of an answer."""
    status, body, content_type = answer
    headers = {"content-type": content_type, "content-length": str(len(body)), "date": formatdate(usegmt=True)}
    return headers | HEADERS.get(status, {})


class _Connection:
    """One connection, and the complete requests that were read from it; the parser calls the `on_` methods."""

    def __init__(self, transport: asyncio.WriteTransport) -> None:
        self.transport = transport
        self.requests: deque[Request] = deque()
        self.received = 0
        """Bytes since the last answer."""

        self.since = time.monotonic()
        """The accept, or the last answer."""

        self.answering = self.last = False
        """`last`: no request follows the ones that were read."""

        self._parser = HttpRequestParser(self)

    def feed(self, data: bytes, *, limit: int) -> None:
        """Raises: `EOFError` at the end and beyond the limit, `HttpParserError` for data that are not HTTP."""
        self.received += len(data)
        if not data or self.received > limit:
            raise EOFError
        try:
            self._parser.feed_data(data)
        except HttpParserUpgrade:  # it is answered in HTTP
            self.last = True

    def on_message_begin(self) -> None:
        self._url = b""
        self._headers: dict[str, str] = {}

    def on_url(self, part: bytes) -> None:
        self._url += part

    def on_header(self, name: bytes, value: bytes) -> None:
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        self._headers[key] = ",".join(filter(None, (self._headers.get(key), text)))

    def on_message_complete(self) -> None:
        url, method = parse_url(self._url), self._parser.get_method().decode()
        path, query = ((part or b"").decode("latin-1") for part in (url.path, url.query))
        self.requests.append(Request(method, path, query, self._headers))
        self.last = not self._parser.should_keep_alive()

    def answer(self, pages: Answers) -> bytes:
        """The answer to the next request."""
        self.answering = True
        request = self.requests.popleft()
        try:
            answer = pages.answer(request)
        except Exception:
            log.exception("a probe failed", extra={"path": request.path})
            answer = HTTPStatus.INTERNAL_SERVER_ERROR, b"500: Internal Server Error", TEXT
        close = {"connection": "close"} if self.last and not self.requests else {}
        lines = [f"{name}: {value}" for name, value in (headers_of(answer) | close).items()]
        head = "\r\n".join((f"HTTP/1.1 {answer[0].value} {answer[0].phrase}", *lines, "", ""))
        return head.encode() + (b"" if request.method == "HEAD" else answer[1])

    def answered(self) -> None:
        self.answering, self.received, self.since = False, 0, time.monotonic()


class Probes:
    """Serves `pages`. After `start`, `port` is the port that it listens on."""

    purpose, variable = "the probes", "BONNY_HTTP_PORT"
    """What it serves, and the environment variable of its port, for messages."""

    def __init__(self, pages: Answers, host: str, port: int, limits: Limits = LIMITS) -> None:
        self.port = port
        self.connections: dict[asyncio.Task[None], _Connection] = {}
        self._pages, self._host, self._limits = pages, host, limits

    async def start(self) -> None:
        """Raises: `UsageError` when the address is not free, or not of this machine."""
        try:
            self._server = await asyncio.start_server(self._serve, self._host, self.port)
        except OSError as error:
            raise port_error(self.port, self.purpose, self.variable, error) from error
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Accept no connection, let answers that are being sent end within a second, and close the rest."""
        self._server.close()
        for each in self.connections.values():
            if not each.answering:
                each.transport.abort()
        if self.connections:
            await asyncio.wait(list(self.connections), timeout=STOP_SECONDS)
        for each in self.connections.values():
            each.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection until it ends or exceeds a limit."""
        if len(self.connections) >= self._limits.connections:
            oldest = min(self.connections.items(), key=lambda item: (item[1].answering, item[1].since))
            self.connections.pop(oldest[0]).transport.abort()
        connection, limits = _Connection(writer.transport), self._limits
        task: Any = asyncio.current_task()
        self.connections[task] = connection
        # With it, `drain` waits until the answer has left this process.
        writer.transport.set_write_buffer_limits(0)
        try:
            while (connection.requests or not connection.last) and self._server.is_serving():
                async with asyncio.timeout(limits.seconds):
                    while not connection.requests:
                        connection.feed(await reader.read(limits.request_bytes + 1), limit=limits.request_bytes)
                    writer.write(connection.answer(self._pages))
                    await writer.drain()
                connection.answered()
        except HttpParserError:
            writer.write(NOT_HTTP)
        except (OSError, EOFError):
            pass  # the client left, or exceeded a limit: a TimeoutError is an OSError
        finally:
            self.connections.pop(task, None)
            writer.transport.abort()


def port_error(port: int, purpose: str, variable: str, error: OSError) -> UsageError:
    """The error for a port that is not free."""
    return UsageError(
        f"port {port} for {purpose} is not free ({error.strerror or error}): "
        f"set {variable} to another port, or to 0 for any free one"
    )
