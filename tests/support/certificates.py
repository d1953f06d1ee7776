"""Certificates: authorities made for one test, and what they sign; by the openssl command, which CI machines have."""

from __future__ import annotations

import ssl
import subprocess
from pathlib import Path
from typing import NamedTuple

__all__ = ["Authority", "Pair"]


class Pair(NamedTuple):
    """A certificate and its private key, as PEM files."""

    certificate: Path
    key: Path

    def server_context(self, *, clients: Path | None = None) -> ssl.SSLContext:
        """A TLS server with this certificate; with `clients` it asks for certificates of that authority."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(self.certificate, self.key)
        if clients is not None:
            context.load_verify_locations(clients)
            context.verify_mode = ssl.CERT_REQUIRED
        return context


class Authority:
    """A certificate authority of its own. `plain`: without the key identifiers that old clusters' ones lack."""

    def __init__(self, folder: Path, name: str = "ca", *, plain: bool = False) -> None:
        self._folder = folder
        self._plain = plain
        self.certificate, self._key = folder / f"{name}.crt", folder / f"{name}.key"
        identifiers = ["-addext", "subjectKeyIdentifier=none"] if plain else []
        usage = [] if plain else ["-addext", "keyUsage=critical,keyCertSign,cRLSign"]
        _openssl(
            *("req", "-x509", *_NEW_KEY, "-days", "2", "-subj", f"/CN={name}", *identifiers, *usage),
            *("-keyout", str(self._key), "-out", str(self.certificate)),
        )

    def issue(self, name: str, *, subject: str = "", hosts: tuple[str, ...] = ("IP:127.0.0.1",)) -> Pair:
        """A certificate for a server with these names, and for a client with this subject (`/O=group/CN=user`)."""
        made = Pair(self._folder / f"{name}.crt", self._folder / f"{name}.key")
        wish, extensions = self._folder / f"{name}.csr", self._folder / f"{name}.ext"
        identifiers = "none" if self._plain else "keyid"
        extensions.write_text(
            f"subjectAltName={','.join(hosts)}\nextendedKeyUsage=serverAuth,clientAuth\n"
            f"authorityKeyIdentifier={identifiers}\n",
            "ascii",
        )
        _openssl(
            "req", "-new", *_NEW_KEY, "-subj", subject or f"/CN={name}", "-keyout", str(made.key), "-out", str(wish)
        )
        _openssl(
            *("x509", "-req", "-in", str(wish), "-CA", str(self.certificate), "-CAkey", str(self._key)),
            *("-CAcreateserial", "-days", "2", "-extfile", str(extensions), "-out", str(made.certificate)),
        )
        return made


_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


def _openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)
