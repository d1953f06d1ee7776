"""Admission webhooks, called by a real API server: what is stored, who owns it, and what clients read."""

from __future__ import annotations

import asyncio
import time
from base64 import b64encode
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from bonny import Operator, Resource, Spec, Version
from bonny.client import Client
from bonny.client.config import Kubeconfig
from bonny.tls.server import TlsServer
from bonny.webhooks import Admission, Denied, Review
from bonny.webhooks.app import WebhookApp
from bonny.webhooks.serving import SERVER
from bonny_dev.crd.definition import crds
from bonny_dev.sandbox import Sandbox
from tests.support.administrator import Administrator, Answer, collection
from tests.support.certificates import Authority

pytestmark = pytest.mark.server

GROUP: Final = "gadgets.example.com"
SECRET: Final = "hunter2"
# A configuration works 30 ms after its write; a loaded machine may take several seconds.
CALLED_SECONDS: Final = 30.0


class GadgetSpec(Spec):
    """A gadget."""

    size: int = 2
    mode: str | None = None
    colour: str = ""


class Gadget(Version):
    """A thing with rules."""

    kind = "Gadget"
    version = "v1"
    storage = True
    hub = True
    spec: GadgetSpec


class GadgetAdmission(Admission[Gadget]):
    def default(self, review: Review[Gadget]) -> None:
        review.spec.mode = review.spec.mode or ("big" if review.spec.size > 3 else "small")
        match review.spec.colour:
            case "broken":
                raise ValueError(SECRET)
            case "renamed":
                review.resource["metadata"]["name"] = "other"

    async def validate(self, review: Review[Gadget]) -> None:
        if review.spec.size % 2:
            review.deny("must be even", field="spec.size")
        if review.spec.colour == "grey":
            review.warn("grey is out of\nfashion")
        stored = await review.client.list(Gadget, namespace=review.namespace)
        if any(review.spec.colour == other["spec"]["colour"] != "" for other in stored if review.operation == "CREATE"):
            raise Denied("is taken", field="spec.colour")

    def validate_delete(self, review: Review[Gadget]) -> None:
        if review.user.name == "ann" and review.resource["metadata"].get("labels", {}).get("keep"):
            raise Denied("ann must keep this gadget", forbidden=True)


OPERATOR = Operator(name="gadgets-operator", group=GROUP, crds=[Gadget], controllers=[GadgetAdmission])


@pytest.fixture(scope="module")
def server(sandbox: Sandbox) -> Iterator[Administrator]:
    with Administrator(sandbox) as server, server.installed(crds([Gadget], GROUP)):
        yield server


@pytest.fixture
async def app(sandbox: Sandbox, server: Administrator, tmp_path: Path) -> AsyncIterator[WebhookApp]:
    """Served on loopback, and called for gadgets."""
    authority = Authority(tmp_path)
    async with Client(Kubeconfig(str(sandbox.kubeconfig)), user_agent="test", group=GROUP) as client:
        app = WebhookApp(OPERATOR, client)
        context = authority.issue("webhook").server_context()
        listener = TlsServer(app, "127.0.0.1", 0, SERVER, context=context)
        await listener.start()
        configurations = list(_configurations(listener.port, authority.certificate.read_bytes()))
        try:
            for each in configurations:
                answer = await asyncio.to_thread(server.apply, each)
                assert (answer.status, answer.warnings) == (201, ()), answer.message
            await _until_called(server)
            yield app
        finally:
            for each in configurations:
                path = f"{collection(each)}/{each['metadata']['name']}"
                await asyncio.to_thread(server.request, "DELETE", path)
            await listener.stop()


def _configurations(port: int, ca: bytes) -> Iterator[Resource]:
    rule = {"apiGroups": [GROUP], "apiVersions": ["v1"], "resources": ["gadgets"]}
    for kind, action, operations in (
        ("MutatingWebhookConfiguration", "mutate", ["CREATE", "UPDATE"]),
        ("ValidatingWebhookConfiguration", "validate", ["CREATE", "UPDATE", "DELETE"]),
    ):
        url = f"https://127.0.0.1:{port}/{action}/gadget-admission"
        webhook = {
            "name": f"gadget-admission.{GROUP}",
            "clientConfig": {"url": url, "caBundle": b64encode(ca).decode()},
            "rules": [{**rule, "operations": operations}],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "timeoutSeconds": 5,
        }
        metadata = {"name": f"gadgets-operator.{GROUP}"}
        yield {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": kind,
            "metadata": metadata,
            "webhooks": [webhook],
        }


async def _until_called(server: Administrator) -> None:
    ends, probe = time.monotonic() + CALLED_SECONDS, gadget("probe", size=4)
    while True:
        mutated = await asyncio.to_thread(create, server, probe, dry_run=True)
        probe["spec"]["size"] ^= 1
        refused = await asyncio.to_thread(create, server, probe, dry_run=True)
        probe["spec"]["size"] ^= 1
        if mutated.body.get("spec", {}).get("mode") == "big" and refused.status == 422:
            return
        assert time.monotonic() < ends, mutated.message or refused.message


def gadget(name: str, **spec: Any) -> Resource:
    metadata: Resource = {"name": name, "namespace": "default"}
    return {"apiVersion": f"{GROUP}/v1", "kind": "Gadget", "metadata": metadata, "spec": spec}


def create(server: Administrator, resource: Resource, *, dry_run: bool = False) -> Answer:
    path = f"{collection(resource)}?dryRun=All" if dry_run else collection(resource)
    return server.request("POST", path, resource)


async def test_a_default_is_stored_and_belongs_to_nobody(app: WebhookApp, server: Administrator) -> None:
    first = await asyncio.to_thread(server.apply, gadget("a", size=4))
    assert first.body["spec"] == {"size": 4, "mode": "big", "colour": ""}
    owned = [each["fieldsV1"]["f:spec"] for each in first.body["metadata"]["managedFields"]]
    assert owned == [{"f:size": {}}]

    again = await asyncio.to_thread(server.apply, gadget("a", size=4))
    assert again.body["metadata"]["resourceVersion"] == first.body["metadata"]["resourceVersion"]

    generated = gadget("")
    generated["metadata"] = {"generateName": "g-", "namespace": "default"}
    made = await asyncio.to_thread(create, server, generated)
    assert made.body["spec"]["mode"] == "small"

    # The API server says what does not fit: `default` was not called for a spec that cannot be read.
    misfit = await asyncio.to_thread(create, server, gadget("b", size="big"))
    (cause,) = misfit.body["details"]["causes"]
    assert (misfit.status, cause["field"], cause["reason"]) == (422, "spec.size", "FieldValueTypeInvalid")


async def test_clients_read_refusals_as_they_read_errors_of_the_schema(app: WebhookApp, server: Administrator) -> None:
    grey = gadget("grey", size=2, colour="grey")
    grey["metadata"]["labels"] = {"keep": "yes"}
    made = await asyncio.to_thread(create, server, grey)
    assert (made.status, made.warnings) == (201, ('299 - "grey is out of fashion"',))

    refused = await asyncio.to_thread(create, server, gadget("b", size=3, colour="grey"))
    assert (refused.status, refused.body["reason"]) == (422, "Invalid")
    assert refused.body["details"] == {
        "name": "b",
        "group": GROUP,
        "kind": "Gadget",
        "causes": [
            {"reason": "FieldValueInvalid", "field": "spec.size", "message": "Invalid value: must be even"},
            {"reason": "FieldValueInvalid", "field": "spec.colour", "message": "Invalid value: is taken"},
        ],
    }

    path = f"{collection(grey)}/grey"
    kept = await asyncio.to_thread(server.request, "DELETE", path, user="ann")
    assert (kept.status, kept.body["reason"]) == (403, "Forbidden")
    assert kept.message.endswith("denied the request: ann must keep this gadget")
    assert (await asyncio.to_thread(server.request, "DELETE", path)).status == 200


async def test_what_fails_is_refused_without_a_value(
    app: WebhookApp, server: Administrator, caplog: pytest.LogCaptureFixture
) -> None:
    for colour in ("broken", "renamed"):
        failed = await asyncio.to_thread(create, server, gadget("c", colour=colour))
        assert failed.status == 500
        assert "GadgetAdmission of gadgets-operator failed: see the log of the operator" in failed.message
        assert SECRET not in failed.message
    assert [record.getMessage() for record in caplog.records if record.name == "bonny.webhooks"] == 2 * [
        "webhook failed"
    ]
    assert app.reviewers[0].reviews["/mutate/gadget-admission", "CREATE", "error"] == 2
    stored = await asyncio.to_thread(server.request, "GET", collection(gadget("")))
    assert not {"c", "other"} & {each["metadata"]["name"] for each in stored.body["items"]}
