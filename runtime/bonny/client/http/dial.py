"""Dial: makes a connection along a route: the socket, TLS to the proxy, the tunnel, TLS to the server. A pool keeps it
for later requests.

Each step starts from a plain socket, so that it can be closed at once when a request is cancelled. TLS that asyncio
opens together with the socket waits half a minute for the peer's farewell.
"""

from __future__ import annotations

import asyncio
import base64
import socket
import ssl
from contextlib import suppress
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit

from ...carried import load
from ..clock import clock
from .connection import HttpConnection

PORTS: Final = {"http": 80, "https": 443}
# A half-open connection is found after 30 + 3 * 10 s. macOS has another name for the first one.
KEEPALIVE: Final = {"TCP_KEEPIDLE": 30, "TCP_KEEPALIVE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}
# One of several addresses may lead nowhere. Each but the last has this time to connect.
NEXT_ADDRESS_SECONDS: Final = 1.0
# A write that crosses the close of an idle connection fails. HAProxy, as distributions configure it, closes after 10 s.
IDLE_SECONDS: Final = 5.0


class Address(NamedTuple):
    """The parts of a URL."""

    encrypted: bool
    host: str
    port: int
    authority: str
    """Host and port as they are written in a Host header."""

    path: str
    authorization: str | None
    """The user and password of the URL, as a header has them."""


class Route(NamedTuple):
    """A way to a server. Connections along equal routes are interchangeable."""

    server: Address
    proxy: Address | None
    context: ssl.SSLContext | None
    """For TLS to the server and to the proxy; None when neither speaks it."""

    server_name: str
    """The name in the server's certificate."""


@lru_cache(maxsize=64)
def address_of(url: str) -> Address:
    """The parts of `url`. Raises: `ValueError`, which does not quote it: it may hold a password."""
    with suppress(ValueError):
        parts = urlsplit(url)
        if parts.scheme in PORTS and parts.hostname and parts.port != 0:
            host, encrypted, port = parts.hostname, parts.scheme == "https", parts.port or PORTS[parts.scheme]
            written = f"[{host}]" if ":" in host else host
            authority = written if port == PORTS[parts.scheme] else f"{written}:{port}"
            user = f"{unquote(parts.username)}:{unquote(parts.password or '')}" if parts.username is not None else None
            basic = f"Basic {base64.b64encode(user.encode()).decode()}" if user is not None else None
            return Address(encrypted, host, port, authority, parts.path.rstrip("/"), basic)
    raise ValueError("its URL, or the URL of the proxy, is not valid")


async def dial(route: Route, buffer: memoryview, *, ends: float) -> HttpConnection:
    """A new connection. Raises: `OSError`. A proxy is not waited for after `ends`; cancel the rest then."""
    connection, context = HttpConnection(buffer), route.context
    try:
        first = route.proxy or route.server
        try:
            made = await _connected(first)
        except OSError as error:
            raise OSError(f"{error} ({first.authority})") from error
        await asyncio.get_running_loop().create_connection(lambda: connection, sock=made)
        if route.proxy is not None and route.proxy.encrypted and context is not None:
            await connection.encrypt(context, route.proxy.host)
        if route.server.encrypted and context is not None:
            if route.proxy is not None:
                await load("proxy", what="a tunnel").open_tunnel(connection, route.server, route.proxy, ends)
            await connection.encrypt(context, route.server_name)
    except BaseException:
        connection.abort()
        raise
    return connection


async def _connected(address: Address) -> socket.socket:
    """A connected socket with TCP keep-alive, which detects a dead peer. Raises: `OSError`, of the last address."""
    loop = asyncio.get_running_loop()
    try:
        found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except socket.gaierror:  # a name, which is asked for in a thread
        found = await loop.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    for number, (family, kind, protocol, _, ip) in enumerate(found, 1):
        made = socket.socket(family, kind, protocol)
        try:
            made.setblocking(False)
            made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for option, value in KEEPALIVE.items():
                if hasattr(socket, option):
                    made.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
            async with asyncio.timeout(NEXT_ADDRESS_SECONDS if number < len(found) else None):
                await loop.sock_connect(made, ip)
        except BaseException as error:
            made.close()
            if not isinstance(error, OSError) or number == len(found):
                raise
        else:
            return made
    raise OSError("it has no address")


class Pool:
    """Idle connections. The one that was used last is used first, so that the others are closed."""

    def __init__(self) -> None:
        self._idle: list[tuple[float, Route, HttpConnection]] = []
        self._timer: asyncio.TimerHandle | None = None

    def take(self, route: Route) -> HttpConnection | None:
        """An open connection along `route`, which leaves the pool; None when there is none."""
        self._close_old()
        for index in reversed(range(len(self._idle))):
            _, way, connection = self._idle[index]
            if way == route and connection.error is None:
                del self._idle[index]
                return connection
        return None

    def give_back(self, route: Route, connection: HttpConnection) -> None:
        """Keep `connection` for a later request, or close it if it cannot serve one."""
        if connection.rest():
            self._idle.append((clock(), route, connection))
            self._timer = self._timer or asyncio.get_running_loop().call_later(IDLE_SECONDS, self._on_timer)

    def _on_timer(self) -> None:
        """After a burst no request may come that would look for old connections."""
        self._close_old()
        self._timer = asyncio.get_running_loop().call_later(IDLE_SECONDS, self._on_timer) if self._idle else None

    def _close_old(self) -> None:
        oldest = clock() - IDLE_SECONDS
        while self._idle and self._idle[0][0] <= oldest:
            self._idle.pop(0)[2].abort()
