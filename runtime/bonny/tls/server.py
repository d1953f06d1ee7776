"""Server: an HTTP server that answers by TLS, with the certificate that `serving` swaps while it runs."""

from __future__ import annotations

import asyncio
import os
import socket
from contextlib import suppress
from ssl import SSLContext
from typing import Any, Final

from .http_server import App, HttpServer, ServerOptions

# The API server waits as long.
HANDSHAKE_SECONDS: Final = 10.0


class _Handshake(asyncio.Protocol):
    """A connection that was accepted, until its TLS handshake has ended: asyncio's own server does not count those."""

    def __init__(self, server: TlsServer) -> None:
        self._server = server

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        try:
            self._server.shake_hands(socket.socket(fileno=os.dup(transport.get_extra_info("socket").fileno())))
        finally:
            transport.abort()  # type: ignore[attr-defined]  # closes only its own descriptor


class TlsServer(HttpServer):
    """Serves `app` by TLS with `context`."""

    def __init__(self, app: App, host: str, port: int, options: ServerOptions, *, context: SSLContext) -> None:
        super().__init__(app, host, port, options)
        self._context = context
        self._handshakes: dict[asyncio.Task[Any], None] = {}

    def _accept(self) -> asyncio.Protocol:
        return _Handshake(self)

    def shake_hands(self, accepted: socket.socket) -> None:
        """Serve this connection by TLS. Of more handshakes than connections are allowed, the oldest one is given up."""
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
                self._connect, accepted, ssl=self._context, ssl_handshake_timeout=HANDSHAKE_SECONDS
            )

    def drain(self) -> None:
        """Close each connection after its next answer, and say so in it. New connections are still accepted."""
        self._state.default_headers = [(b"connection", b"close")]

    async def stop(self) -> None:
        """As `HttpServer.stop`; handshakes are given up."""
        for handshake in self._handshakes:
            handshake.cancel()
        await super().stop()
