"""Sockets: the TCP sockets of this machine as the kernel sees them (Linux)."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

__all__ = ["Socket", "State", "between"]


class State(StrEnum):
    """The states that tests ask for (include/net/tcp_states.h)."""

    ESTABLISHED = "01"
    SYN_SENT = "02"


class Socket(NamedTuple):
    """One line of /proc/net/tcp."""

    state: str
    keepalive_seconds: float | None
    """Seconds until the peer is asked whether it lives; None when it never is."""


def between(*, local: int | None = None, remote: int) -> list[Socket]:
    """The sockets that are connected to a remote port (from a local one), or about to be.

    Not those that were: the kernel keeps them for a minute, of whatever process had the same port.
    """
    lines = [
        line.split()
        for table in ("tcp", "tcp6")
        for line in Path("/proc/net", table).read_text("ascii").splitlines()[1:]
    ]
    return [
        Socket(state, int(when, 16) / 100 if timer == "02" else None)
        for _, ours, theirs, state, _, timers, *_ in lines
        for timer, when in [timers.split(":")]
        if state in set(State) and _port(theirs) == remote and (local is None or _port(ours) == local)
    ]


def _port(address: str) -> int:
    return int(address.rsplit(":", 1)[1], 16)
