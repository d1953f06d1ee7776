"""Serving: the certificate that a server of the operator shows; every replica has it, and reads it when it changes.

The Secret is followed through the API: as a volume it would arrive a minute later. A new certificate serves the next
handshake, with no restart and no lost connection. One that cannot be loaded changes nothing.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import ssl
import tempfile
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from ..client.api import Client
from ..core.store import Delta
from ..core.watch import WatchOptions
from ..engine.stream import Stream
from .secret import CERTIFICATE, KEY, SECRET, TlsSecret

# Files of a folder are compared this often.
FOLDER_SECONDS: Final = 2.0
FIRST: Final = re.compile(rb"-----BEGIN CERTIFICATE-----(.+?)-----END CERTIFICATE-----", re.DOTALL)
# Tags of DER (X.690) in a certificate, and the longest content whose size is in one byte.
SEQUENCE, VERSION, UTC_TIME, GENERALIZED_TIME = 0x30, 0xA0, 0x17, 0x18
SHORT: Final = 0x7F

log = logging.getLogger("bonny.tls.serving")


class ServingCertificate:
    """The certificate in `secret`, which is watched with `options`, or in the files tls.crt and tls.key of `folder`.

    Guarantees: while the Secret is missing or holds something else, the last certificate is served.
    RBAC: list and watch secrets, by name.
    """

    def __init__(self, client: Client, secret: TlsSecret, options: WatchOptions, *, folder: str | None = None) -> None:
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        """For a server, with TLS 1.2 and later. Handshakes fail until there is a certificate."""

        # Debian's Python, which is in the image, leaves the version to the configuration of OpenSSL.
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        # Not by loading into `context`: that would keep serving a key of another type, RSA or EC.
        self.context.sni_callback = self._choose
        self.not_after: datetime | None = None
        """The end of the certificate that is served; None while there is none."""

        kind = replace(SECRET, field_selector=f"metadata.name={secret.key.name}")
        self.stream = Stream(client, kind, namespace=secret.namespace, options=options)
        self.stream.subscribe(self)
        self._purpose = secret.purpose
        self._folder = folder
        self._source = folder or f"Secret {secret.key}"
        self._problem = "not read yet"
        self._read: tuple[bytes, bytes] | None = None
        self._current: ssl.SSLContext | None = None

    def __str__(self) -> str:
        return f"the {self._purpose} certificate"

    @property
    def ready(self) -> bool:
        """Whether a certificate is served."""
        return self._current is not None

    @property
    def problem(self) -> str:
        """Why no certificate is served, or not the newest one; empty if all is well."""
        problem = self.stream.error.kind.value if self.stream.error else self._problem
        return problem and f"{self._purpose} certificate of {self._source}: {problem}"

    async def run(self) -> None:
        """Follow the Secret or the folder until cancelled."""
        while self._folder is not None:
            try:
                folder = Path(self._folder)
                self._offer((folder / CERTIFICATE).read_bytes(), (folder / KEY).read_bytes())
            except OSError:
                self._offer()
            await asyncio.sleep(FOLDER_SECONDS)
        await self.stream.run()

    # --- what the stream calls ---

    def seen(self, stream: Stream, delta: Delta) -> None: ...

    def restored(self, stream: Stream) -> None: ...

    def advanced(self, stream: Stream) -> None:
        """Read the Secret again: it is the only object of its stream."""
        data = next((item.decode().get("data") for item in stream.store), None) or {}
        self._offer(*(b64decode(data.get(key, "")) for key in (CERTIFICATE, KEY)))

    # --- swapping ---

    def _choose(self, connection: Any, *_: object) -> None:
        """Give a handshake the newest certificate; `ssl` calls it, also when the client names no host."""
        if self._current is not None:
            connection.context = self._current

    def _offer(self, certificate: bytes = b"", key: bytes = b"") -> None:
        """Serve this certificate from now on, if it is a new one and can be loaded."""
        if (certificate, key) == self._read:
            return
        self._read = certificate, key
        try:
            self._current, self.not_after = _load(certificate, key)
            self._problem = ""
            log.info("certificate loaded", extra={"source": self._source, "not_after": self.not_after.isoformat()})
        except (ssl.SSLError, ValueError) as error:
            self._problem = str(error)
            log.warning("cannot load a new certificate", extra={"because": self.problem, "serves_the_last": self.ready})


def _load(certificate: bytes, key: bytes) -> tuple[ssl.SSLContext, datetime]:
    """A context with this certificate, and its end. Raises: `ssl.SSLError`, `ValueError`."""
    first = FIRST.search(certificate)
    if not (first and key):
        raise ValueError("it holds no certificate with a key")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with _file(certificate + b"\n" + key) as path:
        # Without a password OpenSSL would ask for one in the terminal.
        context.load_cert_chain(path, password="")
    return context, end_of(b64decode(first[1]))


def end_of(certificate: bytes) -> datetime:
    """The end of a certificate in DER, which is where RFC 5280, 4.1, has it. Raises: `ValueError` for other bytes."""
    try:
        (whole,) = _sequence(SEQUENCE, certificate)
        signed, *_ = _sequence(*whole)
        _serial, _algorithm, _issuer, validity, *_ = (each for each in _sequence(*signed) if each[0] != VERSION)
        _begin, (tag, text) = _sequence(*validity)
        if tag == UTC_TIME:
            text = (b"19" if text >= b"50" else b"20") + text
        if tag not in (UTC_TIME, GENERALIZED_TIME) or not re.fullmatch(rb"\d{14}Z", text):
            raise ValueError(text)
        return datetime.strptime(f"{text.decode()}+0000", "%Y%m%d%H%M%SZ%z")
    except ValueError as error:
        raise ValueError("the end of its first certificate cannot be read") from error


def _sequence(tag: int, content: bytes) -> Iterator[tuple[int, bytes]]:
    """Tag and content of each value in a SEQUENCE. Raises: `ValueError` for another tag, and for what is not DER."""
    if tag != SEQUENCE:
        raise ValueError(tag)
    while content:
        size, start = int.from_bytes(content[1:2]), 2
        if size > SHORT:  # the number of bytes that have the size
            start += size - SHORT - 1
            size = int.from_bytes(content[2:start])
            if size <= SHORT:
                raise ValueError(size)
        end = start + size
        if len(content) < end:
            raise ValueError(end)
        yield content[0], content[start:end]
        content = content[end:]


@contextmanager
def _file(content: bytes) -> Iterator[str]:
    """The path of a private file, until the end of the `with`: `ssl` loads keys from files only."""
    if hasattr(os, "memfd_create"):
        with os.fdopen(os.memfd_create("certificate"), "wb", buffering=0) as file:
            file.write(content)
            yield f"/proc/self/fd/{file.fileno()}"
    else:
        with tempfile.NamedTemporaryFile(buffering=0) as file:
            file.write(content)
            yield file.name
