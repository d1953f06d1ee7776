"""Certificates: makes and judges what a server needs to be trusted: a CA, a certificate and its key, as PEM.

You need it for a throw-away CA in a test, and to rotate the operator's own (`bonny.tls.rotation`).
You do not need it to serve: that only reads. Import it within a function: it loads `cryptography`, 11 MB of memory.

Raises on import: `UsageError` when the package `cryptography` is not installed.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from typing import Final

from ..errors import UsageError

try:
    from cryptography import x509
    from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.serialization import Encoding
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
except ImportError as missing:
    raise UsageError(
        "certificates of webhooks and of secure metrics need the package cryptography: install the operator with its "
        'extra `webhooks`, or let cert-manager make them by Deploy(certificates="cert-manager")'
    ) from missing

DAYS: Final = 365

SKEW: Final = timedelta(hours=2)
"""A certificate is valid from so long before it was made: clocks are often an hour off."""

_SIGNS: Final = x509.KeyUsage(
    False, False, False, False, False, key_cert_sign=True, crl_sign=False, encipher_only=False, decipher_only=False
)

# Of certificates and keys that are damaged, or of a kind that the package does not know.
UNREADABLE: Final = (
    ValueError, TypeError, UnsupportedAlgorithm,
    x509.InvalidVersion, x509.ExtensionNotFound, x509.DuplicateExtension, x509.UnsupportedGeneralNameType,
)  # fmt: skip

END: Final = b"-----END CERTIFICATE-----\n"


@dataclass(frozen=True, slots=True)
class Issued:
    """A new certificate; all parts are PEM."""

    certificate: bytes
    key: bytes
    ca: bytes
    """The CA that signed it. The CA's own key is gone, so that it signs no other."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """The certificate that is served. Times are UTC."""

    not_before: datetime
    not_after: datetime
    names: frozenset[str]
    """The hosts and addresses in it."""

    @property
    def life(self) -> timedelta:
        """How long it is valid in all."""
        return self.not_after - self.not_before


def issue(
    hosts: Iterable[str], addresses: Iterable[str] = (), *, days: float = DAYS, now: datetime | None = None
) -> Issued:
    """A new CA and a certificate for `hosts` and IP `addresses`. Both are valid for `days` from `now`, and 2 h before.

    EC P-256, for servers only. Defaults: 365 days from the present.
    """
    now = now or datetime.now(UTC)
    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    names = [*map(x509.DNSName, hosts), *(x509.IPAddress(ip_address(each)) for each in addresses)]
    # Clients find a CA by its name, so no two have the same.
    serial = x509.random_serial_number()
    ca_name = _name(f"operator CA {serial:x}")
    valid = now - SKEW, now + timedelta(days=days)
    signer = x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key())
    ca = (
        x509.CertificateBuilder(ca_name, ca_name, ca_key.public_key(), serial, *valid)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_SIGNS, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(ca_key.public_key()), critical=False)
        .sign(ca_key, SHA256())
    )
    leaf = (
        x509.CertificateBuilder(ca_name, _name("operator"), key.public_key(), x509.random_serial_number(), *valid)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(signer, critical=False)
        .sign(ca_key, SHA256())
    )
    private = key.private_bytes(Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return Issued(leaf.public_bytes(Encoding.PEM), private, ca.public_bytes(Encoding.PEM))


def read(certificate: bytes, key: bytes, cas: Iterable[bytes]) -> Leaf | None:
    """The first certificate of a PEM chain; None when it does not parse, has another key, or none of `cas` fits."""
    try:
        chain = x509.load_pem_x509_certificates(certificate)
        leaf = chain[0]
        names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        own_key = serialization.load_pem_private_key(key, None).public_key() == leaf.public_key()
        links = all(_is_signed(one, by=other) for one, other in itertools.pairwise(chain))
        trusted = any(_is_signed(chain[-1], by=x509.load_pem_x509_certificate(ca)) for ca in cas)
        if not (own_key and links and trusted):
            return None
    except UNREADABLE:
        return None
    hosts = (*names.get_values_for_type(x509.DNSName), *map(str, names.get_values_for_type(x509.IPAddress)))
    return Leaf(leaf.not_valid_before_utc, leaf.not_valid_after_utc, frozenset(hosts))


def split(bundle: bytes) -> dict[bytes, datetime]:
    """The certificates of a PEM bundle and their ends (UTC), each once; parts that do not parse are left out."""
    ends = {}
    for part in bundle.split(END.strip())[:-1]:
        try:
            certificate = x509.load_pem_x509_certificate(part + END)
        except UNREADABLE:
            continue
        ends[certificate.public_bytes(Encoding.PEM)] = certificate.not_valid_after_utc
    return ends


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _is_signed(certificate: x509.Certificate, *, by: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(by)
    except (*UNREADABLE, InvalidSignature):
        return certificate == by  # one that is trusted itself
    return True
