"""Certificates of webhooks, judged by OpenSSL as clients judge them."""

from __future__ import annotations

import ssl
import subprocess
import sys
import tempfile
from base64 import b64decode, encodebytes
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bonny.tls.certificates import DAYS, Issued, issue, read, split

NOW = datetime.now(UTC).replace(microsecond=0)


def handshake(served: Issued, bundle: bytes, host: str) -> None:
    """A TLS handshake in memory. Raises: `ssl.SSLError` when the client does not trust what is served."""
    server, client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context(cadata=bundle.decode())
    client.verify_flags |= ssl.VERIFY_X509_STRICT
    load(server, served)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [
        client.wrap_bio(to_client, to_server, server_hostname=host),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    while sides:
        for side in tuple(sides):
            try:
                side.do_handshake()
                sides.remove(side)
            except ssl.SSLWantReadError:
                pass


def load(context: ssl.SSLContext, served: Issued) -> None:
    """Load a certificate through a file that nobody else can open."""
    with tempfile.NamedTemporaryFile() as file:
        Path(file.name).write_bytes(served.certificate + served.key)
        context.load_cert_chain(file.name)


@pytest.mark.parametrize("host", ["widgets-webhook.default.svc", "127.0.0.1"])
def test_a_client_trusts_a_new_certificate_for_its_names(host: str) -> None:
    issued = issue(["widgets-webhook.default.svc"], ["127.0.0.1"])
    handshake(issued, issued.ca, host)


def test_a_client_trusts_it_with_another_ca_in_the_bundle() -> None:
    old, new = issue(["localhost"]), issue(["localhost"])
    for each in (old, new):
        handshake(each, old.ca + new.ca, "localhost")


def test_a_client_refuses_another_ca_and_another_name() -> None:
    issued = issue(["localhost"])
    with pytest.raises(ssl.SSLError, match="verify failed"):
        handshake(issued, issue(["localhost"]).ca, "localhost")
    with pytest.raises(ssl.SSLError, match="mismatch"):
        handshake(issued, issued.ca, "127.0.0.1")


def test_the_ca_signs_no_other_and_both_live_a_year_and_fit_clocks_that_are_late() -> None:
    issued = issue(["localhost"], now=NOW)
    leaf = read(issued.certificate, issued.key, [issued.ca])
    assert leaf is not None
    assert leaf.not_before == NOW - timedelta(hours=2)
    assert leaf.not_after == NOW + timedelta(days=DAYS)
    assert split(issued.ca) == {issued.ca: leaf.not_after}
    assert issued.key.count(b"PRIVATE KEY") == 2  # one begin, one end


def test_reading_finds_hosts_and_addresses() -> None:
    issued = issue(["a.svc", "b"], ["127.0.0.1", "::1"])
    leaf = read(issued.certificate, issued.key, [issue(["c"]).ca, issued.ca])
    assert leaf is not None
    assert leaf.names == {"a.svc", "b", "127.0.0.1", "::1"}


def test_reading_refuses_what_cannot_be_served() -> None:
    one, other = issue(["a"]), issue(["a"])
    assert read(one.certificate, other.key, [one.ca]) is None
    assert read(one.certificate, one.key, [other.ca]) is None
    assert read(one.certificate, one.key, []) is None
    assert read(one.ca, one.key, [one.ca]) is None
    assert read(one.certificate, b"", [one.ca]) is None
    assert read(b"", one.key, [one.ca]) is None
    assert read(one.certificate[:-40], one.key, [one.ca]) is None
    assert read(one.certificate + other.certificate, one.key, [other.ca]) is None


def test_a_chain_is_read_up_to_its_last_certificate() -> None:
    one = issue(["a"])
    assert read(one.certificate + one.ca, one.key, [one.ca]) is not None


def test_a_bundle_is_split_into_what_parses_each_once() -> None:
    one, other = issue(["a"]), issue(["b"])
    broken = b"-----BEGIN CERTIFICATE-----\nnonsense\n-----END CERTIFICATE-----\n"
    assert list(split(b"# text\n" + one.ca + broken + one.ca + other.ca + one.ca[:50])) == [one.ca, other.ca]
    assert split(b"") == {}


MADE = issue(["localhost"])


def damaged(pem: bytes, place: int, byte: int) -> bytes:
    """The PEM with one other byte in its DER."""
    first, *lines, last = pem.splitlines(keepends=True)
    der = bytearray(b64decode(b"".join(lines)))
    der[place % len(der)] = byte
    return first + encodebytes(bytes(der)) + last


@pytest.mark.filterwarnings("ignore:Parsed a serial number")
@given(st.integers(0, 600), st.integers(0, 255))
@example(17, 4)  # a version that no certificate has
@example(13, 0)  # a type of keys that nobody knows
def test_a_damaged_certificate_is_not_read_and_raises_nothing(place: int, byte: int) -> None:
    """Regression: some errors of the package got out and ended the work of the leader."""
    for certificate, key, ca in (
        (damaged(MADE.certificate, place, byte), MADE.key, MADE.ca),
        (MADE.certificate, damaged(MADE.key, place, byte), MADE.ca),
        (MADE.certificate, MADE.key, damaged(MADE.ca, place, byte)),
    ):
        leaf = read(certificate, key, split(ca))
        assert leaf is None or leaf.not_after
        split(certificate)


def test_without_cryptography_one_sentence_says_what_to_install() -> None:
    code = """
import sys
sys.modules["cryptography"] = None
from bonny.errors import UsageError
try:
    import bonny.tls.certificates
except UsageError as error:
    print(error)
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "install the operator with its extra `webhooks`" in result.stdout
    assert "cert-manager" in result.stdout
