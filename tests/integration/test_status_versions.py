"""A status that a former release wrote in another version of the kind, on a real API server."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from bonny import Axn, Controller, Operator
from bonny.api import Model, Spec, Status, Version
from bonny.resource import Resource
from bonny.tls.server import TlsServer
from bonny.webhooks.app import WebhookApp
from bonny.webhooks.serving import SERVER
from bonny_dev.crd.definition import crds
from bonny_dev.sandbox import Sandbox
from tests.support.administrator import Administrator
from tests.support.certificates import Authority
from tests.support.serving import serving

pytestmark = pytest.mark.server

GROUP = "gauges.example.com"
OPERATOR = "gauges-operator"


class OldPlace(Model):
    """Where it is."""

    node: str | None = None
    zone: str | None = None


class OldStatus(Status):
    """What the operator reports."""

    phase: str | None = None
    place: OldPlace | None = None
    runs: int | None = None


class Place(Model):
    """Where it is."""

    host: str | None = None
    zone: str | None = None


class NewStatus(Status):
    """The same by other names, and a field of another controller."""

    state: str | None = None
    place: Place | None = None
    runs: int | None = None
    seen: str | None = None


def renamed(resource: Resource, *names: tuple[str, str]) -> Resource:
    status = resource.get("status") or {}
    for part in (status, status.get("place") or {}):
        for old, new in names:
            if old in part:
                part[new] = part.pop(old)
    return resource


class OldGauge(Version):
    """As the former release has it."""

    kind = "Gauge"
    version = "v1"
    spec: Spec
    status: OldStatus

    @staticmethod
    def to_hub(resource: Resource) -> Resource:
        return renamed(resource, ("phase", "state"), ("node", "host"))

    @staticmethod
    def from_hub(resource: Resource) -> Resource:
        return renamed(resource, ("state", "phase"), ("host", "node"))


class Gauge(Version):
    """The hub."""

    kind = "Gauge"
    version = "v2"
    hub = storage = True
    spec: Spec
    status: NewStatus


class GaugeController(Controller[Gauge]):
    """Changes one field, and leaves the rest of the status to what it was."""

    async def reconcile(self, axn: Axn[Gauge]) -> None:
        axn.update_status(lambda status: {**status, "runs": 2})


async def test_a_new_release_keeps_the_status_fields_that_a_former_one_wrote_by_other_names(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    """Regression: they were not taken for our own, so the first write of the new release removed them."""
    authority = Authority(tmp_path)
    app = WebhookApp(Operator(name=OPERATOR, group=GROUP, crds=[OldGauge, Gauge]), None)
    context = authority.issue("webhook").server_context()
    listener = TlsServer(app, "127.0.0.1", 0, SERVER, context=context)
    await listener.start()
    (definition,) = crds([OldGauge, Gauge], GROUP)
    bundle = b64encode(authority.certificate.read_bytes()).decode()
    client = {"url": f"https://127.0.0.1:{listener.port}/convert", "caBundle": bundle}
    webhook = {"clientConfig": client, "conversionReviewVersions": ["v1"]}
    definition["spec"]["conversion"] = {"strategy": "Webhook", "webhook": webhook}

    try:
        changed, unchanged = await asyncio.to_thread(reconciled, sandbox, definition)
    finally:
        await listener.stop()

    status = {"state": "primary-0", "place": {"host": "n1", "zone": "a"}, "runs": 2, "seen": "now"}
    fields = {"f:state": {}, "f:runs": {}, "f:place": {"f:host": {}, "f:zone": {}}}
    assert changed == unchanged == (status, f"{GROUP}/v2", fields)


def reconciled(sandbox: Sandbox, definition: Resource) -> list[tuple[Resource, str, Resource]]:
    """Of two objects, after a reconcile of the new release, which changes only the first one: the status, and the
    fields of it that the controller owns, with their version."""
    manager = f"{OPERATOR}/{GaugeController.__name__}"

    def path(version: str, rest: str = "") -> str:
        return f"/apis/{GROUP}/{version}/namespaces/default/gauges{rest}"

    def gauge(version: str, name: str, **parts: Any) -> Resource:
        metadata = {"name": name, "namespace": "default"}
        return {"apiVersion": f"{GROUP}/{version}", "kind": "Gauge", "metadata": metadata, **parts}

    with Administrator(sandbox) as administrator, administrator.installed([definition]):

        def found(name: str) -> tuple[Resource, str, Resource]:
            live = administrator.request("GET", path("v2", f"/{name}")).body
            (entry,) = (each for each in live["metadata"]["managedFields"] if each["manager"] == manager)
            return live["status"], entry["apiVersion"], entry["fieldsV1"]["f:status"]

        for name, runs in (("changed", 1), ("unchanged", 2)):
            assert administrator.request("POST", path("v2"), gauge("v2", name, spec={})).status == 201
            old = {"phase": "primary-0", "place": {"node": "n1", "zone": "a"}, "runs": runs}
            for version, who, status in (("v1", manager, old), ("v2", "other", {"seen": "now"})):
                applied = path(version, f"/{name}/status?fieldManager={who}")
                body = gauge(version, name, status=status)
                answer = administrator.request("PATCH", applied, body, media="apply-patch+yaml")
                assert answer.status == 200, answer.message
        with serving(Operator(name=OPERATOR, group=GROUP, controllers=[GaugeController]), sandbox.kubeconfig):
            for name in ("changed", "unchanged"):
                sandbox.eventually(lambda name=name: found(name)[1] == f"{GROUP}/v2")
        return [found("changed"), found("unchanged")]
