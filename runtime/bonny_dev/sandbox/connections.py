"""Connections: kept open between the administrator's requests, since a TLS handshake costs more than most answers.

A test that waits for a condition sends some twenty requests a second.
"""

from __future__ import annotations

import select
import ssl
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPSConnection
from pathlib import Path


class Connections:
    """Idle connections. Any thread may take one; they are closed with this object."""

    def __init__(self) -> None:
        self._idle: list[HTTPSConnection] = []
        weakref.finalize(self, _close, self._idle)

    @contextmanager
    def to(self, host: str, *, ca_file: Path, timeout: float) -> Iterator[HTTPSConnection]:
        """A connection for one request, whose answer is read within the block; `timeout` in seconds."""
        connection = self._taken(host) or _new(host, ca_file)
        connection.timeout = timeout
        if connection.sock is not None:
            connection.sock.settimeout(timeout)
        try:
            yield connection
        except BaseException:
            connection.close()  # a part of the answer may still come
            raise
        self._idle.append(connection)

    def close(self) -> None:
        """Close idle connections."""
        _close(self._idle)

    def _taken(self, host: str) -> HTTPSConnection | None:
        """One of `host` that the server did not close, and that has no part of an answer left."""
        for connection in _popped(self._idle):
            if f"{connection.host}:{connection.port}" == host and _is_open(connection):
                return connection
            connection.close()
        return None


def _new(host: str, ca_file: Path) -> HTTPSConnection:
    return HTTPSConnection(host, context=ssl.create_default_context(cafile=ca_file))


def _is_open(connection: HTTPSConnection) -> bool:
    """Whether the socket is there and has nothing to read: neither an end nor an answer without a request."""
    if connection.sock is None:
        return False
    poll = select.poll()
    poll.register(connection.sock, select.POLLIN)
    return not poll.poll(0)


def _popped(idle: list[HTTPSConnection]) -> Iterator[HTTPSConnection]:
    with suppress(IndexError):  # none is left: another thread may have taken the last one
        while True:
            yield idle.pop()


def _close(idle: list[HTTPSConnection]) -> None:
    for connection in _popped(idle):
        connection.close()
