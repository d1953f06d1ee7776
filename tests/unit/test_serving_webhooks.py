"""Webhooks of a process: which certificate they show, when it is ready, and how it stops."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import os
import socket
import ssl
import stat
import subprocess
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric import rsa as rsa_keys
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from hypothesis import given
from hypothesis import strategies as st

from bonny import Controller, Kind, Operator
from bonny.client.config import Connection
from bonny.errors import UsageError
from bonny.run.config import Config
from bonny.run.process import Process
from bonny.tls import serving as serving_module
from bonny.tls.serving import ServingCertificate, end_of
from bonny.webhooks import Admission, Denied, Review, names
from bonny.webhooks.serving import WebhookRun
from bonny.webhooks.settings import WebhookSettings
from bonny_dev.manifest.rbac import grants
from tests.support.certificates import Authority, Pair
from tests.support.extras import find_run, run_of
from tests.support.waiting import running, until

PATIENCE = 20.0


class Small(Admission[Any]):
    resource = Kind("v1", "ConfigMap")

    async def validate(self, review: Review[Any]) -> None:
        raise Denied("never")


class ConfigMaps(Controller[Any]):
    resource = Kind("v1", "ConfigMap")

    async def reconcile(self, axn: Any) -> None: ...


OPERATOR = Operator(name="op", group="example.com", controllers=[ConfigMaps, Small])


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


def certificate_of(client: Any = None, *, folder: Path | None = None) -> ServingCertificate:
    return ServingCertificate(
        client, names.secret(OPERATOR, "default"), OPERATOR.watch_options, folder=folder and str(folder)
    )


def offer(certificate: ServingCertificate, pair: Pair) -> None:
    certificate._offer(pair.certificate.read_bytes(), pair.key.read_bytes())


def put(folder: Path, pair: Pair) -> None:
    (folder / "tls.crt").write_bytes(pair.certificate.read_bytes())
    (folder / "tls.key").write_bytes(pair.key.read_bytes())


def served(certificate: ServingCertificate, authority: Authority, *, newest: ssl.TLSVersion | None = None) -> str:
    """Shake hands in memory; the name in the certificate that was shown, and that the client verified."""
    trust = ssl.create_default_context(cafile=str(authority.certificate))
    if newest is not None:
        trust.maximum_version = newest
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = trust.wrap_bio(to_client, to_server, server_hostname="127.0.0.1")
    server = certificate.context.wrap_bio(to_server, to_client, server_side=True)
    for end in (client, server, client, server, client):
        with contextlib.suppress(ssl.SSLWantReadError):
            end.do_handshake()
    shown: Any = client.getpeercert()
    return str(shown["subject"][0][0][1])


# --- the certificate --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_handshake_shows_the_newest_certificate_also_one_with_a_key_of_another_type(
    authority: Authority, tmp_path: Path, version: ssl.TLSVersion
) -> None:
    """Regression: loaded into one context, an EC certificate goes on being served beside a later RSA one."""
    certificate = certificate_of()
    with pytest.raises(ssl.SSLError):
        served(certificate, authority)
    offer(certificate, authority.issue("elliptic"))
    assert served(certificate, authority, newest=version) == "elliptic"
    offer(certificate, rsa(authority, tmp_path))
    assert served(certificate, authority, newest=version) == "rsa"
    offer(certificate, authority.issue("again"))
    assert served(certificate, authority, newest=version) == "again"


def rsa(authority: Authority, folder: Path) -> Pair:
    """As cert-manager makes them by default."""
    pair, request = Pair(folder / "rsa.crt", folder / "rsa.key"), folder / "rsa.csr"
    (folder / "rsa.ext").write_text("subjectAltName=IP:127.0.0.1\n", "ascii")
    make = ["openssl", "req", "-new", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=rsa", "-keyout", pair.key]
    subprocess.run([*make, "-out", request], check=True, capture_output=True)
    sign = ["openssl", "x509", "-req", "-in", request, "-CA", authority.certificate, "-CAkey", authority._key]
    more = ["-CAcreateserial", "-days", "2", "-extfile", folder / "rsa.ext", "-out", pair.certificate]
    subprocess.run([*sign, *more], check=True, capture_output=True)
    return pair


def test_older_versions_of_tls_are_refused(authority: Authority) -> None:
    """Regression: with Debian's Python, which is in the image, the configuration of OpenSSL could allow them."""
    certificate = certificate_of()
    offer(certificate, authority.issue("one"))
    assert certificate.context.minimum_version is ssl.TLSVersion.TLSv1_2
    assert served(certificate, authority) == "one"


@pytest.mark.parametrize("bad", ["nothing", "no key", "text", "other key", "locked key", "half"])
def test_what_cannot_be_loaded_changes_nothing_and_is_said_once(
    authority: Authority, bad: str, caplog: pytest.LogCaptureFixture
) -> None:
    good, other = authority.issue("good"), authority.issue("other")
    text, key = good.certificate.read_bytes(), good.key.read_bytes()
    lock = ["openssl", "ec", "-aes256", "-passout", "pass:secret", "-in", good.key]
    certificate = certificate_of()
    offer(certificate, good)
    assert certificate.problem == ""
    offers = {
        "nothing": (b"", b""),
        "no key": (text, b""),
        "text": (b"garbage", b"garbage"),
        "other key": (text, other.key.read_bytes()),
        "locked key": (text, subprocess.run(lock, check=True, capture_output=True).stdout),
        "half": (text[: len(text) // 2], key),
    }
    for _ in range(2):
        certificate._offer(*offers[bad])

    assert served(certificate, authority) == "good"
    assert certificate.ready
    assert certificate.problem.startswith("webhook certificate of Secret default/op-webhook-tls: ")
    (said,) = [record for record in caplog.records if record.levelname == "WARNING"]
    assert said.message == "cannot load a new certificate"
    assert not any(part in str(vars(said)) for part in ("PRIVATE", key.decode().splitlines()[1]))
    offer(certificate, other)
    assert (served(certificate, authority), certificate.problem) == ("other", "")


@pytest.mark.parametrize("days", [2, 365, 9999])
def test_the_end_of_a_certificate_is_known(tmp_path: Path, days: int) -> None:
    """9999 days end after 2050: then the year has four digits."""
    pair = Pair(tmp_path / "a.crt", tmp_path / "a.key")
    new = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=a", "-days", str(days)]
    paths = ["-keyout", str(pair.key), "-out", str(pair.certificate)]
    subprocess.run(["openssl", "req", "-x509", *new, *paths], check=True, capture_output=True)
    certificate = certificate_of()
    offer(certificate, pair)
    shown = subprocess.run(
        ["openssl", "x509", "-noout", "-enddate", "-in", pair.certificate], check=True, capture_output=True, text=True
    ).stdout
    told = datetime.strptime(f"{shown.strip()} +0000", "notAfter=%b %d %H:%M:%S %Y GMT %z")
    assert certificate.not_after == told


RSA_KEY = rsa_keys.generate_private_key(65537, 2048)
EC_KEY = ec.generate_private_key(ec.SECP256R1())
NOW = datetime.now(UTC).replace(microsecond=0)


def made(end: datetime, key: Any = EC_KEY, *, issuer: str = "") -> x509.Certificate:
    """As cert-manager makes them for a self-signed Issuer: no subject, and all names in an extension."""
    names = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, issuer)] if issuer else [])
    return (
        x509.CertificateBuilder(names, x509.Name([]), key.public_key(), x509.random_serial_number(), EARLY, end)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("op.default.svc")]), critical=True)
        .sign(key, SHA256())
    )


EARLY = datetime(2020, 1, 1, tzinfo=UTC)
CENTURY = timedelta(days=36_525)


@pytest.mark.parametrize("key", [EC_KEY, RSA_KEY], ids=["ECDSA", "RSA"])
@pytest.mark.parametrize("end", [NOW, datetime(2049, 12, 31, 23, 59, 59, tzinfo=UTC), NOW + CENTURY])
def test_the_end_of_the_first_certificate_of_a_chain_counts(key: Any, end: datetime) -> None:
    """Later ones are those of its issuers, which end before or after it. Keys are in the form of cert-manager."""
    chain = [made(end, key), made(EARLY + CENTURY)]
    text = b"".join(each.public_bytes(Encoding.PEM) for each in chain)
    private = key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
    certificate = certificate_of()
    certificate._offer(b"issued by hand\n" + text, private)
    assert (certificate.problem, certificate.not_after) == ("", end)


def test_what_looks_like_a_time_in_a_name_is_not_the_end() -> None:
    """Regression: the end was looked for by a pattern over all bytes."""
    name = "\x17\x0d990101000000Z\x17\x0d990101000000Z"
    assert end_of(made(NOW, issuer=name).public_bytes(Encoding.DER)) == NOW


@given(
    end=st.datetimes(datetime(2021, 1, 1), datetime(9999, 12, 31), timezones=st.just(UTC)),  # noqa: DTZ001
    cut=st.integers(0, 500),
    place=st.integers(0, 500),
    byte=st.integers(0, 255),
)
def test_of_a_damaged_certificate_an_end_is_read_or_nothing(end: datetime, cut: int, place: int, byte: int) -> None:
    der = made(end).public_bytes(Encoding.DER)
    assert end_of(der) == end.replace(microsecond=0)
    changed = bytearray(der)
    changed[place % len(der)] = byte
    for damaged in (bytes(changed), der[:cut], der[cut:], der + der):
        with contextlib.suppress(ValueError):
            assert end_of(damaged).tzinfo is not None


@given(st.binary(max_size=60))
def test_bytes_that_are_no_certificate_have_no_end_and_are_not_served(garbage: bytes) -> None:
    with pytest.raises(ValueError, match="the end of its first certificate cannot be read"):
        end_of(garbage)
    certificate = certificate_of()
    wrapped = b"-----BEGIN CERTIFICATE-----\n%s\n-----END CERTIFICATE-----\n"
    for text in (garbage, wrapped % garbage, wrapped % b64encode(garbage)):
        certificate._offer(text, garbage + b"k")
        assert not certificate.ready


@pytest.mark.parametrize("memory", [True, False])
def test_a_key_lies_in_no_file_that_others_can_read(memory: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not memory:
        monkeypatch.delattr(os, "memfd_create")
    with serving_module._file(b"the key") as path:
        assert Path(path).read_bytes() == b"the key"
        # What is in memory has no name: only this process, and root, can open it.
        assert memory == path.startswith("/proc/self/fd/")
        if not memory:
            assert stat.S_IMODE(Path(path).stat().st_mode) == 0o600
    assert not Path(path).exists()


def test_many_certificates_leave_no_memory(authority: Authority) -> None:
    pairs = [authority.issue("one"), authority.issue("two")]
    certificate = certificate_of()
    for pair in pairs:
        offer(certificate, pair)
    gc.collect()
    before, open_files = count_contexts(), count_open_files()
    for number in range(200):
        offer(certificate, pairs[number % 2])
    assert count_contexts() == before
    assert count_open_files() == open_files


def count_open_files() -> int:
    folder = Path("/proc/self/fd")
    return len([*folder.iterdir()]) if folder.exists() else 0


def count_contexts() -> int:
    return sum(isinstance(each, ssl.SSLContext) for each in gc.get_objects())


async def test_a_folder_is_read_again_when_its_files_change(
    authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving_module, "FOLDER_SECONDS", 0.01)
    certificate = certificate_of(folder=tmp_path)
    assert certificate.problem == f"webhook certificate of {tmp_path}: not read yet"
    async with running(certificate.run):
        await until(lambda: "holds no certificate" in certificate.problem)
        put(tmp_path, authority.issue("first"))
        await until(lambda: certificate.ready)
        put(tmp_path, authority.issue("second"))
        await until(lambda: served(certificate, authority) == "second")
        (tmp_path / "tls.key").unlink()
        await until(lambda: certificate.problem)
        assert served(certificate, authority) == "second"


# --- the process ------------------------------------------------------------------------------------------------------


class Nowhere:
    """A cluster that nobody answers for: no list ever ends."""

    source = "the test"

    async def connect(self) -> Connection:
        return Connection(server="http://127.0.0.1:1")


@asynccontextmanager
async def serving(folder: Path, *, operator: Operator = OPERATOR, **settings: Any) -> AsyncIterator[Process]:
    """A running process; `stop` was not asked for when the block begins."""
    webhooks = WebhookSettings(port=0, certificate=str(folder), **settings)
    config = Config(http_host="127.0.0.1", http_port=0, extras=(webhooks,))
    process, stop = Process(operator, config, Nowhere()), asyncio.Event()
    process.asked_to_stop = stop  # type: ignore[attr-defined]
    run = asyncio.create_task(process.run(stop))
    try:
        await until(lambda: process._started or run.done())
        yield process
    finally:
        stop.set()
        async with asyncio.timeout(PATIENCE):
            await run


async def post(process: Process, authority: Authority, *, reused: Any = None) -> tuple[int, dict[str, str], Any]:
    """Send a review; status, headers and the connection."""
    webhooks = run_of(process, WebhookRun)
    trust = ssl.create_default_context(cafile=str(authority.certificate))
    reader, writer = reused or await asyncio.open_connection("127.0.0.1", webhooks.server.port, ssl=trust)
    (path,) = webhooks.app.routes
    request = {"uid": "u", "operation": "CREATE", "kind": {"group": "", "version": "v1", "kind": "ConfigMap"}}
    request |= {
        "object": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}},
        "name": "a",
        "userInfo": {},
    }
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    body = json.dumps(review).encode()
    writer.write(b"POST %s?timeout=5s HTTP/1.1\r\nhost: a\r\n" % path.encode())
    writer.write(b"content-length: %d\r\n\r\n" % len(body) + body)
    status, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().splitlines()
    headers = {name.lower(): value for line in lines if line for name, value in [line.split(": ", 1)]}
    answer = json.loads(await reader.readexactly(int(headers["content-length"])))
    assert answer["response"]["allowed"] is False
    return int(status.split()[1]), headers, (reader, writer)


async def test_a_process_answers_before_its_first_list_and_is_ready_with_a_certificate(
    authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(serving_module, "FOLDER_SECONDS", 0.01)
    caplog.set_level("INFO")
    async with serving(tmp_path) as process:
        webhooks = run_of(process, WebhookRun)
        (started,) = [record for record in caplog.records if record.message == "started"]
        assert vars(started)["webhook_port"] == webhooks.server.port
        red = f"webhook certificate of {tmp_path}: "
        assert any(line.startswith(red) for line in process.readiness().lines)
        put(tmp_path, authority.issue("one"))
        await until(lambda: webhooks.ready)
        assert not any(line.startswith(red) for line in process.readiness().lines)
        assert not any(stream.synced for stream in process.streams)
        status, _, (_, writer) = await post(process, authority)
        writer.transport.abort()
        assert status == 200


async def test_readiness_is_red_without_a_certificate_and_while_the_process_drains(
    authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving_module, "FOLDER_SECONDS", 0.01)
    only = Operator(name="op", group="example.com", controllers=[Small])
    async with serving(tmp_path, operator=only, drain=1.5) as process:
        assert not process.readiness().ok
        put(tmp_path, authority.issue("one"))
        await until(lambda: process.readiness().ok)
        _, headers, connection = await post(process, authority)
        assert "connection" not in headers

        process.asked_to_stop.set()  # type: ignore[attr-defined]
        await until(lambda: not process.readiness().ok)
        assert "webhooks: stopping" in process.readiness().lines
        assert process.tasks.leading, "the work goes on while the webhooks are drained"
        for reused in (connection, None):
            status, headers, (reader, _) = await post(process, authority, reused=reused)
            assert (status, headers["connection"]) == (200, "close")
            assert await reader.read() == b""
        await until(lambda: not process.tasks.leading)
    with pytest.raises(ConnectionError):
        await asyncio.open_connection("127.0.0.1", run_of(process, WebhookRun).server.port)


@pytest.mark.parametrize("deployed", [True, False])
def test_the_permissions_for_the_certificate_are_granted_to_an_operator_that_the_api_server_reaches(
    deployed: bool,
) -> None:
    rules = [rule for granted in grants(OPERATOR, namespace="default", deployed=deployed).values() for rule in granted]
    assert any("op-webhook-tls" in rule.get("resourceNames", ()) for rule in rules) == deployed


async def test_a_process_without_webhooks_does_not_drain(tmp_path: Path) -> None:
    plain = Operator(name="op", group="example.com", controllers=[ConfigMaps])
    began = asyncio.get_running_loop().time()
    async with serving(tmp_path, operator=plain, drain=60.0) as process:
        assert find_run(process, WebhookRun) is None
    assert asyncio.get_running_loop().time() - began < PATIENCE


async def test_a_busy_port_of_the_webhooks_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        webhooks = WebhookSettings(port=port, certificate=str(tmp_path))
        config = Config(http_host="127.0.0.1", http_port=0, extras=(webhooks,))
        with pytest.raises(UsageError) as refused:
            await Process(OPERATOR, config, Nowhere()).run(asyncio.Event())
    assert str(refused.value).startswith(f"port {port} for webhooks is not free (")
    assert str(refused.value).endswith("): set BONNY_WEBHOOK_PORT to another port, or to 0 for any free one")


async def test_no_handshake_fails_while_certificates_are_swapped(authority: Authority, tmp_path: Path) -> None:
    pairs = [authority.issue("one"), authority.issue("two")]
    put(tmp_path, pairs[0])
    async with serving(tmp_path) as process:
        webhooks = run_of(process, WebhookRun)
        await until(lambda: webhooks.ready)
        swaps, answers = 0, 0

        async def swap() -> None:
            nonlocal swaps
            while True:
                swaps += 1
                offer(webhooks.certificate, pairs[swaps % 2])
                webhooks.certificate._offer(b"garbage", b"garbage")
                await asyncio.sleep(0)

        swapping = asyncio.create_task(swap())
        for _ in range(20):
            _, _, (_, writer) = await post(process, authority)
            writer.transport.abort()
            answers += 1
        swapping.cancel()
        assert answers == 20
        assert swaps > 20
