"""Permissions, decided by the real RBAC: what is missing is said at start, and found when it is used."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bonny import Operator
from bonny.client.api import Client
from bonny.client.config import Kubeconfig
from bonny.client.errors import Forbidden
from bonny.kinds import Kind
from bonny.resource import Resource
from bonny.run import permissions, rbac
from bonny_dev.manifest import bundle
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


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(permissions, "AGAIN_SECONDS", 0.2)
    monkeypatch.setattr(permissions, "LONGEST_WAIT_SECONDS", 0.2)
    caplog.set_level(logging.DEBUG, logger="bonny_dev.manifest.rbac")


def said(caplog: pytest.LogCaptureFixture, message: str) -> list[dict[str, Any]]:
    return [vars(record) for record in caplog.records if record.getMessage() == message]


# --- at start ---------------------------------------------------------------------------------------------------------


def test_with_the_rules_of_its_manifest_nothing_is_missing_and_nothing_is_asked_again(
    proxy: FaultProxy, caplog: pytest.LogCaptureFixture
) -> None:
    with serving(operator, proxy.kubeconfig, leader_election=True, pod_namespace=NAME) as at_work:
        granted = [*rbac.permissions(rbac.grants(operator, namespace=NAME))]
        asking = next(task for task in at_work.process._once if task.get_name() == "the permissions")
        Sandbox.eventually(asking.done)
        lines = at_work.process.readiness().lines
    assert not any("permission" in line for line in lines)
    assert said(caplog, "a permission is missing") == []
    assert proxy.count(of_a_permission) == sum(permission.namespace == rbac.CLUSTER for permission in granted)
    assert proxy.count(of_rules) == 1  # of its own namespace, with the lease


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


def test_in_each_watched_namespace_one_question_is_asked(
    proxy: FaultProxy, rooms: tuple[Operator, list[str]], caplog: pytest.LogCaptureFixture
) -> None:
    """Regression: it was one for each permission, 1,900 for 100 namespaces."""
    watching, names = rooms
    with serving(watching, proxy.kubeconfig, watch_namespaces=tuple(names)) as at_work:
        asking = next(task for task in at_work.process._once if task.get_name() == "the permissions")
        Sandbox.eventually(asking.done)
    assert (proxy.count(of_rules), proxy.count(of_a_permission)) == (3, 0)
    assert said(caplog, "a permission is missing") == []


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
def test_rules_that_are_not_named_are_asked_for_one_by_one(
    sandbox: Sandbox, proxy: FaultProxy, rooms: tuple[Operator, list[str]], answer: Respond
) -> None:
    """What is granted is not called missing, and what is missing is found."""
    watching, names = rooms
    role = sandbox.get("rbac.authorization.k8s.io/v1", "Role", NAME, namespace=names[0])
    assert role is not None
    sandbox.apply(without(role | {"metadata": {"name": NAME, "namespace": names[0]}}, "configmaps"))
    proxy.add(Fault(answer, on=of_rules, times=None))
    with serving(watching, proxy.kubeconfig, watch_namespaces=tuple(names)) as at_work:
        Sandbox.eventually(lambda: at_work.process._permissions.missing)
        (line,) = at_work.process._permissions.missing
    assert line.startswith(f'add to the Role in {names[0]}: - {{apiGroups: [""], resources: ["configmaps"]')


def test_a_missing_rule_is_told_with_the_yaml_to_add_and_until_it_is_there(
    sandbox: Sandbox, proxy: FaultProxy, roles: dict[str, Resource], caplog: pytest.LogCaptureFixture
) -> None:
    whole = roles["ClusterRole"]
    sandbox.apply(without(whole, "configmaps"))
    verbs = "get, list, watch, create, patch, delete"
    line = f'add to the ClusterRole: - {{apiGroups: [""], resources: ["configmaps"], verbs: [{verbs}]}}'

    with serving(operator, proxy.kubeconfig) as at_work:
        listed = f"a permission is missing: {line}"
        Sandbox.eventually(lambda: listed in at_work.process.readiness().lines)
        assert at_work.process.readiness().ok
        assert at_work.process.health().ok
        assert [record["then"] for record in said(caplog, "a permission is missing")] == [line]

        sandbox.apply(whole)
        Sandbox.eventually(lambda: listed not in at_work.process.readiness().lines)
    assert len(said(caplog, "a permission is missing")) == 1
    assert len(said(caplog, "no permission is missing any more")) == 1


def test_what_is_missing_only_at_first_is_not_told(
    sandbox: Sandbox, proxy: FaultProxy, caplog: pytest.LogCaptureFixture
) -> None:
    """Regression: an operator that was applied together with its role warned of rules that were there."""
    refused = b'{"kind": "SelfSubjectAccessReview", "status": {"allowed": false}}'
    first = proxy.add(Fault(Respond(201, refused), on=of_a_permission))
    with serving(operator, proxy.kubeconfig) as at_work:
        asking = next(task for task in at_work.process._once if task.get_name() == "the permissions")
        Sandbox.eventually(asking.done)
    assert first.hits == 1
    assert said(caplog, "a permission is missing") == []


def test_a_standby_that_may_not_hold_the_lease_is_told_so(
    sandbox: Sandbox, proxy: FaultProxy, roles: dict[str, Resource]
) -> None:
    sandbox.apply({**roles["Role"], "rules": []})
    with serving(operator, proxy.kubeconfig, leader_election=True, pod_namespace=NAME) as at_work:
        Sandbox.eventually(lambda: at_work.process._permissions.missing)
        missing = at_work.process._permissions.missing
    leases = f'add to the Role in {NAME}: - {{apiGroups: ["coordination.k8s.io"], resources: ["leases"]'
    assert missing == [
        f"{leases}, verbs: [create]}}",
        f'{leases}, resourceNames: ["{NAME}"], verbs: [get, update]}}',
    ]


def test_reviews_that_are_not_answered_hold_nothing_up_and_are_sent_one_by_one(
    sandbox: Sandbox, proxy: FaultProxy
) -> None:
    held = threading.Event()
    proxy.add(Fault(Hold(held), on=of_a_permission, times=None))
    with serving(operator, proxy.kubeconfig) as at_work:
        Sandbox.eventually(lambda: proxy.count(of_a_permission) == 1)
        sandbox.apply(DOOR)
        Sandbox.eventually(lambda: sum(worker.handled for worker in at_work.process.workers))
        assert at_work.process.readiness().ok
        assert proxy.count(of_a_permission) == 1, "the others were not sent, although there was time for much more"
        held.set()
        Sandbox.eventually(lambda: proxy.count(of_a_permission) > 4)


def test_an_api_server_that_answers_no_reviews_is_no_error(proxy: FaultProxy, caplog: pytest.LogCaptureFixture) -> None:
    proxy.add(Fault(Respond(403, b"no"), on=of_a_permission, times=None))
    with serving(operator, proxy.kubeconfig) as at_work:
        Sandbox.eventually(lambda: said(caplog, "skipping the permission check"))
        assert at_work.process.readiness().ok
    assert {record.levelname for record in caplog.records if record.name == "bonny_dev.manifest.rbac"} == {"INFO"}


def test_one_404_of_whoever_answered_does_not_end_the_check(
    sandbox: Sandbox, proxy: FaultProxy, roles: dict[str, Resource]
) -> None:
    """Regression: an API server that was starting, or a proxy, ended it for as long as the process lived."""
    sandbox.apply(without(roles["ClusterRole"], "configmaps"))
    once = proxy.add(Fault(Respond(404, b"no"), on=of_a_permission))
    with serving(operator, proxy.kubeconfig) as at_work:
        Sandbox.eventually(lambda: at_work.process._permissions.missing)
    assert once.hits == 1


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"status": {"allowed": "perhaps"}}', b"<html>"])
def test_answers_that_say_nothing_are_asked_for_again(
    sandbox: Sandbox, proxy: FaultProxy, roles: dict[str, Resource], body: bytes
) -> None:
    sandbox.apply(without(roles["ClusterRole"], "configmaps"))
    strange = proxy.add(Fault(Respond(201, body), on=of_a_permission, times=None))
    with serving(operator, proxy.kubeconfig) as at_work:
        Sandbox.eventually(lambda: strange.hits > 4)
        assert at_work.process._permissions.missing == []
        proxy.remove(strange)
        Sandbox.eventually(lambda: at_work.process._permissions.missing)


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
