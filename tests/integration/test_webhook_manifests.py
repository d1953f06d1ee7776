"""What a manifest brings for webhooks, on a real API server: it is taken whole, and the guard and RBAC hold."""

from __future__ import annotations

import base64
import time
from collections.abc import Iterator
from typing import Any, Final, Literal

import pytest
import yaml

from bonny import Deploy, Kind, Operator, Spec, Version
from bonny.api import Model
from bonny.client.api import Client
from bonny.client.config import Kubeconfig
from bonny.resource import Resource
from bonny.tls.issuer import Issuer as CertificateIssuer
from bonny.tls.rotation import RotationStep
from bonny.tls.secret import BUNDLE, CERTIFICATE, KEY
from bonny.tls.serving import ServingCertificate
from bonny.webhooks import Admission, Review, names
from bonny.webhooks.ca_bundles import CaBundles
from bonny_dev.crd.definition import crds
from bonny_dev.manifest.bundle import documents, to_yaml
from bonny_dev.sandbox import Sandbox
from bonny_dev.testing import record_permissions
from bonny_dev.testing.faults import FaultProxy
from tests.support.administrator import Administrator, Answer, collection
from tests.support.lamps import Lamp, LampAdmission, OldLamp
from tests.support.waiting import running, until

pytestmark = pytest.mark.server

NAME: Final = "booths-operator"
GROUP: Final = "booths.example.com"
ACCOUNT: Final = f"system:serviceaccount:{NAME}:{NAME}"
# Policies work about two seconds after they were applied; a loaded machine may take several.
ENFORCED_SECONDS: Final = 30.0
RULE: Final = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["secrets"]}
URL: Final = "https://example.com/all"


class BoothAdmission(LampAdmission):
    """Reviews all writes of an own kind, with all options."""

    match_conditions = {"spec-changes": "request.operation != 'UPDATE' || object.spec != oldObject.spec"}
    subresources = ("status",)
    again = True


class PodAdmission(Admission[Any]):
    """Reviews a kind of Kubernetes."""

    resource = Kind("v1", "Pod")
    object_selector = {"example.com/booth": "yes"}
    namespace_selector = {"example.com/booths": "yes"}
    side_effects = "NoneOnDryRun"

    def validate(self, review: Review[Any]) -> None:
        """Never called here."""


def operator(**deploy: Any) -> Operator:
    controllers = [BoothAdmission, PodAdmission]
    return Operator(name=NAME, group=GROUP, crds=[Lamp, OldLamp], controllers=controllers, deploy=Deploy(**deploy))


def manifest(**deploy: Any) -> list[Resource]:
    text = to_yaml(documents(operator(**deploy), image="registry.example.com/booths:1.0.0"))
    return list(yaml.safe_load_all(text))


def path(resource: Resource) -> str:
    return f"{collection(resource)}/{resource['metadata']['name']}"


@pytest.fixture(scope="module")
def server(sandbox: Sandbox) -> Iterator[Administrator]:
    """The server with the manifest, applied strictly in its order, and the guard in force."""
    objects = manifest(replicas=2)
    with Administrator(sandbox) as server:
        for each in objects:
            answer = server.apply(each)
            assert (answer.status, answer.warnings) == (201, ()), (each["kind"], answer.message)
        ends = time.monotonic() + ENFORCED_SECONDS
        while change(server, configuration("Validating"), {"metadata": {"labels": {"a": "b"}}}).status != 403:
            assert time.monotonic() < ends, "the guard is not in force"
            time.sleep(0.1)
        yield server
        for each in reversed(objects):
            server.request("DELETE", path(each))


def configuration(action: str) -> Resource:
    (found,) = (each for each in manifest() if each["kind"] == f"{action}WebhookConfiguration")
    return found


def definition() -> Resource:
    (found,) = (each for each in manifest() if each["kind"] == "CustomResourceDefinition")
    return found


def secret() -> Resource:
    (found,) = (each for each in manifest() if each["kind"] == "Secret")
    return found


def change(
    server: Administrator,
    resource: Resource,
    patch: Any,
    *,
    media: str = "merge-patch+json",
    dry_run: bool = True,
) -> Answer:
    """Send a change as the operator's own account."""
    query = "?dryRun=All" if dry_run else ""
    return server.request("PATCH", f"{path(resource)}{query}", patch, media=media, user=ACCOUNT, group="none")


@pytest.fixture(scope="module")
def bundle(sandbox: Sandbox) -> str:
    return base64.b64encode(sandbox.ca_file.read_bytes()).decode()


def replaced(place: str, value: object, operation: str = "replace") -> list[Resource]:
    return [{"op": operation, "path": place, "value": value}]


def clients(resource: Resource) -> dict[str, Resource]:
    """What holds a caBundle, by its JSON pointer."""
    if "webhooks" in resource:
        return {
            f"/webhooks/{number}/clientConfig": each["clientConfig"] for number, each in enumerate(resource["webhooks"])
        }
    return {"/spec/conversion/webhook/clientConfig": resource["spec"]["conversion"]["webhook"]["clientConfig"]}


async def test_the_maker_and_the_server_of_the_certificate_use_exactly_their_permissions(
    sandbox: Sandbox, server: Administrator
) -> None:
    declared = operator()
    token = sandbox.service_account_token(NAME, NAME)
    with FaultProxy(sandbox, token=token) as proxy, record_permissions() as recorder:
        async with Client(Kubeconfig(str(proxy.kubeconfig)), user_agent="test") as client:
            secret = names.secret(declared, NAME)
            issuer = CertificateIssuer(client, secret, spread=0.1, registry=CaBundles(client, declared, namespace=NAME))
            certificate = ServingCertificate(client, secret, declared.watch_options)
            async with running(issuer.run), running(certificate.run):
                await until(lambda: certificate.ready and issuer.decision and issuer.decision.step is RotationStep.REST)
    compared = recorder.compared_with(names.certificate_rules(declared, namespace=NAME))

    assert (compared.missing, compared.unused) == ({}, {})
    for resource in (configuration("Validating"), configuration("Mutating"), definition()):
        assert all(client["caBundle"] for client in clients(server.request("GET", path(resource)).body).values())


@pytest.mark.parametrize("resource", [configuration("Validating"), configuration("Mutating"), definition()])
def test_the_operator_writes_a_bundle_that_a_further_apply_of_the_manifest_keeps(
    server: Administrator, bundle: str, resource: Resource
) -> None:
    before = server.request("GET", path(resource)).body
    version = replaced("/metadata/resourceVersion", before["metadata"]["resourceVersion"])
    patch = [each for place in clients(resource) for each in replaced(f"{place}/caBundle", bundle, "add")]
    answer = change(server, resource, [*version, *patch], media="json-patch+json", dry_run=False)
    assert answer.status == 200, answer.message

    again = server.apply(resource)

    assert again.status == 200
    assert [client["caBundle"] for client in clients(again.body).values()] == [bundle] * len(clients(resource))


@pytest.mark.parametrize("resource", [configuration("Validating"), configuration("Mutating")])
@pytest.mark.parametrize(
    "patch",
    [
        replaced("/webhooks/0/rules/0/resources", ["secrets"]),
        replaced("/webhooks/0/rules/-", RULE, "add"),
        replaced("/webhooks/0/clientConfig", {"url": URL}),
        replaced("/webhooks/0/clientConfig/service/path", "/all"),
        replaced("/webhooks/0/clientConfig/service/namespace", "default"),
        replaced("/webhooks/0/failurePolicy", "Ignore"),
        replaced("/webhooks/0/matchConditions", []),
        replaced("/webhooks/0/namespaceSelector", {}),
        replaced("/webhooks/0/objectSelector", {"matchLabels": {"a": "b"}}),
        replaced("/webhooks/0/timeoutSeconds", 30),
        replaced("/webhooks/0/name", "other.example.com"),
        replaced("/webhooks", []),
        [{"op": "remove", "path": "/webhooks"}],
        [{"op": "copy", "from": "/webhooks/0", "path": "/webhooks/0"}, *replaced("/webhooks/0/name", "b.example.com")],
        replaced("/metadata/finalizers", ["example.com/held"], "add"),
        replaced("/metadata/labels", {}),
        replaced("/metadata/annotations/a", "b", "add"),
    ],
    ids=str,
)
def test_of_a_webhook_configuration_the_operator_changes_nothing_else(
    server: Administrator, resource: Resource, patch: Any
) -> None:
    answer = change(server, resource, patch, media="json-patch+json")

    assert answer.status == 403, answer.body
    assert "the operator changes only caBundle in this object" in answer.message


@pytest.mark.parametrize(
    "patch",
    [
        replaced("/spec/conversion", {"strategy": "None"}),
        replaced("/spec/conversion/webhook/clientConfig", {"url": URL}),
        replaced("/spec/conversion/webhook/clientConfig/service/name", "other"),
        replaced("/spec/conversion/webhook/conversionReviewVersions", ["v1", "v1beta1"]),
        replaced("/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/brightness/maximum", 3, "add"),
        replaced("/spec/versions/0/served", value=False),
        replaced("/spec/names/shortNames", ["b"], "add"),
        replaced("/metadata/finalizers", ["example.com/held"], "add"),
        replaced("/metadata/labels", {}),
    ],
    ids=str,
)
def test_of_a_definition_the_operator_changes_nothing_else(server: Administrator, patch: Any) -> None:
    answer = change(server, definition(), patch, media="json-patch+json")

    assert answer.status == 403, answer.body
    assert "the operator changes only caBundle in this object" in answer.message


def test_an_apply_keeps_the_content_of_the_secret(server: Administrator, bundle: str) -> None:
    data = dict.fromkeys((CERTIFICATE, KEY, BUNDLE), bundle)
    assert change(server, secret(), {"data": data}, dry_run=False).status == 200

    assert server.apply(secret()).body["data"] == data


def test_the_permissions_end_at_the_named_objects(server: Administrator) -> None:
    def asked(method: str, url: str, body: Resource | None = None, media: str = "merge-patch+json") -> int:
        return server.request(method, url, body, media=media, user=ACCOUNT, group="none").status

    own, secrets = path(secret()), collection(secret())
    assert asked("GET", secrets) == 403
    assert asked("GET", f"{secrets}/other") == 403
    assert asked("POST", secrets, {**secret(), "metadata": {"name": "other"}}, "json") == 403
    assert asked("DELETE", own) == 403
    assert asked("DELETE", path(configuration("Validating"))) == 403
    assert asked("GET", "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/other") == 403


def test_others_change_what_they_like(server: Administrator) -> None:
    patch = replaced("/webhooks/0/timeoutSeconds", 3)
    url = f"{path(configuration('Validating'))}?dryRun=All"

    assert server.request("PATCH", url, patch, media="json-patch+json").status == 200  # type: ignore[arg-type]


class IssuerSpec(Spec):
    """As far as ours goes."""

    self_signed: dict[str, str]


class Issuer(Version):
    """Of cert-manager; strict about unknown fields, as the original is."""

    kind = "Issuer"
    version = "v1"
    storage = True
    hub = True
    spec: IssuerSpec


class PrivateKey(Model):
    """How the key is made."""

    algorithm: Literal["RSA", "ECDSA", "Ed25519"]
    size: int
    rotation_policy: Literal["Never", "Always"]


class IssuerRef(Model):
    """Who signs."""

    kind: str
    name: str


class CertificateSpec(Spec):
    """As far as ours goes."""

    secret_name: str
    dns_names: list[str]
    issuer_ref: IssuerRef
    private_key: PrivateKey
    usages: list[str]


class Certificate(Version):
    """Of cert-manager."""

    kind = "Certificate"
    version = "v1"
    storage = True
    hub = True
    spec: CertificateSpec


def test_with_cert_manager_the_api_server_takes_everything(server: Administrator) -> None:
    """Its objects, and the annotations on those that are there already."""
    objects = manifest(certificates="cert-manager")

    with server.installed(crds([Issuer, Certificate], "cert-manager.io")):
        answers = [server.apply(each) for each in objects]

    assert [(answer.message, answer.warnings) for answer in answers if answer.status not in (200, 201)] == []
    assert {each["kind"] for each, answer in zip(objects, answers, strict=True) if answer.status == 201} == {
        "Issuer",
        "Certificate",
    }
