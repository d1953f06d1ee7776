"""/metrics over TLS on a real API server: who may read it is what RBAC says, for a leader and for a standby."""

from __future__ import annotations

import socket
import ssl
import sys
from base64 import b64decode
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import NamedTuple

import pytest

from bonny.client.api import Client
from bonny.client.config import Kubeconfig
from bonny.metrics_auth.scrapers import Scrapers, metrics_rules, metrics_secret
from bonny.resource import Resource
from bonny.tls.issuer import Issuer
from bonny.tls.rotation import RotationStep
from bonny.tls.secret import BUNDLE
from bonny.tls.serving import ServingCertificate
from bonny_dev.manifest.bundle import documents
from bonny_dev.sandbox import Sandbox
from bonny_dev.testing import record_permissions
from bonny_dev.testing.faults import FaultProxy
from tests.conftest import Start
from tests.support import scraped
from tests.support.processes import OperatorProcess, requests
from tests.support.scraped import NAME, operator
from tests.support.waiting import running, until

SECRET = metrics_secret(operator, NAME).key.name
HOST = f"{NAME}.{NAME}.svc"
REVIEWS = (("POST", "tokenreviews", ""), ("POST", "subjectaccessreviews", ""))


class Answered(NamedTuple):
    status: int
    head: str
    body: str


def account(name: str) -> Resource:
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": NAME}}


def binding() -> Resource:
    """As the documentation says to write it for Prometheus."""
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": f"{NAME}-metrics-reader"}
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "prometheus-scrapes"},
        "subjects": [{"kind": "ServiceAccount", "name": "prometheus", "namespace": NAME}],
        "roleRef": reference,
    }


@pytest.fixture(scope="module", autouse=True)
def _installed(sandbox: Sandbox) -> Iterator[None]:
    """The manifest without what only a cluster with nodes runs, and two clients."""
    objects = documents(operator, image="registry.example.com/scraped:1.0.0")
    objects += [account("prometheus"), account("other"), binding()]
    sandbox.apply(objects)
    yield
    for each in reversed(objects):
        if each["kind"] != "Namespace":
            namespace = each["metadata"].get("namespace", "")
            sandbox.delete(each["apiVersion"], each["kind"], each["metadata"]["name"], namespace=namespace)


def exchange(port: int, request: bytes, trust: ssl.SSLContext | None) -> bytes:
    """Send a request over one connection, and read until the operator closes it."""
    with (
        socket.create_connection(("127.0.0.1", port), 10) as connection,
        nullcontext(connection) if trust is None else trust.wrap_socket(connection, server_hostname=HOST) as used,
    ):
        used.sendall(request)
        return b"".join(iter(lambda: used.recv(2**16), b""))


def scrape(port: int, trust: ssl.SSLContext | None, authorization: str = "", path: str = "/metrics") -> Answered:
    header = f"Authorization: {authorization}\r\n" if authorization else ""
    request = f"GET {path} HTTP/1.1\r\nHost: {HOST}\r\n{header}Connection: close\r\n\r\n"
    head, _, body = exchange(port, request.encode(), trust).decode().partition("\r\n\r\n")
    return Answered(int(head.split()[1]), head, body)


def test_who_may_read_the_metrics_reads_them_from_each_replica_and_nobody_else_does(
    sandbox: Sandbox, start_operator: Start
) -> None:
    kubeconfig = sandbox.service_account_kubeconfig(NAME, NAME)
    settings = {"BONNY_SECURE_METRICS_PORT": "0", "BONNY_LEADER_ELECTION": "true", "BONNY_POD_NAMESPACE": NAME}
    command = [sys.executable, str(Path(scraped.__file__))]
    replicas = [start_operator(command, kubeconfig=kubeconfig, **settings) for _ in range(2)]
    for each in replicas:
        sandbox.eventually(lambda each=each: each.wait_ready().lines("certificate loaded"), within_seconds=30.0)
    made = sandbox.get("v1", "Secret", SECRET, namespace=NAME)
    assert made is not None
    trust = ssl.create_default_context(cadata=b64decode(made["data"][BUNDLE]).decode())
    tokens = {name: f"Bearer {sandbox.service_account_token(NAME, name)}" for name in ("prometheus", "other")}
    before = requests(sandbox)

    for replica in replicas:
        (started,) = replica.lines("started")
        port = started["metrics_port"]
        for _ in range(5):
            allowed = scrape(port, trust, tokens["prometheus"])
            assert allowed.status == 200
        assert f'leader_election_master_status{{name="{NAME}"}}' in allowed.body

        denied = scrape(port, trust, tokens["other"])
        assert (denied.status, denied.body) == (
            403,
            f"403: user system:serviceaccount:{NAME}:other may not get /metrics\n",
        )
        # Three new tokens in all: one address may send no more within a second.
        for credentials in ("", "Basic YTpi", f"{tokens['prometheus']}x"):
            refused = scrape(port, trust, credentials)
            assert (refused.status, "www-authenticate: Bearer" in refused.head) == (401, True)
        assert scrape(port, trust, tokens["prometheus"], path="/healthz").status == 404
        assert b"leader_election" not in exchange(port, b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n", None)
        assert [replica.probe(path)[0] for path in ("/metrics", "/healthz", "/readyz")] == [404, 200, 200]

        assert replica.lines("clients of /metrics cannot be reviewed") == []
        assert not any(token.removeprefix("Bearer ") in replica.text for token in tokens.values())
    assert sorted(is_leading(replica) for replica in replicas) == [False, True]
    after = requests(sandbox)
    assert [after[kind] - before.get(kind, 0) for kind in REVIEWS] == [2 * 3, 2 * 2], "an answer was not remembered"


def is_leading(replica: OperatorProcess) -> bool:
    return "leading" in replica.probe("/readyz")[1].splitlines()


async def test_certificate_and_reviews_use_exactly_their_permissions(sandbox: Sandbox) -> None:
    token = sandbox.service_account_token(NAME, NAME)
    with FaultProxy(sandbox, token=token) as proxy, record_permissions() as recorder:
        async with Client(Kubeconfig(str(proxy.kubeconfig)), user_agent="test") as client:
            secret = metrics_secret(operator, NAME)
            issuer = Issuer(client, secret, spread=0.1)
            certificate = ServingCertificate(client, secret, operator.watch_options)
            async with running(issuer.run), running(certificate.run):
                sandbox.request(
                    "PATCH",
                    f"/api/v1/namespaces/{NAME}/secrets/{SECRET}",
                    {"data": None},
                    content_type="application/merge-patch+json",
                )
                await until(lambda: certificate.ready and issuer.decision and issuer.decision.step is RotationStep.REST)
            scraper = sandbox.service_account_token(NAME, "prometheus")
            verdict = await Scrapers(client).verdict(
                [(b"authorization", f"Bearer {scraper}".encode())], address="10.0.0.1"
            )
    rules: dict[str, list[Resource]] = {}
    for namespace, rule in metrics_rules(operator, namespace=NAME):
        rules.setdefault(namespace, []).append(rule)
    compared = recorder.compared_with(rules)

    assert verdict.status == 200
    assert (compared.missing, compared.unused) == ({}, {})
