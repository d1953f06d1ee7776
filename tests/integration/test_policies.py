"""Admission policies: the examples of the how-to page, applied from a manifest to a real API server."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from bonny import Axn, Controller, Kind, Operator, Owned, Spec, Version
from bonny.client.api import Client
from bonny.client.config import Kubeconfig
from bonny.policies import Policy, ValidatingAdmissionPolicy, Validation
from bonny.resource import Resource
from bonny_dev.manifest.bundle import documents
from bonny_dev.manifest.policies import API_VERSION
from bonny_dev.sandbox import Sandbox
from bonny_dev.tasks import deploy
from bonny_dev.testing import child_of
from bonny_dev.testing.running import RunningOperator
from tests.support.administrator import Administrator, Answer, collection
from tests.unit.test_how_to import HOW_TO, code

pytestmark = pytest.mark.server

# Policies work about two seconds after they were applied; a loaded machine may take several.
ENFORCED_SECONDS: Final = 30.0
PAGE: Final = "rules-without-a-server"
GROUP: Final = "policies.example.com"
NAMESPACE: Final = "policy-shop"
OPERATOR: Final = "system:serviceaccount:caches-operator:caches-operator"


@pytest.fixture(scope="module")
def operator() -> Operator:
    """An operator with the kind and the policies of the page."""
    page = types.ModuleType("policies_page")
    sys.modules[page.__name__] = page
    exec(compile(code(PAGE), HOW_TO / f"{PAGE}.md", "exec"), vars(page))
    parts: list[Any] = [value for value in vars(page).values() if isinstance(value, Policy)]
    return Operator(name="caches-operator", group=GROUP, crds=[page.Cache, *parts])


@pytest.fixture(scope="module")
def server(sandbox: Sandbox, operator: Operator) -> Iterator[Administrator]:
    """A server with that kind and the policies, all of them in force."""
    manifest = documents(operator, local=True)
    crds = [each for each in manifest if each["kind"] == "CustomResourceDefinition"]
    policies = [each for each in manifest if each["apiVersion"] == API_VERSION]
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "policy-users"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [
            {"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": group} for group in ("dev", "sre")
        ],
    }
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": {"tier": "gold"}}}
    limits = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "cache-limits", "namespace": NAMESPACE},
        "data": {"replicas": "3"},
    }
    with Administrator(sandbox) as server, server.installed(crds):
        applied = (binding, namespace, limits, *policies)
        for each in applied:
            answer = server.apply(each)
            assert (answer.status, answer.warnings) == (201, ()), answer.message
        until_enforced(server)
        yield server
        for each in reversed(applied):
            server.request("DELETE", f"{collection(each)}/{each['metadata']['name']}")


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    """A process that runs until the test ends."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process
        process.communicate(b"\n")


class VaultSpec(Spec):
    """Nothing is wanted of a Vault."""


class Vault(Version):
    """What nobody may delete."""

    kind = "Vault"
    version = "v1"
    storage = True
    hub = True
    spec: VaultSpec


def until_enforced(server: Administrator) -> None:
    """Wait until the server enforces each of the policies: one refusal or change for each."""
    ends = time.monotonic() + ENFORCED_SECONDS
    # Right after a kind was installed, a mutating policy does not find it: 503.
    while (kept := create(server, cache("kept", keep=True), user=OPERATOR)).status == 503:
        assert time.monotonic() < ends, kept.message
        time.sleep(0.1)
    assert kept.status == 201, kept.message
    while not (
        create(server, cache(f"{NAMESPACE}-a")).body.get("spec") == {"replicas": 1, "tier": "gold"}
        and create(server, cache("a")).status == 422
        and create(server, cache(f"{NAMESPACE}-a", replicas=9)).status == 422
        and create(server, cache(f"{NAMESPACE}-a", tier="low")).status == 403
        and delete(server, "kept").status == 422
    ):
        assert time.monotonic() < ends, "the policies are not in force"
        time.sleep(0.1)


def cache(name: str, *, keep: bool = False, **spec: object) -> Resource:
    annotations = {"example.com/keep": "yes"} if keep else {}
    metadata = {"name": name, "namespace": NAMESPACE, "annotations": annotations}
    return {"apiVersion": f"{GROUP}/v1", "kind": "Cache", "metadata": metadata, "spec": spec}


def create(server: Administrator, resource: Resource, *, user: str = "ann", group: str = "dev") -> Answer:
    """Only the operator's objects are stored."""
    if user == OPERATOR:
        return server.request("POST", collection(resource), resource, user=user, group="sre")
    return server.request("POST", f"{collection(resource)}?dryRun=All", resource, user=user, group=group)


def delete(server: Administrator, name: str, *, user: str = "ann") -> Answer:
    path = f"{collection(cache(name))}/{name}"
    return server.request("DELETE", path if user == OPERATOR else f"{path}?dryRun=All", user=user, group="dev")


def refusal(answer: Answer) -> tuple[int, str]:
    """Code and text, without the sentence about policy and binding."""
    return answer.status, answer.message.rpartition("denied request: ")[2]


def test_only_one_group_may_set_a_field(server: Administrator) -> None:
    low = cache(f"{NAMESPACE}-low", tier="low")

    assert refusal(create(server, low)) == (403, "spec.tier is set by the group sre only")
    assert create(server, low, user="sam", group="sre").status == 201


def test_the_user_reads_policy_and_reason(server: Administrator) -> None:
    assert create(server, cache("a")).message == (
        'caches.policies.example.com "a" is forbidden: ValidatingAdmissionPolicy '
        "'cache-names.policies.example.com' with binding 'cache-names.policies.example.com' denied request: the name "
        "must begin with policy-shop-"
    )


def test_parameters_are_those_of_the_namespace(server: Administrator) -> None:
    assert refusal(create(server, cache(f"{NAMESPACE}-b", replicas=4))) == (422, "at most 3 replicas in this namespace")
    assert create(server, cache(f"{NAMESPACE}-b", replicas=3)).status == 201


def test_a_default_comes_from_the_label_of_the_namespace(server: Administrator) -> None:
    assert create(server, cache(f"{NAMESPACE}-c", replicas=2)).body["spec"] == {"replicas": 2, "tier": "gold"}


def test_a_deletion_is_refused_and_the_operator_is_exempt(server: Administrator) -> None:
    assert refusal(delete(server, "kept")) == (422, "remove the annotation example.com/keep first")
    # Its name breaks a rule, too.
    assert delete(server, "kept", user=OPERATOR).status == 200


def test_an_object_that_is_being_deleted_can_lose_its_finalizer(server: Administrator) -> None:
    held = cache("held")
    held["metadata"]["finalizers"] = ["example.com/held"]
    assert create(server, held, user=OPERATOR).status == 201
    path = f"{collection(held)}/held"
    assert server.request("DELETE", path).status == 200
    patch = {"metadata": {"finalizers": None}, "spec": {"tier": "low"}}

    assert server.request("PATCH", path, patch, media="merge-patch+json", user="ann", group="dev").status == 200


def test_uninstall_is_not_held_up_by_a_policy_against_deletions(sandbox: Sandbox, server: Administrator) -> None:
    namespace = "vaults-operator"
    policy = ValidatingAdmissionPolicy(
        "vault-keep", resource=Vault, operations=("DELETE",), validations=(Validation("false", message="never"),)
    )
    operator = Operator(name=namespace, group="vaults.example.com", crds=[Vault, policy])
    manifest = documents(operator, local=True)
    cluster = Kubeconfig(str(sandbox.kubeconfig))
    asyncio.run(deploy.install(cluster, manifest))
    vault = {
        "apiVersion": "vaults.example.com/v1",
        "kind": "Vault",
        "metadata": {"name": "v1", "namespace": "default"},
        "spec": {},
    }
    assert server.apply(vault).status == 201
    path = f"{collection(vault)}/v1"
    ends = time.monotonic() + ENFORCED_SECONDS
    while server.request("DELETE", f"{path}?dryRun=All").status != 422:
        assert time.monotonic() < ends, "the policy is not in force"
        time.sleep(0.1)

    asyncio.run(deploy.uninstall(cluster, manifest, own=namespace, wait=ENFORCED_SECONDS, sure=True))

    assert server.request("GET", path).status == 404


async def test_an_integration_test_can_wait_until_something_is_refused(
    sandbox: Sandbox, server: Administrator, operator: Operator, process: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    async with Client(Kubeconfig(str(sandbox.kubeconfig)), user_agent="test") as client:
        running = RunningOperator(operator, client, lambda: process, tmp_path / "operator.log")

        text = await running.until_refused(cache(f"{NAMESPACE}-d", replicas=9))

    assert text.endswith("denied request: at most 3 replicas in this namespace")
    assert server.request("GET", f"{collection(cache('a'))}/{NAMESPACE}-d").status == 404


async def test_what_an_integration_test_applied_goes_although_it_is_a_job(
    sandbox: Sandbox, operator: Operator, process: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    """Regression: its pods were to be orphaned, by a garbage collector that does not run in a sandbox."""
    container = {"name": "main", "image": "registry.example.com/main:1"}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "applied-by-a-test"},
        "spec": {"template": {"spec": {"containers": [container], "restartPolicy": "Never"}}},
    }
    async with Client(Kubeconfig(str(sandbox.kubeconfig)), user_agent="test") as client:
        running = RunningOperator(operator, client, lambda: process, tmp_path / "operator.log")
        await running.apply(job)

        await running.remove_applied()

        assert await running.read(job) is None


async def test_claims_that_an_integration_test_applied_or_its_operator_made_go(
    sandbox: Sandbox, process: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    """Regression: their finalizer is removed by a controller that does not run in a sandbox, so they stayed."""

    class Claims(Controller[Any]):
        resource = Kind("v1", "ConfigMap")
        owns = (Owned("v1", "PersistentVolumeClaim"),)

        async def reconcile(self, axn: Axn[Any]) -> None: ...

    applied = claim("applied-by-a-test")
    async with Client(Kubeconfig(str(sandbox.kubeconfig)), user_agent="test") as client:
        operator = Operator(name="claims", group="example.com", controllers=[Claims])
        running = RunningOperator(operator, client, lambda: process, tmp_path / "operator.log")
        owner = await running.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "owns-a-claim"}})
        await running.apply(applied)
        child, _ = await client.apply(Kind("v1", "PersistentVolumeClaim"), child_of(owner, claim("of-an-owner")))
        assert child["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]

        await running.remove_applied()

        assert [await running.read(each) for each in (applied, child)] == [None, None]


def claim(name: str) -> Resource:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}},
    }
