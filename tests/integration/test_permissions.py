"""Permissions, decided by the real RBAC: missing ones are found by reviews, and named when they are used."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from bonny import Operator
from bonny.client.api import Client
from bonny.client.config import Kubeconfig
from bonny.client.errors import Forbidden, NotFound, NotServed
from bonny.errors import ApiError
from bonny.kinds import Kind
from bonny.resource import Resource
from bonny_dev.manifest import bundle, rbac
from bonny_dev.manifest.reviews import refused
from bonny_dev.sandbox import Sandbox
from bonny_dev.testing import record_permissions
from bonny_dev.testing.faults import Fault, FaultProxy, Hold, ProxiedRequest, Respond
from tests.conftest import Start
from tests.support.serving import serving
from tests.support.undeclared import operator

ROOT = Path(__file__).parents[2]
NAME = operator.name
DOOR = {
    "apiVersion": "doors.example.com/v1",
    "kind": "Door",
    "metadata": {"name": "front", "namespace": "default"},
    "spec": {},
}
READS_A_SECRET = '{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}'
VERBS = "get, list, watch, create, patch, delete"
SECONDS = 30.0
CHECKED = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
RULES = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"


def of_a_permission(request: ProxiedRequest) -> bool:
    return request.path == CHECKED


def of_rules(request: ProxiedRequest) -> bool:
    return request.path == RULES


def without(role: Resource, resource: str) -> Resource:
    return {**role, "rules": [rule for rule in role["rules"] if resource not in rule["resources"]]}


@pytest.fixture
def roles(sandbox: Sandbox) -> dict[str, Resource]:
    """What the manifest grants, by kind, after it was applied."""
    documents = bundle.documents(operator, image=None, namespace=NAME, local=True)
    sandbox.apply(documents)
    return {
        document["kind"]: document
        for document in documents
        if document["kind"] in {"ClusterRole", "Role"} and document["metadata"]["name"] == NAME
    }


@pytest.fixture
def proxy(sandbox: Sandbox, roles: dict[str, Resource]) -> Iterator[FaultProxy]:
    """Leads to the API server as the operator's ServiceAccount."""
    with FaultProxy(sandbox, token=sandbox.service_account_token(NAME, NAME)) as started:
        yield started


@pytest.fixture
def rooms(sandbox: Sandbox, roles: dict[str, Resource]) -> tuple[Operator, list[str]]:
    """The same operator, which watches three namespaces by name, and may do there what its Role says."""
    names = [f"room-{number}" for number in range(3)]
    watching = Operator(name=NAME, group=operator.group, controllers=operator.controllers, watch="namespace")
    rules = rbac.grants(watching, namespace=NAME)[NAME]
    for name in names:
        metadata = {"name": NAME, "namespace": name}
        sandbox.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": metadata}
        binding = {
            **role,
            "kind": "RoleBinding",
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": NAME},
            "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": NAME}],
        }
        sandbox.apply([{**role, "rules": rules}, binding])
    sandbox.apply({**roles["ClusterRole"], "rules": []})
    return watching, names


async def missing(proxy: FaultProxy, wanted: Iterable[rbac.Permission]) -> list[str]:
    """The rules that the user of `proxy` lacks, one line each, as `invoke doctor` shows them."""
    async with Client(Kubeconfig(str(proxy.kubeconfig)), user_agent="test") as client:
        return rbac.missing_lines(await refused(client, wanted))


async def until_missing(proxy: FaultProxy, wanted: Iterable[rbac.Permission], lines: list[str]) -> None:
    """Wait until these rules are missing: the API server follows roles by a watch."""
    wanted = [*wanted]
    async with asyncio.timeout(SECONDS):
        while await missing(proxy, wanted) != lines:  # noqa: ASYNC110  the API server sends no notification
            await asyncio.sleep(0.05)


def of_namespaces(watching: Operator, names: Iterable[str]) -> list[rbac.Permission]:
    needed = rbac.needs(watching, namespace=NAME, watched=tuple(names), leader_election=False)
    return [*rbac.permissions(needed)]


# --- reviews ----------------------------------------------------------------------------------------------------------


async def test_with_the_rules_of_its_manifest_nothing_is_missing(proxy: FaultProxy) -> None:
    granted = [*rbac.permissions(rbac.grants(operator, namespace=NAME, deployed=False))]
    await until_missing(proxy, granted, [])
    asked, of_all_rules = proxy.count(of_a_permission), proxy.count(of_rules)
    assert await missing(proxy, granted) == []
    of_the_cluster = sum(permission.namespace == rbac.CLUSTER for permission in granted)
    assert proxy.count(of_a_permission) - asked == of_the_cluster
    assert proxy.count(of_rules) - of_all_rules == 1  # of its own namespace, with the lease


async def test_in_each_watched_namespace_one_question_is_asked(
    proxy: FaultProxy, rooms: tuple[Operator, list[str]]
) -> None:
    """Regression: it was one for each permission, 1,900 for 100 namespaces."""
    wanted = of_namespaces(*rooms)
    await until_missing(proxy, wanted, [])
    asked, of_all_rules = proxy.count(of_a_permission), proxy.count(of_rules)
    assert await missing(proxy, wanted) == []
    assert (proxy.count(of_rules) - of_all_rules, proxy.count(of_a_permission) - asked) == (3, 0)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(Respond(403, b"no"), id="refused"),
        pytest.param(Respond(404, b'{"kind": "Respond", "reason": "NotFound"}'), id="not-there"),
        pytest.param(Respond(201, b'{"status": {"incomplete": true, "resourceRules": []}}'), id="incomplete"),
        pytest.param(Respond(201, b'{"status": {"incomplete": true, "resourceRules": null}}'), id="empty"),
        pytest.param(Respond(201, b'{"status": [{}]}'), id="nonsense"),
        pytest.param(Respond(201, b"[]"), id="a-list"),
        pytest.param(Respond(201, b'{"status": {"resourceRules": [{"verbs": ["get"]}, 7]}}'), id="half-nonsense"),
    ],
)
async def test_rules_that_are_not_named_are_reviewed_one_by_one(
    sandbox: Sandbox, proxy: FaultProxy, rooms: tuple[Operator, list[str]], answer: Respond
) -> None:
    """What is granted is not called missing, and what is missing is found."""
    watching, names = rooms
    role = sandbox.get("rbac.authorization.k8s.io/v1", "Role", NAME, namespace=names[0])
    assert role is not None
    sandbox.apply(without(role | {"metadata": {"name": NAME, "namespace": names[0]}}, "configmaps"))
    proxy.add(Fault(answer, on=of_rules, times=None))
    line = f'add to the Role in {names[0]}: - {{apiGroups: [""], resources: ["configmaps"], verbs: [{VERBS}]}}'
    await until_missing(proxy, of_namespaces(watching, names), [line])


async def test_a_missing_rule_is_shown_as_the_yaml_to_add_until_it_is_there(
    sandbox: Sandbox, proxy: FaultProxy, roles: dict[str, Resource]
) -> None:
    wanted = [*rbac.permissions(rbac.grants(operator, namespace=NAME, deployed=False))]
    sandbox.apply(without(roles["ClusterRole"], "configmaps"))
    line = f'add to the ClusterRole: - {{apiGroups: [""], resources: ["configmaps"], verbs: [{VERBS}]}}'
    await until_missing(proxy, wanted, [line])
    sandbox.apply(roles["ClusterRole"])
    await until_missing(proxy, wanted, [])


async def test_missing_rules_of_the_lease_are_shown_for_its_role(
    sandbox: Sandbox, proxy: FaultProxy, roles: dict[str, Resource]
) -> None:
    sandbox.apply({**roles["Role"], "rules": []})
    wanted = [*rbac.permissions(rbac.grants(operator, namespace=NAME, deployed=False))]
    leases = f'add to the Role in {NAME}: - {{apiGroups: ["coordination.k8s.io"], resources: ["leases"]'
    lines = [f"{leases}, verbs: [create]}}", f'{leases}, resourceNames: ["{NAME}"], verbs: [get, update]}}']
    await until_missing(proxy, wanted, lines)


@pytest.mark.parametrize(("status", "error"), [(403, Forbidden), (404, NotServed)])
async def test_a_refused_review_is_an_error_and_no_missing_permission(
    proxy: FaultProxy, status: int, error: type[Exception]
) -> None:
    proxy.add(Fault(Respond(status, b"no"), on=of_a_permission, times=None))
    with pytest.raises(error):
        await missing(proxy, rbac.permissions(rbac.grants(operator, namespace=NAME)))


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"status": {"allowed": "perhaps"}}', b"<html>"])
async def test_a_review_without_a_decision_is_an_error(
    sandbox: Sandbox, proxy: FaultProxy, roles: dict[str, Resource], body: bytes
) -> None:
    proxy.add(Fault(Respond(201, body), on=of_a_permission, times=None))
    with pytest.raises(ApiError):
        await missing(proxy, rbac.permissions(rbac.grants(operator, namespace=NAME)))


async def test_access_reviews_are_sent_one_by_one(proxy: FaultProxy) -> None:
    """Where the API server limits the requests of a user at a time, many reviews take the place of other requests."""
    held = threading.Event()
    proxy.add(Fault(Hold(held), on=of_a_permission, times=None))
    asking = asyncio.create_task(missing(proxy, rbac.permissions(rbac.grants(operator, namespace=NAME))))
    try:
        async with asyncio.timeout(SECONDS), Client(Kubeconfig(str(proxy.kubeconfig)), user_agent="test") as client:
            while not proxy.count(of_a_permission):  # noqa: ASYNC110  the proxy sends no notification
                await asyncio.sleep(0.05)
            for _ in range(5):
                with contextlib.suppress(Forbidden, NotFound):
                    await client.get(Kind("v1", "ConfigMap"), "a", namespace="default")
        assert proxy.count(of_a_permission) == 1, "others were sent, although there was time for much more"
    finally:
        held.set()
    await asking
    assert proxy.count(of_a_permission) > 4


def test_an_operator_without_a_rule_works_and_logs_the_rule_with_the_refused_request(
    sandbox: Sandbox, proxy: FaultProxy, roles: dict[str, Resource], caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing is asked at the start."""
    sandbox.apply(without(roles["ClusterRole"], "configmaps"))
    with serving(operator, proxy.kubeconfig) as at_work:
        Sandbox.eventually(lambda: any("missing_rule" in vars(record) for record in caplog.records))
        rules = {vars(record)["missing_rule"] for record in caplog.records if "missing_rule" in vars(record)}
        assert rules == {'- {apiGroups: [""], resources: ["configmaps"], verbs: [get, list, watch]}'}
        Sandbox.eventually(lambda: at_work.process.readiness().ok)
        assert at_work.process.health().ok
        assert (proxy.count(of_a_permission), proxy.count(of_rules)) == (0, 0)

        sandbox.apply(roles["ClusterRole"])
        Sandbox.eventually(lambda: not any("forbidden" in line for line in at_work.process.readiness().lines))


# --- when it is used --------------------------------------------------------------------------------------------------


def may(sandbox: Sandbox, verb: str, name: str) -> bool:
    """Whether the API server's authorizer has the grant already: it follows roles by a watch."""
    attributes = {"namespace": "default", "verb": verb, "resource": "configmaps", "name": name}
    spec = {"user": "system:serviceaccount:default:patcher", "resourceAttributes": attributes}
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
    answer = sandbox.request("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
    return bool(answer.body["status"]["allowed"])


async def test_an_apply_needs_create_only_where_it_creates(sandbox: Sandbox) -> None:
    """Why the recorder counts an answer of 201 twice."""
    account = {"name": "patcher", "namespace": "default"}
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": account}
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["patch"]}
    binding = {
        **role,
        "kind": "RoleBinding",
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "patcher"},
        "subjects": [{"kind": "ServiceAccount", **account}],
    }
    here = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "here", "namespace": "default"}}
    new = {**here, "metadata": {"name": "new", "namespace": "default"}}
    sandbox.apply(
        [{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account}, {**role, "rules": [rule]}, here]
    )
    sandbox.apply(binding)
    sandbox.eventually(lambda: may(sandbox, "patch", "here"))
    cluster = Kubeconfig(str(sandbox.service_account_kubeconfig("default", "patcher")))
    async with Client(cluster, user_agent="test") as client:
        await client.apply(Kind("v1", "ConfigMap"), {**here, "data": {"a": "1"}}, manager="test")
        with pytest.raises(Forbidden, match='cannot create resource "configmaps"'):
            await client.apply(Kind("v1", "ConfigMap"), new, manager="test")
        sandbox.apply({**role, "rules": [{**rule, "verbs": ["patch", "create"], "resourceNames": ["new", "here"]}]})
        sandbox.eventually(lambda: may(sandbox, "create", "new"))
        with record_permissions() as recorder:
            await client.apply(Kind("v1", "ConfigMap"), new, manager="test")
    assert recorder.compared_with({"default": [rule]}).missing == {"default": [{**rule, "verbs": ["create"]}]}


def test_run_local_says_in_the_end_which_permissions_are_missing_and_which_were_not_used(
    sandbox: Sandbox, start_operator: Start
) -> None:
    at_work = start_operator([sys.executable, "-m", "tests.support.undeclared"], cwd=ROOT).wait_ready()
    sandbox.apply(DOOR)
    Sandbox.eventually(lambda: "default/front" in at_work.text)

    code, _ = at_work.stop()

    assert code == 0, at_work.text
    lines = at_work.text.splitlines()
    missing = lines.index("permissions used but not granted; add to `rules` of the controller that needs them:")
    unused = lines.index("permissions granted but never used this time:")
    assert unused < missing
    assert lines[missing + 1 :] == [f"  {READS_A_SECRET}  # in default"]
    assert (
        '  {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create", "patch", "delete"]}'
        in lines[unused:missing]
    )
    assert "leases" not in "".join(lines[unused:])
