"""HTTP server: answers requests with an ASGI app, on the event loop of the operator.

You need it for paths that other programs ask for: probes (`run.probes`) and webhooks. uvicorn reads requests and writes
answers; its own server is not used, because the process has the loop, the signals and the log. A client can take
little: `ServerOptions`.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import socket
import time
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from ssl import SSLContext
from typing import Any, Final, TypeAlias

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from ..errors import UsageError

# For answers that are being sent when the server stops.
STOP_SECONDS: Final = 1.0

Message: TypeAlias = MutableMapping[str, Any]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Message, Callable[[], Awaitable[Message]], Send], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """The purpose of one server, and the limits of its clients. Times are seconds; a connection that exceeds one is
    aborted."""

    purpose: str
    """Its name in messages."""

    variable: str
    """The environment variable of its port."""

    _: KW_ONLY

    request_bytes: int
    """One request, with its headers. Bytes after its answer count as the next one."""

    answer: float
    """From the accept, or from one answer, to the end of the next answer."""

    request: float
    """From the first byte of a request to the end of its answer."""

    unanswered_bytes: int = 16 * 2**20
    """All requests that are not answered, together. Beyond, the oldest ones that are not complete are aborted, and if
    that is not enough, the one that sent more."""

    handshake: float
    """From the accept to the end of the TLS handshake."""

    connections: int
    """Connections at a time, and handshakes. For one too many the oldest one is aborted, first of all one that answers
    no request."""


# Prometheus keeps its connection between two scrapes; it and the kubelet send less than 2 KiB.
PROBES: Final = ServerOptions(
    "the probes", "BONNY_HTTP_PORT", request_bytes=16 * 2**10, answer=75, request=75, handshake=10, connections=100
)
SECURE_METRICS: Final = replace(PROBES, purpose="secure metrics", variable="BONNY_SECURE_METRICS_PORT")
# An API server waits 10 s for a handshake and 30 s for an answer. It uses a connection that was idle for up to 90 s,
# and a write fails whose connection is closed at that moment. The app answers a body of more than 7 MiB with 413: for a
# client to read that, its connection is not aborted before.
WEBHOOKS: Final = ServerOptions(
    "webhooks", "BONNY_WEBHOOK_PORT", request_bytes=8 * 2**20, answer=150, request=35, handshake=10, connections=500
)


class _Connection(HttpToolsProtocol):
    """A connection with limits."""

    def __init__(self, options: ServerOptions, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self._options = options

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        others: list[Any] = list(self.connections)
        super().connection_made(transport)
        self.closed = self.loop.create_future()
        self._expect_request()
        if len(others) >= self._options.connections:
            min(others, key=lambda other: (other.answering, other.since)).transport.abort()

    @property
    def answering(self) -> bool:
        """Whether the head of a request was read, and its answer is not complete."""
        cycle: Any = self.cycle
        return cycle is not None and not cycle.response_complete

    @property
    def received(self) -> int:
        """Bytes of the request in progress."""
        return self._bytes

    def _expect_request(self) -> None:
        self._bytes = 0
        self.since = time.monotonic()
        self._deadline = self.loop.call_later(self._options.answer, self.transport.abort)

    def data_received(self, data: bytes) -> None:
        if not self._bytes:
            ends = min(self._deadline.when(), self.loop.time() + self._options.request)
            self._deadline.cancel()
            self._deadline = self.loop.call_at(ends, self.transport.abort)
        self._bytes += len(data)
        super().data_received(data)
        if self._bytes > self._options.request_bytes:
            self.transport.abort()
        everyone: list[Any] = list(self.connections)
        others = [each for each in everyone if each.received and not each.transport.is_closing()]
        excess = sum(each.received for each in others) - self._options.unanswered_bytes
        incomplete = [each for each in others if not each.answering or each.cycle.more_body]
        for each in sorted(incomplete, key=lambda each: each.since):
            if excess > 0:
                each.transport.abort()
                excess -= each.received
        if excess > 0:
            self.transport.abort()

    def on_response_complete(self) -> None:
        self._deadline.cancel()
        self._expect_request()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._deadline.cancel()
        self.closed.set_result(None)
        super().connection_lost(exc)


class _Handshake(asyncio.Protocol):
    """A connection that was accepted, until its TLS handshake has ended: asyncio's own server does not count those."""

    def __init__(self, server: HttpServer) -> None:
        self._server = server

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        try:
            self._server.shake_hands(socket.socket(fileno=os.dup(transport.get_extra_info("socket").fileno())))
        finally:
            transport.abort()  # type: ignore[attr-defined]  # closes only its own descriptor


class HttpServer:
    """Serves `app`, by TLS if there is a `context`. After `start`, `port` is the port that it listens on."""

    def __init__(
        self, app: App, host: str, port: int, options: ServerOptions, *, context: SSLContext | None = None
    ) -> None:
        self.port = port
        self._host = host
        self._options = options
        self._context = context
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
            timeout_keep_alive=math.ceil(options.answer),
        )
        self._state = ServerState()
        self._connect = partial(_Connection, options, self._config, self._state, app_state={})
        self._handshakes: dict[asyncio.Task[Any], None] = {}

    async def start(self) -> None:
        """Raises: `UsageError` when the address is not free, or not of this machine."""
        factory = self._connect if self._context is None else partial(_Handshake, self)
        try:
            self._server = await asyncio.get_running_loop().create_server(factory, self._host, self.port)
        except OSError as error:
            raise UsageError(
                f"port {self.port} for {self._options.purpose} is not free ({error.strerror or error}): "
                f"set {self._options.variable} to another port, or to 0 for any free one"
            ) from error
        self.port = self._server.sockets[0].getsockname()[1]

    def shake_hands(self, accepted: socket.socket) -> None:
        """Serve this connection by TLS. Of too many handshakes the oldest one is given up."""
        if len(self._handshakes) >= self._options.connections:
            oldest = next(iter(self._handshakes))
            del self._handshakes[oldest]
            oldest.cancel()
        task = asyncio.get_running_loop().create_task(self._shake(accepted))
        self._handshakes[task] = None
        task.add_done_callback(lambda done: self._handshakes.pop(done, None))

    async def _shake(self, accepted: socket.socket) -> None:
        with suppress(OSError):
            await asyncio.get_running_loop().connect_accepted_socket(
                self._connect, accepted, ssl=self._context, ssl_handshake_timeout=self._options.handshake
            )

    def drain(self) -> None:
        """Close each connection after its next answer, and say so in it. New connections are still accepted."""
        self._state.default_headers = [(b"connection", b"close")]

    async def stop(self) -> None:
        """Accept no connection, let answers that are being sent end within a second, and close the rest."""
        self._server.close()
        for handshake in self._handshakes:
            handshake.cancel()
        connections: list[Any] = list(self._state.connections)
        for connection in connections:
            connection.shutdown()
        if connections:
            await asyncio.wait([connection.closed for connection in connections], timeout=STOP_SECONDS)
        for connection in self._state.connections:
            connection.transport.abort()
