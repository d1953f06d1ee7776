"""Peer: a TCP server that says byte for byte what a test wants, and notes what it heard.

You need it for faults of TCP and HTTP that no real server commits on request: half an answer, silence, a reset.
You do not need it for anything that Kubernetes means by an answer: that is tested on the real API server.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import struct
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Self, TypeAlias

__all__ = ["OK", "Call", "Heard", "Peer", "Script", "answer", "full_backlog", "obedient", "tunnel_to"]


def answer(body: bytes = b"", *, status: str = "200 OK", headers: tuple[str, ...] = ()) -> bytes:
    """A complete answer with a length."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


OK = answer(b"{}")


@dataclass(frozen=True, slots=True)
class Heard:
    """One request as it came. Header names are lower case."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes


class Call:
    """One connection, from the server's side."""

    def __init__(self, peer: Peer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._peer = peer
        self._reader = reader
        self._writer = writer
        self.port: int = writer.get_extra_info("peername")[1]
        """The client's port."""

    @property
    def client_name(self) -> str:
        """The common name in the client's certificate."""
        subject = self._writer.get_extra_info("peercert")["subject"]
        return dict(field for fields in subject for field in fields)["commonName"]

    async def request(self) -> Heard:
        """Read the next request. Raises: `IncompleteReadError` or `OSError` when the client hung up instead."""
        head = await self.head()
        first, *lines = head.rstrip().split("\r\n")
        method, target, _ = first.split(" ", 2)
        headers = {name.lower(): value.strip() for name, value in (line.split(":", 1) for line in lines)}
        body = await self._reader.readexactly(int(headers.get("content-length", 0)))
        heard = Heard(method, target, headers, body)
        self._peer.heard.append(heard)
        return heard

    async def head(self) -> str:
        """Read the head of the next request, and leave its body unread."""
        return (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1")

    async def say(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    def end(self) -> None:
        """Say that nothing more will be said."""
        self._writer.write_eof()

    def reset(self) -> None:
        """End the connection as a crashed peer does."""
        made: socket.socket = self._writer.get_extra_info("socket")
        made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()

    def cut(self) -> None:
        """End the connection without a farewell of TLS."""
        self._writer.transport.abort()

    async def joined_to(self, port: int) -> None:
        """Hand bytes on in both directions, between the client and a server on this machine, until one of them ends."""
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        ways = {asyncio.create_task(_pumped(self._reader, writer)), asyncio.create_task(_pumped(reader, self._writer))}
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            writer.transport.abort()
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    async def hung_up(self) -> None:
        """Return when the client has closed its side; what it still sends is not looked at."""
        with contextlib.suppress(OSError):
            while await self._reader.read(1 << 16):
                pass


Script: TypeAlias = Callable[[Call], Awaitable[None]]


async def obedient(call: Call) -> None:
    """The script of a server without fault."""
    while True:
        await call.request()
        await call.say(OK)


def tunnel_to(port: int) -> Script:
    """The script of an HTTP proxy that leads to one server, whatever host was asked for; `Peer.heard` says which."""

    async def script(call: Call) -> None:
        await call.request()
        await call.say(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await call.joined_to(port)

    return script


async def _pumped(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(1 << 16):
        writer.write(data)
        await writer.drain()


class Peer:
    """Runs `script` for each connection; when it returns, the connection is closed."""

    def __init__(
        self, script: Script = obedient, *, host: str = "127.0.0.1", tls: ssl.SSLContext | None = None
    ) -> None:
        self.heard: list[Heard] = []
        self.calls: list[Call] = []
        """Every connection that was accepted."""

        self.open = 0
        """How many of them are open now."""

        self.url = ""
        self.port = 0
        self._script = script
        self._host = host
        self._tls = tls
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, self._host, 0, ssl=self._tls)
        self.port = self._server.sockets[0].getsockname()[1]
        host = f"[{self._host}]" if ":" in self._host else self._host
        self.url = f"{'https' if self._tls else 'http'}://{host}:{self.port}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        call = Call(self, reader, writer)
        self.calls.append(call)
        task = asyncio.create_task(self._serve(call, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, call: Call, writer: asyncio.StreamWriter) -> None:
        self.open += 1
        try:
            # A client that hangs up, and the end of the test, are nobody's fault.
            with contextlib.suppress(asyncio.IncompleteReadError, OSError, asyncio.CancelledError):
                await self._script(call)
        finally:
            self.open -= 1
            writer.close()
            with contextlib.suppress(OSError, asyncio.CancelledError):
                await writer.wait_closed()


@contextmanager
def full_backlog() -> Iterator[str]:
    """The URL of a server that takes no more connections: to connect hangs, as behind a firewall that drops packets."""
    with contextlib.ExitStack() as sockets:
        server = sockets.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        address = server.getsockname()
        while True:
            filler = sockets.enter_context(socket.socket())
            filler.settimeout(0.2)
            try:
                filler.connect(address)
            except TimeoutError:
                break
        yield f"http://127.0.0.1:{address[1]}"
