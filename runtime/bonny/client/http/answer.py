"""Answer: reads the answers on one connection, one after the other, from bytes. It does no I/O.

The C parser of httptools (llhttp) reads the syntax and refuses what is ambiguous: Content-Length beside
Transfer-Encoding, two lengths, folded headers, bare line feeds. Properties of it that this file works around, each
tried:
- an interim answer (1xx) is a message of its own: its headers are dropped, and reading goes on;
- `should_keep_alive` is right only within `on_message_complete`;
- a body that ends with the connection is completed by nothing: `end` does it;
- it does not know the request's method: the answers to `CONNECT` and `HEAD` end with their heads;
- header lines have no limit: bytes that bring neither head nor body are counted.
"""

from __future__ import annotations

import zlib
from typing import Final

from httptools import HttpParserCallbackError, HttpParserError, HttpParserUpgrade, HttpResponseParser

from ..errors import AnswerTooLarge

# Proxies allow 8 to 64 KiB for a header line; Go reads heads of up to 1 MiB.
LONGEST_HEAD: Final = 256 * 1024
GZIP: Final = 16 + zlib.MAX_WBITS


class BadAnswer(Exception):
    """The answer is not HTTP, or not what was asked for."""


class Disconnected(ConnectionError):
    """The connection was closed, or it broke."""


class AnswerReader:
    """The answer to the current request, as far as it has arrived. `expect` begins the next one."""

    def __init__(self) -> None:
        self._parser = HttpResponseParser(self)
        self.expect("GET", "", None)

    def expect(self, method: str, target: str, limit: int | None) -> None:
        """Prepare for the answer to a request. Its body may have `limit` bytes; None: it is taken in pieces."""
        self.status = 0
        self.reason = b""
        self.headers: dict[str, str] = {}
        """Names are lower case."""

        self.begun = self.has_head = self.complete = False
        self.surplus = False
        """Whether anything arrived behind the answer."""

        self.waiting = 0
        """Bytes of the body that `take` returns."""

        self.limit = limit
        self._name = f"{method} {target.partition('?')[0]}"
        self._without_body = method in ("CONNECT", "HEAD")
        self._parts: list[bytes] = []
        self._keeps_alive = self._compressed = False
        self._gzip: zlib._Decompress | None = None
        self._overhead = 0

    def feed(self, data: memoryview) -> None:
        """Read the next bytes. Raises: `BadAnswer`; `AnswerTooLarge`."""
        self.begun = True
        self._overhead += len(data)
        try:
            self._parser.feed_data(data)
        except HttpParserUpgrade:
            raise BadAnswer("it switches to another protocol") from None
        except HttpParserError as error:
            if self.complete:
                self.surplus = True
            elif isinstance(error, HttpParserCallbackError) and error.__context__ is not None:
                raise error.__context__ from None
            else:
                raise BadAnswer(f"it does not answer in HTTP: {error}") from None
        if self._overhead > LONGEST_HEAD:
            raise BadAnswer(f"its answer has more than {LONGEST_HEAD} bytes of headers")

    def end(self) -> None:
        """Accept the orderly end of the connection. Raises: `Disconnected` unless it completes the answer."""
        if self.complete:
            return
        if not self.has_head or "content-length" in self.headers or "transfer-encoding" in self.headers:
            where = "within its answer" if self.begun else "without an answer"
            raise Disconnected(f"the server closed the connection {where}")
        self._finish()

    def is_ready(self) -> bool:
        """Whether it is complete; when it is taken in pieces, whether its head is there."""
        return self.complete or (self.has_head and self.limit is None)

    @property
    def reusable(self) -> bool:
        """Whether the connection can be used again."""
        return self.complete and self._keeps_alive and not self.surplus

    def take(self) -> bytes:
        """The part of the body that arrived since the last call."""
        taken = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        self._parts, self.waiting = [], 0
        return taken

    def _finish(self) -> None:
        if self._gzip is not None and not self._gzip.eof:
            raise BadAnswer("its compressed answer is cut off")
        self.complete = True

    def _unpacked(self, data: bytes) -> bytes:
        """At most one byte more than the limit: a few compressed bytes can become gigabytes."""
        if self._gzip is None:
            self._gzip = zlib.decompressobj(GZIP)
        try:
            data = self._gzip.decompress(data, (self.limit or 0) + 1 - self.waiting)
        except zlib.error as error:
            raise BadAnswer(f"its compressed answer is damaged: {error}") from None
        if self._gzip.unused_data:
            raise BadAnswer("its compressed answer is followed by other bytes")
        return data

    # --- called by the parser ---

    def on_message_begin(self) -> None:
        """Raises: `BadAnswer` for an answer that was not requested."""
        if self.complete:
            raise BadAnswer("it sends an answer that was not requested")

    def on_status(self, reason: bytes) -> None:
        """Add to the reason."""
        self.reason += reason

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header, and no trailer."""
        if self.has_head:
            return
        key, text = name.decode("latin-1").lower(), value.decode("utf-8", "surrogateescape")
        # A repeated header is one list (RFC 9110, section 5.3).
        self.headers[key] = f"{self.headers[key]}, {text}" if key in self.headers else text

    def on_headers_complete(self) -> None:
        """Raises: `BadAnswer` for an encoding other than gzip."""
        self.status = self._parser.get_status_code()
        if self.status < 200:
            self.headers, self.reason = {}, b""
            return
        self.has_head = True
        self._overhead = 0
        encoding = self.headers.get("content-encoding", "identity").lower()
        self._compressed = encoding == "gzip" and self.limit is not None
        if encoding != "identity" and not self._compressed:
            raise BadAnswer(f"its answer is encoded as {encoding}, which was not requested")
        if self._without_body:
            self._finish()

    def on_body(self, data: bytes) -> None:
        """Keep a part. Raises: `AnswerTooLarge`."""
        if self.complete:
            self.surplus = True
            return
        self._overhead = 0
        if self._compressed:
            data = self._unpacked(data)
        if self.limit is not None and self.waiting + len(data) > self.limit:
            raise AnswerTooLarge(f"the answer to {self._name} has more than {self.limit} bytes")
        self._parts.append(data)
        self.waiting += len(data)

    def on_message_complete(self) -> None:
        """End the answer."""
        if self.has_head and not self.complete:
            self._finish()
            self._keeps_alive = self._parser.should_keep_alive()
