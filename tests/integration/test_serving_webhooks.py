"""Webhooks of a running operator on a real API server: the Secret with their certificate, and who answers."""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
import time
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from bonny import Controller, Kind, Operator
from bonny.client.api import Client
from bonny.client.config import Kubeconfig
from bonny.resource import Resource
from bonny.tls.secret import BUNDLE, CERTIFICATE, KEY
from bonny.tls.serving import ServingCertificate
from bonny.webhooks import Admission, Denied, Review, names
from bonny.webhooks import serving as webhooks_of_a_process
from bonny.webhooks.serving import WebhookRun
from bonny.webhooks.settings import WebhookSettings
from bonny_dev.sandbox import Sandbox
from bonny_dev.testing.faults import FaultProxy
from tests.support.certificates import Authority, Pair
from tests.support.extras import run_of
from tests.support.serving import serving
from tests.support.waiting import running, until

CONFIG_MAP = Kind("v1", "ConfigMap")


class Frozen(Admission[Any]):
    """Reads another object, as a webhook has to: no policy can."""

    resource = CONFIG_MAP

    async def validate(self, review: Review[Any]) -> None:
        assert review.client is not None
        frozen = await review.client.get(CONFIG_MAP, "frozen", namespace="default")
        if review.resource["metadata"]["name"] == frozen["data"]["name"]:
            raise Denied("is frozen", field="metadata.name")


class ConfigMaps(Controller[Any]):
    resource = CONFIG_MAP

    async def reconcile(self, axn: Any) -> None:
        raise AssertionError("a standby does not work")


OPERATOR = Operator(name="serves", group="example.com", controllers=[Frozen, ConfigMaps])
SECRET = names.secret(OPERATOR, "default").key.name
ANY_PORT = (WebhookSettings(port=0),)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


def secret(pair: Pair | None) -> Resource:
    data = {CERTIFICATE: b"", KEY: b""}
    if pair is not None:
        data = {CERTIFICATE: pair.certificate.read_bytes(), KEY: pair.key.read_bytes()}
    encoded = {name: b64encode(value).decode() for name, value in data.items()}
    metadata = {"name": SECRET, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": metadata, "data": encoded}


@pytest.fixture
async def limited(sandbox: Sandbox) -> AsyncIterator[Client]:
    """A client that may do nothing but follow this one Secret."""
    about = {"name": "follows", "namespace": "default"}
    rule = {"apiGroups": [""], "resources": ["secrets"], "resourceNames": [SECRET], "verbs": ["list", "watch"]}
    subject = {"kind": "ServiceAccount", **about}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "follows"}
    group = "rbac.authorization.k8s.io/v1"
    sandbox.apply(
        [
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": about},
            {"apiVersion": group, "kind": "Role", "metadata": about, "rules": [rule]},
            {
                "apiVersion": group,
                "kind": "RoleBinding",
                "metadata": about,
                "subjects": [subject],
                "roleRef": reference,
            },
        ]
    )
    with FaultProxy(sandbox, token=sandbox.service_account_token("default", "follows")) as proxy:
        client = Client(Kubeconfig(str(proxy.kubeconfig)), user_agent="serves/1")
        yield client
        await client.close()


async def test_the_certificate_follows_each_change_of_its_secret(
    sandbox: Sandbox, limited: Client, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = authority.issue("first"), authority.issue("second")
    certificate = ServingCertificate(limited, names.secret(OPERATOR, "default"), OPERATOR.watch_options)

    async def apply(made: Resource) -> None:
        await asyncio.to_thread(sandbox.apply, made)

    async with running(certificate.run):
        await until(lambda: "holds no certificate" in certificate.problem)
        await apply(secret(None))
        await until(lambda: len(certificate.stream.store) == 1)
        assert not certificate.ready
        await apply(secret(first))
        await until(lambda: certificate.ready and not certificate.problem)
        served, end = certificate._current, certificate.not_after

        garbage = secret(first) | {"data": {CERTIFICATE: "Z2FyYmFnZQ==", KEY: "Z2FyYmFnZQ=="}}
        await apply(garbage)
        await until(lambda: certificate.problem)
        await asyncio.to_thread(sandbox.delete, "v1", "Secret", SECRET)
        await until(lambda: len(certificate.stream.store) == 0)
        assert (certificate._current, certificate.not_after, certificate.ready) == (served, end, True)

        await apply(secret(second))
        await until(lambda: certificate._current is not served)
        assert certificate.problem == ""
    await asyncio.to_thread(sandbox.delete, "v1", "Secret", SECRET)
    said = [record.message for record in caplog.records if record.name.startswith("bonny.")]
    assert said == ["cannot load a new certificate"] * 3, "nothing in it, garbage, and nothing again"


@pytest.fixture
def held(sandbox: Sandbox) -> Iterator[None]:
    """Another replica leads."""
    about = {"name": OPERATOR.name, "namespace": "default"}
    spec = {"holderIdentity": "another", "leaseDurationSeconds": 3600, "leaseTransitions": 1}
    spec |= {"renewTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")}
    sandbox.apply({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": about, "spec": spec})
    yield
    sandbox.delete("coordination.k8s.io/v1", "Lease", OPERATOR.name)


@pytest.mark.usefixtures("held")
def test_a_standby_answers_reviews_and_reads_for_them(sandbox: Sandbox, authority: Authority, tmp_path: Path) -> None:
    pair = authority.issue("standby")
    (tmp_path / CERTIFICATE).write_bytes(pair.certificate.read_bytes())
    (tmp_path / KEY).write_bytes(pair.key.read_bytes())
    registration = names.configuration(OPERATOR, "default")
    kinds = [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}]
    sandbox.apply(config_map("frozen", name="ice"))
    settings = WebhookSettings(port=0, certificate=str(tmp_path))
    with serving(OPERATOR, sandbox.kubeconfig, extras=(settings,), leader_election=True) as running_:
        process = running_.process
        webhooks = run_of(process, WebhookRun)
        (path,) = webhooks.app.routes
        client = {
            "url": f"https://127.0.0.1:{webhooks.server.port}{path}",
            "caBundle": b64encode(authority.certificate.read_bytes()).decode(),
        }
        webhook = {"name": "frozen.serves.example.com", "clientConfig": client, "rules": kinds, "sideEffects": "None"}
        webhook |= {"admissionReviewVersions": ["v1"], "timeoutSeconds": 5, "failurePolicy": "Fail"}
        webhook |= {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}}}
        sandbox.apply(
            {
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": "ValidatingWebhookConfiguration",
                "metadata": {"name": registration},
                "webhooks": [webhook],
            }
        )
        try:
            collection = "/api/v1/namespaces/default/configmaps"
            sandbox.eventually(lambda: sandbox.request("POST", collection, config_map("ice")).status == 422)
            refused = sandbox.request("POST", collection, config_map("ice"))
            assert "is frozen" in refused.body["message"]
            assert sandbox.request("POST", collection, config_map("water")).status == 201
            assert "standing by" in process.readiness().lines
        finally:
            sandbox.delete("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", registration)
    for name in ("frozen", "water"):
        sandbox.delete("v1", "ConfigMap", name)


def test_a_new_installation_makes_its_certificate_and_is_ready_with_it(sandbox: Sandbox) -> None:
    sandbox.apply(secret(None))
    alone = Operator(name=OPERATOR.name, group=OPERATOR.group, controllers=[Frozen])
    with serving(alone, sandbox.kubeconfig, extras=ANY_PORT, pod_namespace="default") as running_:
        webhooks = run_of(running_.process, WebhookRun)
        made = sandbox.get("v1", "Secret", SECRET)
        assert made is not None
        trust = ssl.create_default_context(cadata=b64decode(made["data"][BUNDLE]).decode())
        address = "127.0.0.1", webhooks.server.port
        host = names.secret(alone, "default").hosts[0]
        with socket.create_connection(address, 10) as raw, trust.wrap_socket(raw, server_hostname=host) as verified:
            assert verified.version() == "TLSv1.3"
        scraped = running_.process.exposition()[0].decode()
        (line,) = re.findall(r"^bonny_webhook_certificate_expiration_timestamp_seconds (\S+)", scraped, re.MULTILINE)
        assert float(line) == pytest.approx(time.time() + 365 * 86_400, abs=86_400)
    sandbox.delete("v1", "Secret", SECRET)


@pytest.mark.usefixtures("held")
def test_a_release_that_brings_the_first_webhook_replaces_one_without(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: the leader, of the old release, makes no certificate, and its pod stays until a new one is ready."""
    monkeypatch.setattr(webhooks_of_a_process, "PATIENCE_SECONDS", 1.0)
    sandbox.apply(secret(None))
    alone = Operator(name=OPERATOR.name, group=OPERATOR.group, controllers=[Frozen])
    settings = {"pod_namespace": "default", "leader_election": True}
    with serving(alone, sandbox.kubeconfig, extras=ANY_PORT, **settings) as running_:
        lines = running_.process.readiness().lines
        assert "standing by" in lines
        assert any("holds no certificate" in line for line in lines)
    sandbox.delete("v1", "Secret", SECRET)


def config_map(called: str, **data: str) -> Resource:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": called, "namespace": "default"}, "data": data}
