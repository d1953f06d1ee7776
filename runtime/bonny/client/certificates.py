"""Certificates: the TLS settings of a connection, read from files that are replaced while the process runs."""

from __future__ import annotations

import os
import ssl

from .config import Connection


class Certificates:
    """TLS contexts for one cluster. A context is made again when a file has changed, for new connections only."""

    def __init__(self) -> None:
        self._wanted: tuple[object, ...] = ()
        self._versions: list[tuple[int, ...]] = []
        self._context: ssl.SSLContext | None = None

    def context(self, connection: Connection) -> ssl.SSLContext:
        """The context of the files as they are now. Raises: `OSError` when they were never readable."""
        files = [file for file in (connection.ca_file, connection.cert_file, connection.key_file) if file]
        wanted = (connection.ca_file, connection.cert_file, connection.key_file, connection.verify)
        try:
            versions = [_version(file) for file in files]
            if self._context is None or self._wanted != wanted or self._versions != versions:
                made = _tls_context(connection)
                self._wanted, self._versions, self._context = wanted, versions, made
        except OSError as error:  # also for a file that is not a certificate
            # While files are replaced, one is missing, half written or does not match the other: keep the old context.
            if self._context is None or self._wanted != wanted:
                raise OSError(f"its certificate files ({', '.join(files)}) cannot be used: {error}") from error
        return self._context


def _version(file: str) -> tuple[int, ...]:
    """A value that changes with the file; its time alone does not when it is written twice in one clock tick."""
    # Called for each request, so without a Path, which would take ten times as long.
    stat = os.stat(file)  # noqa: PTH116
    return stat.st_mtime_ns, stat.st_size, stat.st_ino


def _tls_context(connection: Connection) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=connection.ca_file)
    # Python 3.13 refuses authorities without key identifiers, as in old clusters; kubectl accepts them.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if not connection.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if connection.cert_file:
        context.load_cert_chain(connection.cert_file, connection.key_file)
    return context
