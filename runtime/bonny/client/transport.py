"""Transport: bytes to and from one server over HTTP/1.1. It knows nothing of Kubernetes.

Three methods, and nothing else of aiohttp is used elsewhere: another transport can take this file's place.

Traps that this file is about, each tried:
- a session limits its connections (100 by default) and counts watches: they have a session without limit of their own;
- `trust_env` asks netrc and the proxy table in a thread for every request: the proxy is decided once, by the caller;
- lines are limited by the reader's buffer: chunks are handed on as they come;
- certificates change on disk: the TLS context is rebuilt when the files did, for new connections only.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import aiohttp
from yarl import URL

from .config import Connection
from .errors import AnswerTooLarge, Unreachable

__all__ = ["Answer", "StreamAnswer", "Transport"]

CONNECT_SECONDS: Final = 10.0
# A half-open connection is found after 30 + 3 * 10 s; a watch has its own deadline besides.
KEEPALIVE_IDLE: Final = 30
KEEPALIVE_INTERVAL: Final = 10
KEEPALIVE_COUNT: Final = 3


@dataclass(frozen=True, slots=True)
class Answer:
    """A complete answer. Header names are lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class StreamAnswer:
    """The head of an answer whose body is still coming; `chunks` ends with the body."""

    status: int
    headers: Mapping[str, str]
    chunks: AsyncIterator[bytes]


class Transport:
    """Connections to one server. Create it within a running event loop."""

    def __init__(self, *, user_agent: str) -> None:
        # The server pretty-prints for the User-Agents of curl and browsers; and its logs should say who asks.
        self._headers = {"User-Agent": user_agent, "Accept": "application/json"}
        self._requests = self._session()
        self._streams = self._session()
        self._tls: tuple[tuple[object, ...], ssl.SSLContext] | None = None

    async def request(
        self,
        connection: Connection,
        method: str,
        target: str,
        *,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float,
        limit_bytes: int | None = None,
    ) -> Answer:
        """Send one request and read its whole answer within `timeout` seconds. `target` is an encoded path and query.

        Raises: `Unreachable`; `AnswerTooLarge` when the answer has more than `limit_bytes`.
        """
        limit = aiohttp.ClientTimeout(total=timeout, sock_connect=min(CONNECT_SECONDS, timeout))
        try:
            async with self._requests.request(
                method, **self._arguments(connection, target, headers), data=body, timeout=limit
            ) as response:
                read = await (response.read() if limit_bytes is None else _bounded(response, limit_bytes))
                return Answer(response.status, _lower(response.headers), read)
        except (TimeoutError, aiohttp.ClientError, OSError, ValueError) as error:
            raise Unreachable(_sentence(connection, error, timeout)) from error

    @asynccontextmanager
    async def stream(
        self,
        connection: Connection,
        target: str,
        *,
        headers: Mapping[str, str] | None = None,
        read_timeout: float,
    ) -> AsyncIterator[StreamAnswer]:
        """GET `target` and hand on its body as it comes; `read_timeout` is the longest silence, in seconds.

        Raises: `Unreachable`, also while reading; `TimeoutError` when the silence lasted longer.
        """
        limit = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=read_timeout)
        try:
            async with self._streams.get(**self._arguments(connection, target, headers), timeout=limit) as response:
                yield StreamAnswer(response.status, _lower(response.headers), response.content.iter_any())
        except aiohttp.SocketTimeoutError as error:
            raise TimeoutError(f"{connection.server} was silent for {read_timeout:.0f} s") from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise Unreachable(_sentence(connection, error, CONNECT_SECONDS)) from error

    async def close(self) -> None:
        """Close every connection; requests under way fail."""
        await self._requests.close()
        await self._streams.close()

    def _session(self) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, socket_factory=_keepalive_socket, ttl_dns_cache=10),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=self._headers,
            trust_env=False,
        )

    def _arguments(self, connection: Connection, target: str, headers: Mapping[str, str] | None) -> dict[str, Any]:
        sent = dict(headers or {})
        if connection.authorization is not None:
            sent["Authorization"] = connection.authorization
        return {
            "url": URL(connection.server + target, encoded=True),
            "headers": sent,
            "ssl": self._context(connection),
            "server_hostname": connection.server_name,
            "proxy": connection.proxy,
            "allow_redirects": False,
        }

    def _context(self, connection: Connection) -> ssl.SSLContext | bool:
        if not connection.server.startswith("https:"):
            return True
        files = (connection.ca_file, connection.cert_file, connection.key_file)
        stamp = (*files, connection.verify, *(Path(file).stat().st_mtime_ns for file in files if file))
        if self._tls is None or self._tls[0] != stamp:
            self._tls = (stamp, _tls_context(connection))
        return self._tls[1]


async def _bounded(response: aiohttp.ClientResponse, limit: int) -> bytes:
    """The body, unless it has more than `limit` bytes. Raises: `AnswerTooLarge`."""
    parts: list[bytes] = []
    size = 0
    async for part in response.content.iter_any():
        parts.append(part)
        size += len(part)
        if size > limit:
            raise AnswerTooLarge(f"the answer to {response.method} {response.url.path} has more than {limit} bytes")
    return b"".join(parts)


def _tls_context(connection: Connection) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=connection.ca_file)
    if not connection.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if connection.cert_file:
        context.load_cert_chain(connection.cert_file, connection.key_file)
    return context


def _keepalive_socket(address: tuple[Any, ...]) -> socket.socket:
    """A socket on which a dead peer is noticed."""
    family, kind, protocol, _, _ = address
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    # macOS calls the first of them TCP_KEEPALIVE.
    idle = getattr(socket, "TCP_KEEPIDLE", None) or getattr(socket, "TCP_KEEPALIVE", None)
    for option, value in (
        (idle, KEEPALIVE_IDLE),
        (getattr(socket, "TCP_KEEPINTVL", None), KEEPALIVE_INTERVAL),
        (getattr(socket, "TCP_KEEPCNT", None), KEEPALIVE_COUNT),
    ):
        if option is not None:
            made.setsockopt(socket.IPPROTO_TCP, option, value)
    return made


def _lower(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _sentence(connection: Connection, error: BaseException, timeout: float) -> str:
    """What happened, without headers: they hold the token."""
    if isinstance(error, aiohttp.ClientResponseError):
        # Its text has the URL of the proxy, with its password.
        return f"{connection.server} cannot be reached: {error.status} {error.message}"
    if isinstance(error, asyncio.TimeoutError):
        return f"{connection.server} did not answer within {timeout:.0f} s"
    return f"{connection.server} cannot be reached: {str(error) or type(error).__name__}"
