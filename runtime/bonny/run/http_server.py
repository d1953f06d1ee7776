"""HTTP server: answers requests with an ASGI app, on the event loop of the operator.

You need it for paths that other programs ask for (`run.probes`). uvicorn reads requests and writes answers; its own
server is not used, because the process has the loop, the signals and the log. A client can take little: a request has a
largest size, an answer has a deadline, and for a connection too many the oldest one is closed.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, MutableMapping
from functools import partial
from operator import attrgetter
from typing import Any, Final, TypeAlias

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

# The kubelet and Prometheus send less than 1 KiB.
REQUEST_BYTES: Final = 16 * 1024
# From one answer to the next, so that Prometheus keeps its connection between two scrapes.
ANSWER_SECONDS: Final = 75
CONNECTIONS: Final = 100
# For answers that are being sent when the server stops.
STOP_SECONDS: Final = 1.0

Message: TypeAlias = MutableMapping[str, Any]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Message, Callable[[], Awaitable[Message]], Send], Awaitable[None]]


class _Connection(HttpToolsProtocol):
    """A connection that is aborted when a request is too large, or no answer was complete for too long."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        super().connection_made(transport)
        self.closed = self.loop.create_future()
        self._expect_answer()
        if len(self.connections) > CONNECTIONS:
            oldest: Any = min(self.connections, key=attrgetter("since"))
            oldest.transport.abort()

    def _expect_answer(self) -> None:
        self._unanswered_bytes = 0
        self.since = time.monotonic()
        self._deadline = self.loop.call_later(ANSWER_SECONDS, self.transport.abort)

    def data_received(self, data: bytes) -> None:
        self._unanswered_bytes += len(data)
        if self._unanswered_bytes > REQUEST_BYTES:
            self.transport.abort()
        else:
            super().data_received(data)

    def on_response_complete(self) -> None:
        self._deadline.cancel()
        self._expect_answer()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._deadline.cancel()
        self.closed.set_result(None)
        super().connection_lost(exc)


class HttpServer:
    """Serves `app`. After `start`, `port` is the port that it listens on."""

    def __init__(self, app: App, host: str, port: int) -> None:
        self.port = port
        self._host = host
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
            timeout_keep_alive=ANSWER_SECONDS,
        )
        self._state = ServerState()

    async def start(self) -> None:
        """Raises: `OSError` when the address is not free, or not of this machine."""
        connect = partial(_Connection, self._config, self._state, app_state={})
        self._server = await asyncio.get_running_loop().create_server(connect, self._host, self.port)
        self.port = self._server.sockets[0].getsockname()[1]

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
