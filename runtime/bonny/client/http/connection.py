"""Connection: one TCP connection to a server or proxy, with or without TLS, and the exchange that is under way on it.

Guarantees: whatever goes wrong ends the connection, without a TLS farewell, for which a stuck peer would be waited for;
so bytes of a request that was given up are never read as the answer to another one. Nothing is written after its
deadline.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import Final, NamedTuple, cast

from ..clock import clock
from ..errors import AnswerTooLarge
from .answer import AnswerReader, BadAnswer, Disconnected

READ_BYTES: Final = 64 * 1024
# A longer request is written in pieces, each time with a look at the deadline: the loop sends everything that it was
# given, also when the process was frozen meanwhile.
WRITTEN_BYTES: Final = 64 * 1024
# While a stream's reader has not taken this much, the server is held back.
HELD_BYTES: Final = 256 * 1024
FOREVER: Final = float("inf")


class WireRequest(NamedTuple):
    """A request as it is sent."""

    method: str
    target: str
    data: bytes
    """Head and body."""

    limit: int | None
    """The longest body of the answer; None when it is taken in pieces."""


class HttpConnection(asyncio.BufferedProtocol):
    """A connection that serves one exchange at a time: `send`, then `until` the answer is there, then `rest`."""

    def __init__(self, buffer: memoryview) -> None:
        """`buffer` receives what is read; all connections of one event loop can share it."""
        self.answer = AnswerReader()
        self.lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when the connection is closed."""

        self.error: Exception | None = None
        """Why the connection ended; None while it is open."""

        self._buffer = buffer
        self._socket: asyncio.Transport | None = None
        self._transport: asyncio.Transport
        """The socket's transport, or that of TLS on top of it."""

        self._busy = self._sent = self._paused = False
        self._writable = True
        self._waiter: asyncio.Future[None] | None = None
        self._ready: Callable[[], object] = bool

    async def encrypt(self, context: ssl.SSLContext, name: str) -> None:
        """Continue in TLS, also within TLS to a proxy. Raises: `OSError`."""
        if self.error is not None:
            raise self.error
        made = await asyncio.get_running_loop().start_tls(self._transport, self, context, server_hostname=name)
        if made is None:  # asyncio's result when the peer hung up before the handshake began
            raise Disconnected("the server closed the connection before the TLS handshake")
        self._transport, self._busy, self.answer = made, False, AnswerReader()
        made.set_write_buffer_limits(high=1)

    async def send(self, request: WireRequest, ends: float) -> None:
        """Send a request, or as much of it as the server takes before it answers.

        Raises: `TimeoutError` when it is not sent at `ends` (`clock` seconds); the error that ended the connection.
        """
        self._ready = bool  # a deadline of the request before, which rings only now, is not that of this one
        self.answer.expect(request.method, request.target, request.limit)
        self._busy, self._sent = True, False
        for start in range(0, len(request.data), WRITTEN_BYTES):
            if start:
                await asyncio.sleep(0)
                await self.until(lambda: self._writable or self.answer.complete, ends)
            if self.answer.complete:
                return
            if self.error is not None:
                raise self.error
            if clock() >= ends:
                raise TimeoutError
            self._transport.write(request.data[start : start + WRITTEN_BYTES])
        self._sent = True

    async def until(self, ready: Callable[[], object], ends: float) -> None:
        """Return once `ready()`, which is asked whenever something arrived.

        Raises: `TimeoutError` at `ends` (`clock` seconds); the error that ended the connection.
        """
        loop = asyncio.get_running_loop()
        deadline: asyncio.TimerHandle | None = None
        try:
            while not ready():
                if self.error is not None:
                    raise self.error
                if deadline is None and ends < FOREVER:
                    # Two turns of the loop later: after it was held up, uvloop runs timers before it reads.
                    deadline = loop.call_later(ends - clock(), loop.call_soon, loop.call_soon, self._expire, ready)
                self._ready, self._waiter = ready, loop.create_future()
                await self._waiter
        finally:
            if deadline is not None:
                deadline.cancel()

    async def piece(self, seconds: float) -> bytes:
        """The next part of a body that is taken in pieces; empty at its end.

        Raises: `TimeoutError` after `seconds` of silence; the error that ended the connection.
        """
        await self.until(lambda: self.answer.waiting or self.answer.complete, clock() + seconds)
        if self._paused:
            self._paused = False
            self._transport.resume_reading()
        return self.answer.take()

    def rest(self) -> bool:
        """End the exchange; return whether the connection can serve another one. It is closed otherwise."""
        self._busy = False
        if not self._sent or not self.answer.reusable or self.answer.waiting:
            self.abort()
        return self.error is None

    def abort(self, error: Exception | None = None) -> None:
        """Close the connection at once; what waits for it gets `error`."""
        self.error = self.error or error or Disconnected("the connection was closed")
        if self._socket is not None:
            self._socket.abort()
        self._wake()

    def _expire(self, ready: Callable[[], object]) -> None:
        if self._ready is ready and not ready():
            self.abort(TimeoutError())

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done() and (self.error is not None or self._ready()):
            self._waiter.set_result(None)

    # --- called by the event loop ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._socket = self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=1)

    def get_buffer(self, _: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        if self.error is not None:
            return
        if not self._busy:
            self.abort(BadAnswer("it sent something that was not requested"))
            return
        try:
            self.answer.feed(self._buffer[:nbytes])
        except (BadAnswer, AnswerTooLarge) as error:
            self.abort(error)
        if self.answer.limit is None and self.answer.waiting > HELD_BYTES:
            self._paused = True
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> None:
        try:
            self.answer.end()
        except (BadAnswer, Disconnected) as error:
            self.abort(error)
        self.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        if self.error is None:
            self.error = Disconnected(str(exc or "the connection broke"))
            self.error.__cause__ = exc
        self._wake()
        self.lost.set_result(None)

    def pause_writing(self) -> None:
        self._writable = False

    def resume_writing(self) -> None:
        self._writable = True
        self._wake()
