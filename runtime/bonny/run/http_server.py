"""HTTP server: answers requests with an ASGI app, on the event loop of the operator.

You need it for paths that other programs ask for: probes (`run.probes`) and webhooks. uvicorn reads requests and writes
answers; its own server is not used, because the process has the loop, the signals and the log. A client can take
little: `Limits`.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from functools import partial
from ssl import SSLContext
from typing import Any, Final, TypeAlias

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from ..errors import UsageError

# Request line and headers, and what frames the chunks of a body. API servers and Prometheus send less than 2 KiB.
HEAD_BYTES: Final = 16 * 1024
# For answers that are being sent when the server stops.
STOP_SECONDS: Final = 1.0
# The time to read the answer 413. A connection that is closed before loses it.
REFUSED_SECONDS: Final = 5.0
TOO_LARGE: Final = (
    b"HTTP/1.1 413 Content Too Large\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: 22\r\n"
    b"connection: close\r\n\r\n413: Content Too Large"
)

Message: TypeAlias = MutableMapping[str, Any]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Message, Callable[[], Awaitable[Message]], Send], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of one server's clients. Times are seconds; a connection that exceeds one is aborted."""

    body_bytes: int
    """The body of a request. A larger one is answered with 413."""

    answer: float
    """From the accept, or from one answer, to the end of the next answer."""

    request: float
    """From the first byte of a request to the end of its answer."""

    handshake: float
    """From the accept to the end of the TLS handshake."""

    connections: int
    """Connections at a time. For one too many the oldest one is aborted that answers no request, if there is one."""


# Prometheus keeps its connection between two scrapes; it and the kubelet send no bodies.
PROBES: Final = Limits(body_bytes=HEAD_BYTES, answer=75, request=75, handshake=10, connections=100)
# An API server waits 10 s for a handshake and 30 s for an answer; a review has 3 MiB at most, twice. It uses a
# connection that was idle for up to 90 s, and a write fails whose connection is closed at that moment.
WEBHOOKS: Final = Limits(body_bytes=7 * 2**20, answer=150, request=35, handshake=10, connections=500)


class _Connection(HttpToolsProtocol):
    """A connection with limits."""

    def __init__(self, limits: Limits, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._limits = limits
        self._refused = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        others: list[Any] = list(self.connections)
        super().connection_made(transport)
        self.closed = self.loop.create_future()
        self._expect_request()
        if len(others) >= self._limits.connections:
            min(others, key=lambda other: (other.answering, other.since)).transport.abort()

    @property
    def answering(self) -> bool:
        """Whether the head of a request was read, and its answer is not complete."""
        cycle: Any = self.cycle
        return cycle is not None and not cycle.response_complete

    def _expect_request(self) -> None:
        self._head_bytes = self._body_bytes = 0
        self.since = time.monotonic()
        self._deadline = self.loop.call_later(self._limits.answer, self.transport.abort)

    def _abort_within(self, seconds: float) -> None:
        ends = min(self._deadline.when(), self.loop.time() + seconds)
        self._deadline.cancel()
        self._deadline = self.loop.call_at(ends, self.transport.abort)

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        if not self._head_bytes:
            self._abort_within(self._limits.request)
        self._head_bytes += len(data)
        super().data_received(data)
        too_large = self._body_bytes > self._limits.body_bytes
        if too_large and not (self.pipeline or self.cycle.response_started):
            self._refuse()
        elif too_large or self._head_bytes > HEAD_BYTES:
            self.transport.abort()

    def on_body(self, body: bytes) -> None:
        self._head_bytes -= len(body)
        self._body_bytes += len(body)
        super().on_body(body)

    def _refuse(self) -> None:
        """Answer 413, and read and drop the rest of the request: a client that is still sending reads no answer."""
        self._refused = self.cycle.disconnected = True
        self.cycle.message_event.set()
        self.flow.resume_reading()
        self.transport.write(TOO_LARGE)
        self._abort_within(REFUSED_SECONDS)

    def on_response_complete(self) -> None:
        self._deadline.cancel()
        self._expect_request()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._deadline.cancel()
        self.closed.set_result(None)
        super().connection_lost(exc)


class HttpServer:
    """Serves `app`, by TLS if there is a `context`. After `start`, `port` is the port that it listens on.

    `purpose` and `variable` name the server, and the environment variable of its port, in messages.
    """

    def __init__(
        self,
        app: App,
        host: str,
        port: int,
        *,
        limits: Limits,
        context: SSLContext | None = None,
        purpose: str,
        variable: str,
    ) -> None:
        self.port = port
        self._host = host
        self._limits = limits
        self._context = context
        self._purpose, self._variable = purpose, variable
        self._config = Config(
            app,
            http=_Connection,
            ws="none",
            lifespan="off",
            interface="asgi3",
            proxy_headers=False,
            log_config=None,
            # A warning for each request that is not HTTP would let anyone fill the log.
            log_level=logging.ERROR,
            access_log=False,
            timeout_keep_alive=math.ceil(limits.answer),
        )
        self._state = ServerState()

    async def start(self) -> None:
        """Raises: `UsageError` when the address is not free, or not of this machine."""
        connect = partial(_Connection, self._limits, self._config, self._state, app_state={})
        tls: dict[str, Any] = {}
        if self._context is not None:
            tls = {"ssl": self._context, "ssl_handshake_timeout": self._limits.handshake}
        try:
            self._server = await asyncio.get_running_loop().create_server(connect, self._host, self.port, **tls)
        except OSError as error:
            raise UsageError(
                f"port {self.port} for {self._purpose} is not free ({error.strerror or error}): "
                f"set {self._variable} to another port, or to 0 for any free one"
            ) from error
        self.port = self._server.sockets[0].getsockname()[1]

    def drain(self) -> None:
        """Close each connection after its next answer, and say so in it. New connections are still accepted."""
        self._state.default_headers = [(b"connection", b"close")]

    async def stop(self) -> None:
        """Accept no connection, let answers that are being sent end within a second, and close the rest."""
        self._server.close()
        connections: list[Any] = list(self._state.connections)
        for connection in connections:
            connection.shutdown()
        if connections:
            await asyncio.wait([connection.closed for connection in connections], timeout=STOP_SECONDS)
        for connection in self._state.connections:
            connection.transport.abort()
