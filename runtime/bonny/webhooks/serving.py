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
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ..client.api import Client
from ..core.store import Delta
from ..engine.stream import Stream
from ..kinds import Kind
from . import names

if TYPE_CHECKING:
    from ..operator import Operator

# Files of a folder are compared this often.
FOLDER_SECONDS: Final = 2.0
FIRST: Final = re.compile(rb"-----BEGIN CERTIFICATE-----(.+?)-----END CERTIFICATE-----", re.DOTALL)
# RFC 5280, 4.1: two times after each other, as yymmdd (UTCTime) or yyyymmdd (GeneralizedTime). All are in this century.
NOT_AFTER: Final = re.compile(rb"[\x17\x18].\d{12,14}Z[\x17\x18].\d*(\d{12})Z", re.DOTALL)

log = logging.getLogger("bonny.webhooks.serving")


class ServingCertificate:
    """The certificate in the Secret `names.secret` of `namespace`, or in the files tls.crt and tls.key of `folder`.

    Guarantees: while the Secret is missing or holds something else, the last certificate is served.
    RBAC: list and watch secrets, by name.
    """

    def __init__(
        self,
        client: Client,
        operator: Operator,
        *,
        namespace: str,
        folder: str | None = None,
        purpose: names.Purpose = "webhook",
    ) -> None:
        secret = names.secret(operator.name, purpose)
        self._purpose = purpose
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        """For a server, with TLS 1.2 and later. Handshakes fail until there is a certificate."""

        # Not by loading into `context`: that would keep serving a key of another type, RSA or EC.
        self.context.sni_callback = self._choose
        self.not_after: datetime | None = None
        """The end of the certificate that is served; None while there is none."""

        self.stream = Stream(
            client,
            Kind("v1", "Secret", field_selector=f"metadata.name={secret}"),
            namespace=namespace,
            options=operator.watch_options,
        )
        self.stream.subscribe(self)
        self._folder = folder
        self._source = folder or f"Secret {namespace}/{secret}"
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
        problem = f"{self.stream.error.kind.value}" if self.stream.error else self._problem
        return problem and f"{self._purpose} certificate of {self._source}: {problem}"

    async def run(self) -> None:
        """Follow the Secret or the folder until cancelled."""
        while self._folder is not None:
            try:
                folder = Path(self._folder)
                self._offer((folder / names.CERTIFICATE).read_bytes(), (folder / names.KEY).read_bytes())
            except OSError:
                self._offer()
            await asyncio.sleep(FOLDER_SECONDS)
        await self.stream.run()

    # --- what the stream calls ----------------------------------------------------------------------------------------

    def seen(self, stream: Stream, delta: Delta) -> None: ...

    def restored(self, stream: Stream) -> None: ...

    def advanced(self, stream: Stream) -> None:
        """Read the Secret again: it is the only object of its stream."""
        data = next((item.decode().get("data") for item in stream.store), None) or {}
        self._offer(*(b64decode(data.get(key, "")) for key in (names.CERTIFICATE, names.KEY)))

    # --- swapping -----------------------------------------------------------------------------------------------------

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
            log.warning("no new certificate", extra={"because": self.problem, "serves_the_last": self.ready})


def _load(certificate: bytes, key: bytes) -> tuple[ssl.SSLContext, datetime]:
    """A context with this certificate, and its end. Raises: `ssl.SSLError`, `ValueError`."""
    first = FIRST.search(certificate)
    end = first and NOT_AFTER.search(b64decode(first[1]))
    if not (end and key):
        raise ValueError("it holds no certificate with a key")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with _file(certificate + b"\n" + key) as path:
        # Without a password OpenSSL would ask for one in the terminal.
        context.load_cert_chain(path, password="")
    return context, datetime.strptime(f"20{end[1].decode()}+0000", "%Y%m%d%H%M%S%z")


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
