"""Ports: free loopback ports for servers that must come back on the same port after a restart."""

from __future__ import annotations

import secrets
import socket
from typing import Final

from bonny.errors import UsageError

LOOPBACK: Final = "127.0.0.1"
# Below the ephemeral ranges of Linux (from 32768) and macOS (from 49152), where the kernel takes the ports of outgoing
# connections: while a server is down for a fault test, one could take its port, even a client that reaches itself.
PORTS: Final = range(10_000, 30_000)


def is_free(port: int) -> bool:
    """Whether a server could listen on `port` of the loopback address now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As Go's servers do: closing connections do not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def free_ports(count: int) -> list[int]:
    """`count` different ports that were free a moment ago. Another process may take one: be ready to try again."""
    ports: set[int] = set()
    while len(ports) < count:
        port = secrets.choice(PORTS)
        if is_free(port):
            ports.add(port)
    return list(ports)


def check_free(port: int) -> None:
    """Raise `UsageError` unless `port` exists and is free."""
    if not 0 < port < 65536:
        raise UsageError(f"port {port} does not exist: use 1 to 65535, or leave it out for a free one")
    if not is_free(port):
        raise UsageError(
            f"port {port} of {LOOPBACK} is in use: stop the process that listens on it (see `lsof -i :{port}`), "
            "or leave the port out for a free one"
        )
