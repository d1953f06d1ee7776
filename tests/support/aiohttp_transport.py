"""Transport on aiohttp: the reference that the runtime's own is compared with in `tests/conformance`.

Properties of aiohttp that this file works around, each tried:
- a session limits its connections (100 by default) and counts watches: these have a session without a limit;
- `trust_env` reads netrc and the proxy table in a thread for every request: the caller chooses the proxy once;
- lines are limited by the reader's buffer: chunks are passed on as they come;
- PUT and DELETE are sent again when the connection broke: here a write is never sent twice;
- closing a session neither wakes pending reads nor gives up on a stuck peer: `close()` does both;
- certificates change on disk: the TLS context is rebuilt when the files change, for new connections only.
"""

from __future__ import annotations

import asyncio
import io
import re
import socket
import ssl
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, Final

import aiohttp
from yarl import URL

from bonny.client.certificates import Certificates
from bonny.client.clock import clock
from bonny.client.config import Connection
from bonny.client.errors import AnswerTooLarge, Unreachable
from bonny.client.transport import Answer, StreamAnswer

__all__ = ["Answer", "StreamAnswer", "Transport"]

CONNECT_SECONDS: Final = 10.0
# A few compressed kilobytes can become gigabytes. An object has 3 MiB at most, and lists have bounds of their own.
LONGEST_ANSWER: Final = 64 * 1024 * 1024
# The longest wait for a peer that does not accept the end of its connection.
CLOSE_SECONDS: Final = 1.0
# A half-open connection is found after 30 + 3 * 10 s; a watch has its own deadline besides.
KEEPALIVE_IDLE: Final = 30
KEEPALIVE_INTERVAL: Final = 10
KEEPALIVE_COUNT: Final = 3
# See `bonny.client.http.dial`; the default of 15 s is too long.
IDLE_SECONDS: Final = 5.0
# As of the runtime's own.
LONGEST_HEAD: Final = 256 * 1024
HEADERS: Final = 10_000
# aiohttp puts this in the middle of its messages: `ssl:<ssl.SSLContext object at 0x7fc5d128ff50>`.
_CONTEXT: Final = re.compile(r" ssl:(?:<[^>]*>|\w+)")
# Their texts quote the URL of the proxy, with its password.
QUOTING: Final = (aiohttp.ClientResponseError, aiohttp.InvalidURL)


class Transport:
    """Connections to one server. Create it within a running event loop."""

    def __init__(self, *, user_agent: str) -> None:
        # The server pretty-prints for the User-Agents of curl and browsers; and its logs should show the client.
        self._headers = {"User-Agent": user_agent, "Accept": "application/json"}
        self._requests = self._session()
        self._streams = self._session()
        self._under_way: set[asyncio.Timeout] = set()
        self._closed = False
        self.distrusted_at = float("-inf")
        """The last time when a certificate could not be verified, in monotonic seconds."""

        self._certificates = Certificates()

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

        Does not: follow redirects, keep cookies, or send anything but a GET again when its connection broke.
        Raises: `Unreachable`, also when the transport is closed meanwhile; `AnswerTooLarge` when the answer has more
        than `limit_bytes` (None: `LONGEST_ANSWER`).
        """
        limit = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS)
        with self._translated(connection, timeout):
            async with (
                self._until_closed(timeout),
                self._requests.request(
                    method,
                    **self._arguments(connection, target, headers),
                    # Bytes of more than 1 MiB bring a warning; these are sent piece by piece.
                    data=None if body is None else _Body(body, clock() + timeout),
                    timeout=limit,
                    middlewares=() if method == "GET" else (_never_twice,),
                ) as response,
            ):
                read = await _bounded(response, limit_bytes or LONGEST_ANSWER)
                return Answer(response.status, _lower(response.headers), read)

    @asynccontextmanager
    async def stream(
        self,
        connection: Connection,
        target: str,
        *,
        headers: Mapping[str, str] | None = None,
        read_timeout: float,
    ) -> AsyncIterator[StreamAnswer]:
        """GET `target` and pass on its body as it comes; `read_timeout` is the longest silence, in seconds.

        Guarantees: the connection is closed at the end of the block, unless the body was read completely.
        Raises: `Unreachable`, also while reading; `TimeoutError` after a longer silence.
        """
        limit = aiohttp.ClientTimeout(
            total=None, connect=CONNECT_SECONDS, sock_connect=CONNECT_SECONDS, sock_read=read_timeout
        )
        with self._translated(connection, read_timeout):
            async with self._until_closed(None):
                response = await self._streams.get(**self._arguments(connection, target, headers), timeout=limit)
        chunks = self._chunks(connection, response, read_timeout)
        try:
            yield StreamAnswer(response.status, _lower(response.headers), chunks)
        finally:
            await chunks.aclose()
            if response.connection is not None and response.connection.transport is not None:
                # No TLS farewell: a server that does not answer it would keep the socket open for half a minute.
                response.connection.transport.abort()
            response.close()

    async def close(self) -> None:
        """Close every connection; pending and later requests fail with `Unreachable`."""
        self._closed = True
        for scope in self._under_way:
            if not scope.expired():
                scope.reschedule(0.0)
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                await asyncio.gather(self._requests.close(), self._streams.close())

    @asynccontextmanager
    async def _until_closed(self, seconds: float | None) -> AsyncIterator[None]:
        """Cancel the block after `seconds` (None: never), and when the transport is closed."""
        try:
            if self._closed:
                raise TimeoutError
            async with asyncio.timeout(seconds) as scope:
                self._under_way.add(scope)
                try:
                    yield
                finally:
                    self._under_way.discard(scope)
        except TimeoutError as error:
            if self._closed:
                raise aiohttp.ClientConnectionError("the transport was closed") from error
            raise

    async def _chunks(
        self, connection: Connection, response: aiohttp.ClientResponse, read_timeout: float
    ) -> AsyncGenerator[bytes, None]:
        with self._translated(connection, read_timeout):
            while True:
                async with self._until_closed(None):
                    chunk = await response.content.readany()
                if not chunk:
                    return
                yield chunk

    @contextmanager
    def _translated(self, connection: Connection, timeout: float) -> Iterator[None]:
        """Raise aiohttp's errors as ours."""
        try:
            yield
        except aiohttp.SocketTimeoutError as error:
            raise TimeoutError(f"{connection.server} was silent for {timeout:.0f} s") from error
        except QUOTING as error:
            raise Unreachable(_sentence(connection, error, timeout)) from None
        except (TimeoutError, aiohttp.ClientError, OSError, ValueError) as error:
            if any(isinstance(each, ssl.CertificateError) for each in (error, error.__cause__)):  # a read; a write
                self.distrusted_at = time.monotonic()
            raise Unreachable(_sentence(connection, error, timeout)) from error

    def _session(self) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=0, socket_factory=_keepalive_socket, ttl_dns_cache=10, keepalive_timeout=IDLE_SECONDS
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=self._headers,
            trust_env=False,
            max_field_size=LONGEST_HEAD,
            max_headers=HEADERS,
        )

    def _arguments(self, connection: Connection, target: str, headers: Mapping[str, str] | None) -> dict[str, Any]:
        sent = dict(headers or {})
        if connection.authorization is not None:
            sent["Authorization"] = connection.authorization
        return {
            "url": URL(connection.server + target, encoded=True),
            "headers": sent,
            "ssl": self._certificates.context(connection) if connection.server.startswith("https:") else True,
            "server_hostname": connection.server_name,
            "proxy": connection.proxy,
            "allow_redirects": False,
        }


class _Body(io.BytesIO):
    """A body that is not sent after its deadline: the process or machine may pause just before a request is sent."""

    def __init__(self, data: bytes, ends: float) -> None:
        super().__init__(data)
        self._ends = ends

    def read(self, size: int | None = -1) -> bytes:
        """Raises: `TimeoutError`."""
        if clock() >= self._ends:
            raise TimeoutError
        return super().read(size)


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


async def _never_twice(request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Hide a broken connection from aiohttp, which would send a PUT or DELETE again that may have been carried out."""
    try:
        return await send(request)
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise aiohttp.ClientConnectionError(str(error) or type(error).__name__) from error


def _keepalive_socket(address: tuple[Any, ...]) -> socket.socket:
    """A socket with TCP keep-alive, which detects a dead peer."""
    family, kind, protocol, _, _ = address
    created = socket.socket(family, kind, protocol)
    created.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    # macOS calls the first of them TCP_KEEPALIVE.
    idle = getattr(socket, "TCP_KEEPIDLE", None) or getattr(socket, "TCP_KEEPALIVE", None)
    for option, value in (
        (idle, KEEPALIVE_IDLE),
        (getattr(socket, "TCP_KEEPINTVL", None), KEEPALIVE_INTERVAL),
        (getattr(socket, "TCP_KEEPCNT", None), KEEPALIVE_COUNT),
    ):
        if option is not None:
            created.setsockopt(socket.IPPROTO_TCP, option, value)
    return created


def _lower(headers: Mapping[str, str]) -> dict[str, str]:
    lower: dict[str, str] = {}
    for name, value in headers.items():
        # A repeated header is one list (RFC 9110, section 5.3).
        previous = lower.get(name.lower())
        lower[name.lower()] = value if previous is None else f"{previous}, {value}"
    return lower


def _sentence(connection: Connection, error: BaseException, timeout: float) -> str:
    """A sentence about the error, without headers: they hold the token."""
    if isinstance(error, aiohttp.ClientResponseError):
        return f"{connection.server} cannot be reached: {error.status} {error.message}"
    if isinstance(error, aiohttp.InvalidURL):
        return f"{connection.server} cannot be reached: its URL, or the URL of the proxy, is not valid"
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return f"{connection.server} cannot be reached: no connection within {CONNECT_SECONDS:.0f} s"
    if isinstance(error, TimeoutError):
        return f"{connection.server} did not answer within {timeout:.0f} s"
    text = _CONTEXT.sub("", str(error)) or type(error).__name__
    return f"{connection.server} cannot be reached: {text}"
