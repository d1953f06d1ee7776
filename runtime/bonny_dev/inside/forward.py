"""Forward: HTTP requests to a port of a pod, through the API server's port-forward.

The protocol is `v4.channel.k8s.io` over a WebSocket: each message begins with the byte of its channel. Channel 0 has
the data of the port and channel 1 its error; the first message of each names the port. No port of this machine is
opened, so that its other users reach nothing.

RBAC of the person: get and create of pods/portforward.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import TracebackType
from typing import Final

from aiohttp import ClientError, ClientSession, ClientWebSocketResponse, WSMsgType, WSServerHandshakeError

from bonny.client.api import Client
from bonny.client.certificates import Certificates
from bonny.client.request import path_of
from bonny.kinds import Kind
from bonny.resource import Resource

PROTOCOL: Final = "v4.channel.k8s.io"
DATA, ERROR = 0, 1
NAMED: Final = 3
"""Bytes of the first message of a channel: the channel, and the port."""

POD: Final = Kind("v1", "Pod")


class CannotForward(Exception):
    """The port is not reached; the text has the reason. `broke`: it was reached before, on this connection."""

    def __init__(self, text: str, *, broke: bool = False) -> None:
        super().__init__(text)
        self.broke = broke


class Tunnel:
    """A connection to `port` of `pod`. To be entered; one request at a time, each within `seconds`."""

    def __init__(self, client: Client, pod: Resource, port: int, *, seconds: float) -> None:
        self._client, self._pod, self._port, self._seconds = client, pod, port, seconds
        self._turn = asyncio.Lock()
        self._used = False

    async def __aenter__(self) -> Tunnel:
        """Raises: `CannotForward`."""
        self._session = ClientSession()
        try:
            async with asyncio.timeout(self._seconds):
                self._socket = await self._connected()
        except BaseException as error:
            await self._session.close()
            if isinstance(error, WSServerHandshakeError):
                raise CannotForward(self._refusal(error.status)) from error
            if isinstance(error, (ClientError, OSError)):
                raise CannotForward(f"the API server does not forward to {self._name} ({error})") from error
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End the connection."""
        # Without a closing handshake, and complete on return. The socket's own `close` leaves TLS open for a while.
        await self._session.close()

    async def get(self, target: str, headers: Mapping[str, str]) -> tuple[int, bytes]:
        """Status and body of the answer. Raises: `CannotForward`; `TimeoutError`."""
        lines = [f"GET {target} HTTP/1.1", f"Host: localhost:{self._port}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        async with self._turn, asyncio.timeout(self._seconds):
            try:
                await self._socket.send_bytes(bytes([DATA]) + "\r\n".join([*lines, "", ""]).encode())
            except ClientError as error:
                raise CannotForward(f"the connection to {self._name} broke", broke=self._used) from error
            answer = b""
            while b"\r\n\r\n" not in answer:
                answer += await self._data()
            head, _, body = answer.partition(b"\r\n\r\n")
            fields = dict(line.lower().split(": ", 1) for line in head.decode("latin-1").split("\r\n")[1:])
            while len(body) < int(fields.get("content-length", "0")):
                body += await self._data()
            self._used = True
            return int(head.split()[1]), body

    async def _data(self) -> bytes:
        """The next data of the port. Raises: `CannotForward` at their end."""
        while True:
            message = await self._socket.receive()
            if message.type is not WSMsgType.BINARY:
                raise CannotForward(f"the connection to {self._name} ended", broke=self._used)
            channel, data = message.data[0], message.data[1:]
            if channel == ERROR and len(message.data) > NAMED:
                raise CannotForward(f"{self._name} is not reached: {data.decode(errors='replace').strip()}")
            if channel == DATA and data:
                return bytes(data)

    async def _connected(self) -> ClientWebSocketResponse:
        connection = await self._client.connection()
        metadata = self._pod["metadata"]
        path = path_of(POD, metadata["namespace"], metadata["name"], "portforward")
        secure = connection.server.startswith("https:")
        opened = await self._session.ws_connect(
            f"{connection.server}{path}?ports={self._port}",
            protocols=(PROTOCOL,),
            headers={"Authorization": connection.authorization} if connection.authorization else {},
            ssl=Certificates().context(connection) if secure else True,
            server_hostname=connection.server_name,
            proxy=connection.proxy,
            max_msg_size=0,
        )
        for _ in (DATA, ERROR):
            named = await opened.receive()
            if named.type is not WSMsgType.BINARY or len(named.data) != NAMED:
                raise CannotForward(f"the node of {self._name} does not forward by {PROTOCOL}")
        return opened

    @property
    def _name(self) -> str:
        metadata = self._pod["metadata"]
        return f"port {self._port} of pod {metadata['namespace']}/{metadata['name']}"

    def _refusal(self, status: int) -> str:
        why = {
            403: "you need get and create of pods/portforward",
            404: "the pod is gone",
            400: "the pod runs on no node yet",
        }.get(status, "the node of the pod does not answer")
        return f"the API server does not forward to {self._name} ({status}): {why}"
