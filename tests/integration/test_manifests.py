"""Manifests on a real API server: every part of them is taken as it is written, at once, and without a warning.

Pod security is enforced by the namespace of each, at the level restricted.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from bonny import Controller, Deploy, FromConfigMap, FromSecret, Operator, Owned
from bonny.api import Field, Model, Scope, Spec, Status, Version, WithConditions
from bonny.resource import Resource
from bonny_dev.crd.definition import crds
from bonny_dev.manifest.bundle import documents, to_yaml
from bonny_dev.manifest.optional_objects import PARTS
from bonny_dev.sandbox import Sandbox
from tests.support.administrator import Administrator, Answer, collection
from tests.support.yardsticks.service_monitor import ServiceMonitor

pytestmark = pytest.mark.server

IMAGE = "registry.example.com/gates:1.0.0"
CRD = "CustomResourceDefinition"


class GateSpec(Spec):
    """What the user wants."""

    width: int = Field(1, ge=1)


class GateStatus(Status, WithConditions):
    """What the operator reports."""


class Gate(Version):
    """Namespaced, with a status."""

    kind = "Gate"
    version = "v1"
    storage = True
    hub = True
    spec: GateSpec = GateSpec()
    status: GateStatus


class Park(Version):
    """Cluster-scoped, without a status."""

    kind = "Park"
    version = "v1"
    scope = Scope.CLUSTER
    storage = True
    hub = True
    spec: GateSpec = GateSpec()


class GateController(Controller[Any]):
    """A controller, as far as manifests go."""

    resource = (Gate, Park)
    owns = (Owned("v1", "ConfigMap"),)

    async def reconcile(self, axn: Any) -> None:
        """Never called here."""


class AlertRule(Model):
    """As far as ours go."""

    alert: str
    expr: str
    for_: str | None = None
    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)


class AlertGroup(Model):
    """Rules that are evaluated together."""

    name: str
    rules: list[AlertRule]


class PrometheusRuleSpec(Spec):
    """The part of prometheus-operator's kind that is the same as Prometheus's own file."""

    groups: list[AlertGroup]


class PrometheusRule(Version):
    """Strict about unknown fields, as the original is."""

    kind = "PrometheusRule"
    version = "v1"
    storage = True
    hub = True
    spec: PrometheusRuleSpec


def operator(name: str, **options: Any) -> Operator:
    """Each has a group of its own, so that the definitions of one test are not there before another."""
    return Operator(name=name, group=f"{name}.example.com", controllers=[GateController], **options)


def manifest(declared: Operator, **options: Any) -> list[Resource]:
    return list(yaml.safe_load_all(to_yaml(documents(declared, image=IMAGE, **options))))


@pytest.fixture(scope="module")
def server(sandbox: Sandbox) -> Iterator[Administrator]:
    """The sandbox, with the kinds that prometheus-operator brings."""
    kinds = crds([ServiceMonitor, PrometheusRule], "monitoring.coreos.com")
    with Administrator(sandbox) as server, server.installed(kinds):
        yield server


def dry_run(server: Administrator, resource: Resource) -> Answer:
    path = f"{collection(resource)}/{resource['metadata']['name']}"
    query = "fieldManager=test&fieldValidation=Strict&dryRun=All"
    return server.request("PATCH", f"{path}?{query}", resource, media="apply-patch+yaml")


OUTSIDE: Final = Deploy(
    env={"DNS_URL": "https://dns.example.com", "DNS_TOKEN": FromSecret("dns-credentials", "token")},
    env_from=(FromConfigMap("dns"), FromSecret("dns")),
    egress={"203.0.113.0/24": (5432, 6379), "2001:db8::/32": (8883,)},
)


@pytest.mark.parametrize(
    ("name", "options", "parts"),
    [
        ("gates-outside", {"deploy": OUTSIDE}, ()),
        ("gates-small", {}, ()),
        ("gates-narrow", {"watch": "namespace", "deploy": Deploy(leader_election=False), "grace": 3.0}, ()),
        ("gates-secure", {"deploy": Deploy(secure_metrics=True)}, ("service-monitor",)),
        ("gates-whole", {"deploy": Deploy(replicas=3, labels={"example.com/team": "tools"})}, PARTS),
    ],
)
def test_the_api_server_takes_every_part_strictly_and_without_a_warning(
    server: Administrator, name: str, options: dict[str, Any], parts: Iterable[str]
) -> None:
    objects = {each["kind"]: each for each in manifest(operator(name, **options), include=parts)}
    # What a dry run of the others looks for.
    for needed in ("Namespace", "ServiceAccount"):
        assert server.apply(objects[needed]).status == 201
    # A Deployment is only warned about what its pods would be refused for, so one of them is tried, too.
    template = objects["Deployment"]["spec"]["template"]
    metadata = {**template["metadata"], "name": "tried", "namespace": name}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}

    for each in (*objects.values(), pod):
        answer = dry_run(server, each)
        assert answer.status in (200, 201), (each["kind"], answer.message)
        assert answer.warnings == (), each["kind"]


def test_a_pod_with_one_setting_less_is_refused(server: Administrator) -> None:
    """The test above means something: pod security is enforced here."""
    namespace, *_, deployment = manifest(operator("gates-open"))
    server.apply(namespace)
    spec = deployment["spec"]["template"]["spec"]
    spec["containers"][0]["securityContext"].pop("allowPrivilegeEscalation")
    spec.pop("serviceAccountName")

    answer = dry_run(
        server,
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "tried", "namespace": "gates-open"}, "spec": spec},
    )

    assert answer.status == 403
    assert "allowPrivilegeEscalation" in answer.message


def test_kubectl_applies_everything_in_one_pass_and_the_definitions_are_established(
    server: Administrator, sandbox: Sandbox, tmp_path: Path
) -> None:
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not on PATH")
    declared = operator("gates-once", deploy=Deploy(replicas=2))
    text = to_yaml(documents(declared, image=IMAGE, include=list(PARTS)))

    def kubectl(*words: str) -> str:
        command = ["kubectl", "--cache-dir", str(tmp_path), *words, "--filename", "-"]
        environment = {**os.environ, "KUBECONFIG": str(sandbox.kubeconfig)}
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False, env=environment)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        return done.stdout

    strictly = ("apply", "--server-side", "--validate=strict", "--warnings-as-errors")
    first = kubectl(*strictly)
    again = kubectl(*strictly, "--dry-run=server")

    objects = list(yaml.safe_load_all(text))
    assert len(first.splitlines()) == len(again.splitlines()) == len(objects)
    for definition in objects:
        if definition["kind"] == CRD:
            server.served(f"/apis/{declared.group}/v1/{definition['spec']['names']['plural']}")
            status = server.request("GET", f"{collection(definition)}/{definition['metadata']['name']}").body["status"]
            conditions = {condition["type"]: condition["status"] for condition in status["conditions"]}
            assert conditions["Established"] == conditions["NamesAccepted"] == "True"
            assert "NonStructuralSchema" not in conditions
