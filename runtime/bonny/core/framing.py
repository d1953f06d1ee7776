"""Framing: cuts a byte stream into lines, whatever the sizes of its chunks.

A watch sends one JSON document a line. Bytes are joined before anything is decoded, so a cut inside a UTF-8
sequence is harmless, and a line may be longer than any buffer.
"""

from __future__ import annotations

from ..errors import BonnyError

# The API server refuses objects over 2 MiB. 16 MiB still ends a stream that never sends a line break.
LONGEST_LINE = 16 * 1024 * 1024


class LineTooLong(BonnyError):
    """A line grew beyond `LONGEST_LINE` without an end."""


class Lines:
    """Collects chunks; `feed` returns the lines that they completed, without line ends and without empty lines."""

    __slots__ = ("_parts", "_size")

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """Add `chunk`; return the lines that are now complete.

        Raises: `LineTooLong`.
        """
        *complete, rest = chunk.split(b"\n")
        if complete:
            complete[0] = b"".join([*self._parts, complete[0]])
            self._parts, self._size = [], 0
        self._parts.append(rest)
        self._size += len(rest)
        if self._size > LONGEST_LINE:
            raise LineTooLong(f"a line is longer than {LONGEST_LINE} bytes")
        return [line for line in complete if line and not line.isspace()]
