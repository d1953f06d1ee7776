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
from bonny.metrics_auth.extra import EXTRA
from bonny.metrics_auth.scrapers import Scrapers, metrics_secret
from bonny.metrics_auth.server import MetricsRun
from bonny.metrics_auth.settings import MetricsSettings
from bonny.run.config import Config
from bonny.run.process import Process
from bonny_dev.manifest.rbac import CLUSTER, grants
from tests.support.certificates import Authority
from tests.support.extras import run_of
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

    async def __aenter__(self) -> Reviewer:
        return self

    async def __aexit__(self, *_: object) -> None: ...


def a_process(operator: Operator = OPERATOR, port: int | None = 0) -> Any:
    """A process that does not run; its clients reach no API server but that of `Reviewer`."""
    config = Config(http_host="127.0.0.1", extras=(MetricsSettings(port=port),))
    process: Any = Process(operator, config, Nowhere())
    process.client, process.connected = SimpleNamespace(requests=None), Reviewer
    process.exposition = lambda accept: (b"up 1\n", accept or "text/plain")
    return process


@asynccontextmanager
async def serving(authority: Authority) -> AsyncIterator[MetricsRun]:
    served = MetricsRun(a_process())
    show(served, authority)
    async with served.serving(), asyncio.timeout(PATIENCE):
        yield served


def show(served: MetricsRun, authority: Authority) -> None:
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
        answers = [
            await exchange(served.server.port, GET % token, authority) for token in (b"good", b"stranger", b"bad")
        ]
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
        head, text = await exchange(served.server.port, request_ % b"good", authority)
    assert (int(head.split()[1]), text) == (status, body)


async def test_nothing_is_answered_in_plain_text(authority: Authority) -> None:
    async with serving(authority) as served:
        assert await exchange(served.server.port, GET % b"good", None) == ("", "")


# --- the process ------------------------------------------------------------------------------------------------------


class Nowhere:
    """A cluster that never answers."""

    source = "the test"

    async def connect(self) -> Connection:
        return Connection(server="http://127.0.0.1:1")


async def test_a_process_serves_metrics_over_tls_alone_and_is_no_less_ready_without_their_certificate(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = Config(http_host="127.0.0.1", http_port=0, extras=(MetricsSettings(port=0),))
    process, stop = Process(OPERATOR, config, Nowhere()), asyncio.Event()
    run = asyncio.create_task(process.run(stop))
    try:
        await until(lambda: process._started or run.done())
        served = run_of(process, MetricsRun)
        plain = GET.replace(b"%s", b"good")
        assert (await exchange(process.probes.port, plain, None))[0].startswith("HTTP/1.1 404")
        assert (await exchange(process.probes.port, plain.replace(b"/metrics", b"/healthz"), None))[1] == "ok\n"
        with pytest.raises((ssl.SSLError, ConnectionError)):  # asyncio, uvloop
            await exchange(served.server.port, plain, authority)
        assert served.certificate.problem in process.readiness().lines
        assert [str(part) for part in process.term.parts] == ["the metrics certificates", "ConfigMaps"]

        show(served, authority)
        head, body = await exchange(served.server.port, plain, authority)
        assert (head.split()[1], body) == ("503", "503: the API server cannot authorize you: try again\n")
        monkeypatch.setattr(served, "_scrapers", Scrapers(Reviewer()))  # type: ignore[arg-type]
        assert "leader_election_master_status" in (await exchange(served.server.port, plain, authority))[1]
    finally:
        stop.set()
        async with asyncio.timeout(PATIENCE):
            await run
    with pytest.raises(ConnectionError):
        await asyncio.open_connection("127.0.0.1", served.server.port)


@pytest.mark.parametrize(("port", "serves"), [(None, False), (0, True)])
def test_metrics_are_served_over_tls_where_a_port_is_set(port: int | None, serves: bool) -> None:
    assert isinstance(EXTRA.run(a_process(port=port)), MetricsRun) == serves


@pytest.mark.parametrize(
    ("secure", "deployed", "granted"), [(False, True, False), (True, False, False), (True, True, True)]
)
def test_the_permissions_are_granted_to_a_deployed_operator_that_serves_them(
    secure: bool, deployed: bool, granted: bool
) -> None:
    operator = Operator(name="op", group="example.com", controllers=[ConfigMaps], deploy=Deploy(secure_metrics=secure))
    needed = grants(operator, namespace="default", deployed=deployed)
    secrets = [rule.get("resourceNames") for rule in needed.get("default", ())]
    assert ([metrics_secret(OPERATOR, "default").key.name] in secrets) == granted
    assert any("tokenreviews" in rule["resources"] for rule in needed[CLUSTER]) == granted


def test_where_cert_manager_makes_the_certificate_the_leader_makes_none() -> None:
    assert list(MetricsRun(a_process(BY_CERT_MANAGER)).term()) == []
