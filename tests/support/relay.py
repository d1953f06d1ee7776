"""Relay: passes TCP connections on to one of several ports, as a Service does."""

from __future__ import annotations

import itertools
import selectors
import socket
import threading
from contextlib import suppress
from types import TracebackType
from typing import Final, Self

CHUNK: Final = 65_536


class Relay:
    """Listens on `port` of 127.0.0.1. New connections go to the `targets` in turn, ports of 127.0.0.1."""

    def __init__(self) -> None:
        self.targets: tuple[int, ...] = ()
        self.received = 0
        """Bytes that the targets sent."""

        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._turns = itertools.count()
        self._counting = threading.Lock()
        self._open: set[socket.socket] = set()

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, name="relay", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        # Closing alone does not wake `accept`.
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()

    def cut(self) -> None:
        """Close all connections; clients open new ones."""
        for each in list(self._open):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        targets = self.targets
        with client, suppress(OSError):
            if not targets:
                return
            port = targets[next(self._turns) % len(targets)]
            with socket.create_connection(("127.0.0.1", port), timeout=5) as server:
                server.settimeout(None)
                pair = {client, server}
                self._open |= pair
                try:
                    self._pump(client, server)
                finally:
                    self._open -= pair

    def _pump(self, client: socket.socket, server: socket.socket) -> None:
        """Copy in both directions until one side ends."""
        with selectors.DefaultSelector() as ready:
            ready.register(client, selectors.EVENT_READ, server)
            ready.register(server, selectors.EVENT_READ, client)
            while True:
                for key, _ in ready.select():
                    source = key.fileobj
                    assert isinstance(source, socket.socket)
                    data = source.recv(CHUNK)
                    if not data:
                        return
                    if source is server:
                        with self._counting:
                            self.received += len(data)
                    key.data.sendall(data)
