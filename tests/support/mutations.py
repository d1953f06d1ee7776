"""Mutations: sound HTTP answers of every kind, and what becomes of them when bytes are lost, changed or repeated."""

from __future__ import annotations

import gzip
import random
from typing import Final

__all__ = ["ANSWERS", "mutated"]

PACKED: Final = gzip.compress(b"first " * 20, mtime=0)
ANSWERS: Final = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 5\r\n\r\nfirst",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nfir\r\n2\r\nst\r\n0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nfirst\r\n0\r\nTrailer: t\r\n\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 5\r\n\r\nfirst",
    b"HTTP/1.1 204 No Content\r\nAudit-Id: 1\r\n\r\n",
    b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n",
    b"HTTP/1.1 409 Conflict\r\nConnection: close\r\nContent-Length: 5\r\n\r\nfirst",
    b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\nfirst",
    b"HTTP/1.0 200 OK\r\n\r\nfirst",
    b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(PACKED) + PACKED,
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfirstHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nfirst!",
)
# Bytes and words that mean something to a parser.
WORDS: Final = (
    *(b"\r\n", b"\n", b"\r", b"\0", b" ", b":", b"0", b"ff", b"1.0", b"chunked", b"close", b"\r\n\r\n"),
    *(b"HTTP/1.1 200 OK\r\n\r\n", b"Content-Length: 3", b"Transfer-Encoding: chunked\r\n"),
)


def mutated(data: bytes, chance: random.Random) -> bytes:
    """`data` with up to three changes."""
    for _ in range(int(chance.random() * 3) + 1):
        at = int(chance.random() * (len(data) + 1))
        to = at + int(chance.random() * 8)
        match int(chance.random() * 6):
            case 0:
                data = data[:at] + data[to:]
            case 1:
                data = data[:at] + data[at:to] + data[at:to] + data[to:]
            case 2:
                data = data[:at] + WORDS[int(chance.random() * len(WORDS))] + data[at:]
            case 3:
                data = data[:at] + bytes([int(chance.random() * 256)]) + data[at + 1 :]
            case 4:
                data = data[:at] + data[at:].swapcase()
            case 5:
                data = data[:at]
    return data
