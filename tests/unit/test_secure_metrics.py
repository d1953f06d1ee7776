"""/metrics over TLS: what a client reads, what it must send, and what a process with it does without a cluster."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from bonny import Controller, Deploy, Kind, Operator
from bonny.client.config import Connection
from bonny.run.config import Config
from bonny.run.process import Process
from bonny.run.scrapers import Scrapers, metrics_secret
from bonny.run.secure_metrics import SecureMetrics
from bonny_dev.manifest.rbac import CLUSTER
from tests.support.certificates import Authority
from tests.support.waiting import until

pytestmark = pytest.mark.both_loops

PATIENCE = 20.0
GET = b"GET /metrics HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\nConnection: close\r\n\r\n"


class ConfigMaps(Controller[Any]):
    resource = Kind("v1", "ConfigMap")

    async def reconcile(self, axn: Any) -> None: ...


OPERATOR = Operator(name="op", group="example.com", controllers=[ConfigMaps], deploy=Deploy(secure_metrics=True))
BY_CERT_MANAGER = Operator(name="op", group="example.com", deploy=Deploy(certificates="cert-manager"))


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


class Reviewer:
    """The API server: the token `good` is that of a user who may read metrics, `stranger` of one who may not."""

    async def create(self, _: Any, review: Any) -> Any:
        spec = review["spec"]
        if "token" in spec:
            return {"status": {"authenticated": spec["token"] != "bad", "user": {"username": spec["token"]}}}
        return {"status": {"allowed": spec["user"] == "good"}}


@asynccontextmanager
async def serving(authority: Authority) -> AsyncIterator[SecureMetrics]:
    config, client = Config(http_host="127.0.0.1", secure_metrics_port=0), SimpleNamespace()
    asking: Any = Reviewer()
    served = SecureMetrics(
        OPERATOR, config, client, asking, lambda accept: (b"up 1\n", accept or "text/plain"), namespace="default"
    )
    show(served, authority)
    await served.start()
    try:
        async with asyncio.timeout(PATIENCE):
            yield served
    finally:
        await served.stop()


def show(served: SecureMetrics, authority: Authority) -> None:
    pair = authority.issue("one")
    served.certificate._offer(pair.certificate.read_bytes(), pair.key.read_bytes())


async def exchange(port: int, request: bytes, authority: Authority | None) -> tuple[str, str]:
    """Head and body of the answer, over TLS if there is an authority to trust."""
    trust = authority and ssl.create_default_context(cafile=str(authority.certificate))
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trust)
    try:
        writer.write(request)
        head, _, body = (await reader.read()).decode().partition("\r\n\r\n")
        return head, body
    finally:
        writer.transport.abort()


async def test_a_client_reads_what_the_api_server_lets_it(authority: Authority) -> None:
    async with serving(authority) as served:
        answers = [await exchange(served.port, GET % token, authority) for token in (b"good", b"stranger", b"bad")]
    assert [int(head.split()[1]) for head, _ in answers] == [200, 403, 401]
    assert answers[0][1] == "up 1\n"
    assert answers[1][1] == "403: user stranger may not get /metrics\n"
    assert "www-authenticate: Bearer" in answers[2][0]


@pytest.mark.parametrize(
    ("request_", "status", "body"),
    [
        (GET.replace(b"GET", b"HEAD"), 200, ""),
        (GET.replace(b"GET", b"POST"), 405, "405: Method Not Allowed"),
        (GET.replace(b"/metrics", b"/healthz"), 404, "404: Not Found"),
        (GET.replace(b"/metrics", b"/"), 404, "404: Not Found"),
        (GET.replace(b"/metrics", b"/metrics?a=b"), 200, "up 1\n"),
    ],
)
async def test_only_metrics_are_served(authority: Authority, request_: bytes, status: int, body: str) -> None:
    async with serving(authority) as served:
        head, text = await exchange(served.port, request_ % b"good", authority)
    assert (int(head.split()[1]), text) == (status, body)


async def test_nothing_is_answered_in_plain_text(authority: Authority) -> None:
    async with serving(authority) as served:
        assert await exchange(served.port, GET % b"good", None) == ("", "")


# --- the process ------------------------------------------------------------------------------------------------------


class Nowhere:
    """A cluster that never answers."""

    source = "the test"

    async def connect(self) -> Connection:
        return Connection(server="http://127.0.0.1:1")


async def test_a_process_serves_metrics_over_tls_alone_and_is_no_less_ready_without_their_certificate(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = Config(http_host="127.0.0.1", http_port=0, secure_metrics_port=0)
    process, stop = Process(OPERATOR, config, Nowhere()), asyncio.Event()
    run = asyncio.create_task(process.run(stop))
    try:
        await until(lambda: process._started or run.done())
        served = process.secure_metrics
        assert served is not None
        plain = GET.replace(b"%s", b"good")
        assert (await exchange(process.probes.port, plain, None))[0].startswith("HTTP/1.1 404")
        assert (await exchange(process.probes.port, plain.replace(b"/metrics", b"/healthz"), None))[1] == "ok\n"
        with pytest.raises((ssl.SSLError, ConnectionError)):  # asyncio, uvloop
            await exchange(served.port, plain, authority)
        assert served.certificate.problem in process.readiness().lines
        assert [str(part) for part in process._term] == ["the metrics certificates", "ConfigMaps"]

        show(served, authority)
        head, body = await exchange(served.port, plain, authority)
        assert (head.split()[1], body) == ("503", "503: the API server does not say who may read /metrics: try again\n")
        monkeypatch.setattr(served, "_scrapers", Scrapers(Reviewer()))  # type: ignore[arg-type]
        assert "leader_election_master_status" in (await exchange(served.port, plain, authority))[1]
    finally:
        stop.set()
        async with asyncio.timeout(PATIENCE):
            await run
    with pytest.raises(ConnectionError):
        await asyncio.open_connection("127.0.0.1", served.port)


@pytest.mark.parametrize(("port", "asked"), [(None, False), (0, True)])
def test_a_process_asks_for_the_permissions_of_what_it_serves(port: int | None, asked: bool) -> None:
    process = Process(OPERATOR, Config(secure_metrics_port=port), Nowhere())
    needed = process._permissions._needs()
    secrets = [rule.get("resourceNames") for rule in needed.get("default", ())]
    assert ([metrics_secret(OPERATOR, "default").key.name] in secrets) == asked
    assert any("tokenreviews" in rule["resources"] for rule in needed[CLUSTER]) == asked


def test_where_cert_manager_makes_the_certificate_the_leader_makes_none() -> None:
    nothing: Any = SimpleNamespace(requests=None)
    served = SecureMetrics(BY_CERT_MANAGER, Config(), nothing, nothing, lambda _: (b"", ""), namespace="default")
    assert served.issuers() == []
