"""Transport: bytes to and from one server over HTTP/1.1. It knows nothing of Kubernetes.

Below it, `http` makes connections and reads answers, and `certificates` follows the files of certificates. Another
transport can replace it.

Guarantees: a write is never sent twice. A GET is sent once more when a connection from the pool turns out to be closed.
Number and kind of connections have no limit. Nothing is sent after its deadline.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Final, TypeAlias

from .certificates import Certificates
from .clock import clock
from .config import Connection
from .errors import Unreachable
from .http.answer import BadAnswer, Disconnected
from .http.connection import FOREVER, READ_BYTES, HttpConnection, WireRequest
from .http.dial import Pool, Route, address_of, dial

CONNECT_SECONDS: Final = 10.0
# A few compressed kilobytes can become gigabytes. An object has 3 MiB at most, and lists have bounds of their own.
LONGEST_ANSWER: Final = 64 * 1024 * 1024
CLOSED: Final = "the transport was closed"

Headers: TypeAlias = Mapping[str, str] | None


@dataclass(frozen=True, slots=True)
class Answer:
    """A complete answer. Header names are lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class StreamAnswer:
    """The head of an answer whose body is still arriving; `chunks` ends with the body."""

    status: int
    headers: Mapping[str, str]
    chunks: AsyncIterator[bytes]


class Transport:
    """Connections to one server. Create it within a running event loop."""

    def __init__(self, *, user_agent: str) -> None:
        # The server pretty-prints for the User-Agents of curl and browsers.
        self._headers = {"User-Agent": user_agent, "Accept": "application/json"}
        self._buffer = memoryview(bytearray(READ_BYTES))
        self._certificates = Certificates()
        self._requests = Pool()
        self._streams = Pool()
        self._open: set[HttpConnection] = set()
        self._dialling: set[asyncio.Timeout] = set()
        self._closed = False
        self.distrusted_at = float("-inf")
        """The last time when a certificate could not be verified, in monotonic seconds."""

    async def request(
        self,
        connection: Connection,
        method: str,
        target: str,
        *,
        body: bytes | None = None,
        headers: Headers = None,
        timeout: float,
        limit_bytes: int | None = None,
    ) -> Answer:
        """Send one request and read its whole answer within `timeout` seconds. `target` is an encoded path and query.

        Does not: follow redirects, keep cookies, or send anything but a GET again when its connection broke.
        Raises: `Unreachable`, also when the transport is closed meanwhile; `AnswerTooLarge` when the answer has more
        than `limit_bytes` (None: `LONGEST_ANSWER`).
        """
        ends, limit = clock() + timeout, limit_bytes or LONGEST_ANSWER
        with self._translated(connection, timeout):
            route, request = self._prepared(connection, method, target, headers, body or b"", limit=limit)
            used = await self._exchange(self._requests, route, request, ends=ends)
        answer = Answer(used.answer.status, used.answer.headers, used.answer.take())
        self._requests.give_back(route, used)
        return answer

    @asynccontextmanager
    async def stream(
        self, connection: Connection, target: str, *, headers: Headers = None, read_timeout: float
    ) -> AsyncIterator[StreamAnswer]:
        """GET `target` and pass on its body as it comes; `read_timeout` is the longest silence, in seconds.

        Guarantees: the connection is closed at the end of the block, unless the body was read completely.
        Raises: `Unreachable`, also while reading; `TimeoutError` after a longer silence.
        """
        with self._translated(connection, read_timeout, streamed=True):
            route, request = self._prepared(connection, "GET", target, headers, b"", limit=None)
            used = await self._exchange(self._streams, route, request, silence=read_timeout)
        chunks = self._chunks(connection, used, read_timeout)
        try:
            yield StreamAnswer(used.answer.status, used.answer.headers, chunks)
        finally:
            await chunks.aclose()
            self._streams.give_back(route, used)

    async def close(self) -> None:
        """Close every connection; pending and later requests fail with `Unreachable`."""
        self._closed = True
        for scope in self._dialling:
            if not scope.expired():
                scope.reschedule(0.0)
        for each in self._open:
            each.abort(Disconnected(CLOSED))
        if self._open:
            await asyncio.wait([each.lost for each in self._open])

    async def _exchange(
        self, pool: Pool, route: Route, request: WireRequest, *, ends: float = FOREVER, silence: float = FOREVER
    ) -> HttpConnection:
        """Send a request; return its connection with the complete answer, or with the head of a stream's."""
        used = pool.take(route)
        reused = used is not None
        while True:
            if self._closed:
                raise Disconnected(CLOSED)
            used = used or await self._dialled(route, ends)
            until = min(ends, clock() + silence)
            try:
                await used.send(request, until)
                await used.until(used.answer.is_ready, until)
            except Disconnected:
                if not reused or request.method != "GET" or used.answer.begun:
                    raise
                used, reused = None, False
            except BaseException:
                used.abort()
                raise
            else:
                return used

    async def _dialled(self, route: Route, ends: float) -> HttpConnection:
        seconds = min(ends - clock(), CONNECT_SECONDS)
        try:
            async with asyncio.timeout(seconds) as scope:
                self._dialling.add(scope)
                try:
                    made = await dial(route, self._buffer, ends=clock() + seconds)
                finally:
                    self._dialling.discard(scope)
        except TimeoutError as error:
            if not self._closed and seconds < CONNECT_SECONDS:
                raise
            raise Disconnected(CLOSED if self._closed else f"no connection within {seconds:.0f} s") from error
        self._open.add(made)
        made.lost.add_done_callback(lambda _: self._open.discard(made))
        if self._closed:
            made.abort(Disconnected(CLOSED))
        return made

    async def _chunks(
        self, connection: Connection, used: HttpConnection, read_timeout: float
    ) -> AsyncGenerator[bytes, None]:
        with self._translated(connection, read_timeout, streamed=True):
            while piece := await used.piece(read_timeout):
                yield piece

    @contextmanager
    def _translated(self, connection: Connection, timeout: float, *, streamed: bool = False) -> Iterator[None]:
        """Raise errors of sockets, TLS and HTTP as ours."""
        try:
            yield
        except TimeoutError as error:
            if streamed:
                raise TimeoutError(f"{connection.server} was silent for {timeout:.0f} s") from error
            raise Unreachable(f"{connection.server} did not answer within {timeout:.0f} s") from error
        except (OSError, ValueError, BadAnswer) as error:
            if isinstance(error, ssl.CertificateError):
                self.distrusted_at = time.monotonic()
            raise Unreachable(f"{connection.server} cannot be reached: {str(error) or type(error).__name__}") from error

    def _prepared(
        self, connection: Connection, method: str, target: str, headers: Headers, body: bytes, *, limit: int | None
    ) -> tuple[Route, WireRequest]:
        """The way to the server, and the request in bytes. Raises: `ValueError`; `OSError` for certificate files."""
        server, proxy = address_of(connection.server), address_of(connection.proxy) if connection.proxy else None
        encrypted = server.encrypted or (proxy is not None and proxy.encrypted)
        context = self._certificates.context(connection) if encrypted else None
        # The API server compresses lists, from 128 KiB on.
        encoding = "identity" if limit is None else "gzip"
        sent = {"Host": server.authority, "Accept-Encoding": encoding, **self._headers, **(headers or {})}
        authorization = connection.authorization or server.authorization
        if authorization is not None:
            sent["Authorization"] = authorization
        if body or method != "GET":
            sent["Content-Length"] = str(len(body))
        url = server.path + target
        if proxy is not None and not server.encrypted:  # it passes on each request
            url = f"http://{server.authority}{url}"
            if proxy.authorization is not None:
                sent["Proxy-Authorization"] = proxy.authorization
        lines = [f"{method} {url} HTTP/1.1", *(f"{name}: {value}" for name, value in sent.items()), "", ""]
        head = "\r\n".join(lines)
        if not head.count("\r") == head.count("\n") == len(lines) - 1 or "\0" in head:
            raise ValueError("a header has a line break or a null character")
        route = Route(server, proxy, context, connection.server_name or server.host)
        return route, WireRequest(method, target, head.encode() + body, limit)
