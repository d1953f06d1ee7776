"""HTTP server: answers requests with an ASGI app, on the event loop of the operator.

You need it for requests with bodies, and with TLS (`server`). uvicorn reads requests and writes answers; its own server
is not used, because the process has the loop, the signals and the log. A client can take little: `ServerOptions`.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, Final, TypeAlias

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from ..run.probes import Answer, headers_of, port_error

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
    """All requests without an answer. Beyond, the oldest incomplete ones are aborted, else the one that grows."""

    connections: int
    """Connections at a time. For one too many the oldest one is aborted, first of all one that answers no request."""


async def respond(send: Send, answer: Answer) -> None:
    """Send an answer with the headers that belong to it."""
    headers = [(name.encode(), value.encode()) for name, value in headers_of(answer).items()]
    await send({"type": "http.response.start", "status": answer[0], "headers": headers})
    await send({"type": "http.response.body", "body": answer[1]})


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


class HttpServer:
    """Serves `app`. After `start`, `port` is the port that it listens on."""

    def __init__(self, app: App, host: str, port: int, options: ServerOptions) -> None:
        self.port = port
        self._host = host
        self._options = options
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
        self._connect: Callable[[], asyncio.Protocol] = partial(
            _Connection, options, self._config, self._state, app_state={}
        )

    async def start(self) -> None:
        """Raises: `UsageError` when the address is not free, or not of this machine."""
        try:
            self._server = await asyncio.get_running_loop().create_server(self._accept, self._host, self.port)
        except OSError as error:
            raise port_error(self.port, self._options.purpose, self._options.variable, error) from error
        self.port = self._server.sockets[0].getsockname()[1]

    def _accept(self) -> asyncio.Protocol:
        """The protocol that serves the next connection."""
        return self._connect()

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
