"""Two installations of one operator, each for its own namespace, on a real API server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from typing import Any, Final

import pytest

from bonny import Controller, Kind, Operator
from bonny.client.api import Client
from bonny.client.config import Kubeconfig
from bonny.errors import UsageError
from bonny.policies import ValidatingAdmissionPolicy, Validation
from bonny.resource import Resource
from bonny.tls.issuer import Issuer
from bonny.tls.rotation import RotationStep
from bonny.webhooks import Admission, Review, names
from bonny.webhooks.ca_bundles import CaBundles
from bonny_dev.manifest import bundle
from bonny_dev.sandbox import Sandbox
from bonny_dev.tasks import deploy, doctor
from tests.support.lamps import Lamp, OldLamp
from tests.support.waiting import running, until

pytestmark = pytest.mark.server

NAME: Final = "kiosks-operator"
GROUP: Final = "kiosks.example.com"
# One is called as the group ends. Regression: its uninstall deleted the CRDs, and so the objects of all others.
ONE, OTHER = "com", "team-b"
CRD: Final = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/lamps.{GROUP}"
MERGE: Final = "application/merge-patch+json"


class Unanswered(Admission[Lamp]):
    """No replica answers it here, so that the API server says which installation it asked."""

    timeout = 1

    async def validate(self, review: Review[Lamp]) -> None:
        """Never called here."""


class Nodes(Controller[Any]):
    """Events about an object without a namespace are in `default`: a Role there."""

    resource = Kind("v1", "Node")

    async def reconcile(self, axn: Any) -> None:
        """Never called here."""


SMALL: Final = ValidatingAdmissionPolicy(
    "small", resource=Lamp, validations=[Validation("object.spec.brightness < 9", message="is too large")]
)


def operator(*more: Any) -> Operator:
    controllers = [Unanswered, Nodes, *more]
    return Operator(name=NAME, group=GROUP, crds=[Lamp, SMALL], controllers=controllers, watch="namespace")


def manifest(namespace: str, *more: Any) -> list[Resource]:
    return bundle.documents(operator(*more), image="registry.example.com/kiosks:1", namespace=namespace)


def lamp(namespace: str) -> Resource:
    metadata = {"name": "one", "namespace": namespace}
    return {"apiVersion": f"{GROUP}/v1", "kind": "Lamp", "metadata": metadata, "spec": {}}


@pytest.fixture
async def cluster(sandbox: Sandbox) -> AsyncIterator[Kubeconfig]:
    cluster = Kubeconfig(str(sandbox.kubeconfig))
    yield cluster
    for namespace in (ONE, OTHER):
        await deploy.uninstall(cluster, manifest(namespace), own=NAME, namespace=namespace, wait=10, sure=True)


async def installed(cluster: Kubeconfig, sandbox: Sandbox, documents: list[Resource], namespace: str) -> None:
    """Install, as if a replica were ready, which registers nothing here."""
    with pytest.raises(UsageError, match="no ready replica"):
        await deploy.install(cluster, documents, wait=0)
    deployment = f"/apis/apps/v1/namespaces/{namespace}/deployments/{NAME}"
    generation = sandbox.request("GET", deployment).body["metadata"]["generation"]
    status = {"observedGeneration": generation, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1}
    patched = sandbox.request("PATCH", f"{deployment}/status", {"status": status}, content_type=MERGE)
    assert patched.status == 200, patched.body
    with pytest.raises(UsageError, match="has no caBundle"):
        await deploy.install(cluster, documents, wait=0)


def stored(sandbox: Sandbox, document: Resource) -> Resource | None:
    metadata = document["metadata"]
    return sandbox.get(
        document["apiVersion"], document["kind"], metadata["name"], namespace=metadata.get("namespace", "")
    )


def called(sandbox: Sandbox, namespace: str) -> str:
    """What the API server answers to a write in this namespace."""
    answer = sandbox.request("POST", f"/apis/{GROUP}/v1/namespaces/{namespace}/lamps?dryRun=All", lamp(namespace))
    return str(answer.body["message"]) if answer.status >= 300 else ""


def is_let_through(sandbox: Sandbox, namespace: str) -> bool:
    return called(sandbox, namespace) == ""


async def test_two_installations_share_nothing_but_the_kinds(
    sandbox: Sandbox, cluster: Kubeconfig, capsys: pytest.CaptureFixture[str]
) -> None:
    """Regression: the second one took over webhooks, guard, policies, roles; its uninstall took those of the first."""
    one, other = manifest(ONE), manifest(OTHER)
    sandbox.apply([each for each in (*one, *other) if each["kind"] in ("Namespace", "CustomResourceDefinition")])
    for namespace in (ONE, OTHER):
        sandbox.eventually(partial(is_let_through, sandbox, namespace))
        sandbox.apply(lamp(namespace))

    await installed(cluster, sandbox, one, ONE)
    await installed(cluster, sandbox, other, OTHER)

    for document in one:
        live = stored(sandbox, document)
        assert live is not None, document["metadata"]
        assert live.get("subjects") == document.get("subjects")
    for namespace in (ONE, OTHER):
        assert f"https://{NAME}-webhook.{namespace}.svc" in called(sandbox, namespace)

    capsys.readouterr()
    await deploy.uninstall(cluster, one, own=NAME, namespace=ONE, wait=10, sure=True)

    said = capsys.readouterr().out
    assert f"left CustomResourceDefinition lamps.{GROUP}, which the operator in {OTHER} needs" in said
    assert "converts" not in said
    assert {document["metadata"]["name"] for document in other if stored(sandbox, document) is None} == set()
    left = {document["metadata"]["name"] for document in one if stored(sandbox, document) is not None}
    assert left == {ONE, f"lamps.{GROUP}", f"{NAME}-view", f"{NAME}-edit", f"{NAME}-admin"}
    assert [each["metadata"]["namespace"] for each in sandbox.items(f"{GROUP}/v1", "Lamp")] == [OTHER]
    assert is_let_through(sandbox, ONE), "the other installation reviews its own namespace only"
    assert f"https://{NAME}-webhook.{OTHER}.svc" in called(sandbox, OTHER)


async def test_a_kind_has_one_converter(
    sandbox: Sandbox, cluster: Kubeconfig, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each would write its own CA into the one `caBundle`, and the API server would call the last one that came."""
    one, other = manifest(ONE, OldLamp), manifest(OTHER, OldLamp)
    with pytest.raises(UsageError, match="no ready replica"):
        await deploy.install(cluster, one, wait=0)
    refusal = f"Lamp is converted by the operator in namespace {ONE}, and a kind has one converter: install into"
    with pytest.raises(UsageError, match=refusal):
        await deploy.install(cluster, other, wait=0)
    assert stored(sandbox, other[-1]) is None, "nothing was applied"
    findings = doctor.examine(operator(OldLamp), cluster, namespace=OTHER, samples={})
    while (found := await anext(findings)).part != "crd":
        pass
    assert found.text.startswith(refusal)

    # With kubectl nothing refuses it: the certificate of the first one stays.
    kinds = ("Namespace", "Secret", "ServiceAccount", "Deployment", "ValidatingWebhookConfiguration")
    sandbox.apply([each for each in other if each["kind"] in kinds])
    async with Client(cluster, user_agent="test") as client:
        registry = CaBundles(client, operator(OldLamp), namespace=OTHER)
        issuer = Issuer(client, names.secret(operator(OldLamp), OTHER), spread=0.1, registry=registry)
        async with running(issuer.run):
            await until(lambda: issuer.decision and issuer.decision.step is RotationStep.REST and issuer.decision.leaf)
    webhooks = stored(sandbox, other[-1])
    assert webhooks is not None
    assert webhooks["webhooks"][0]["clientConfig"]["caBundle"]
    assert "caBundle" not in sandbox.request("GET", CRD).body["spec"]["conversion"]["webhook"]["clientConfig"]

    await deploy.uninstall(cluster, one, own=NAME, namespace=ONE, wait=10, sure=True)

    assert f"nothing converts Lamp now: run `invoke install --namespace {OTHER}`" in capsys.readouterr().out
    with pytest.raises(UsageError, match="no ready replica"):
        await deploy.install(cluster, other, wait=0)
    service = sandbox.request("GET", CRD).body["spec"]["conversion"]["webhook"]["clientConfig"]["service"]
    assert service["namespace"] == OTHER
