"""Granting: an operator that creates Roles says which rule it lacks, where people look, and may grant what it has."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from bonny import Axn, Controller, Operator, Owned, Resource, Spec, Status, Version, WithConditions
from bonny.api import WithObservedGeneration
from bonny.client import Client, Forbidden
from bonny.client.config import Kubeconfig
from bonny.kinds import Kind
from bonny_dev.manifest import bundle
from bonny_dev.manifest.granting import API_VERSION, lacking
from bonny_dev.manifest.rbac import CLUSTER, permissions
from bonny_dev.sandbox import Sandbox
from bonny_dev.tasks.doctor import examine
from bonny_dev.testing.faults import FaultProxy
from tests.support.serving import serving

NAME = "teams"
GROUP = "rbac.authorization.k8s.io"
READS = {"apiGroups": [""], "resources": ["configmaps", "secrets"], "verbs": ["get", "list"]}


class TeamSpec(Spec):
    """The people."""

    members: list[str] = []


class TeamStatus(Status, WithConditions, WithObservedGeneration):
    """What is."""


class Team(Version):
    """People who may read."""

    kind = "Team"
    version = "v1"
    storage = True
    hub = True
    spec: TeamSpec = TeamSpec()
    status: TeamStatus


class TeamController(Controller[Team]):
    """A Role that reads, and its binding to the members."""

    owns = (Owned(API_VERSION, "Role"), Owned(API_VERSION, "RoleBinding"))

    async def reconcile(self, axn: Axn[Team]) -> None:
        """Both have the name of the team."""
        metadata = {"name": axn.key.name}
        role = {"apiVersion": API_VERSION, "kind": "Role", "metadata": metadata, "rules": [READS]}
        people = [{"kind": "User", "name": name, "apiGroup": GROUP} for name in axn.spec.members]
        named = {"apiGroup": GROUP, "kind": "Role", "name": axn.key.name}
        axn.register_descendant(role)
        bound = {"apiVersion": API_VERSION, "kind": "RoleBinding", "metadata": metadata, "subjects": people}
        axn.register_descendant({**bound, "roleRef": named}, after=role)


class Allowed(TeamController):
    """The same, and what it grants is in its `rules`."""

    rules = (READS,)


TEAM: Resource = {
    "apiVersion": "teams.example.com/v1",
    "kind": "Team",
    "metadata": {"name": "blue", "namespace": "default", "uid": "u-1"},
    "spec": {"members": ["ann"]},
}
SENT = {**TEAM, "metadata": {"name": "blue", "namespace": "default"}}


def operator_of(controller: type[Controller[Any]]) -> Operator:
    return Operator(name=NAME, group="teams.example.com", controllers=[controller], crds=[Team])


@pytest.fixture(params=[TeamController, Allowed])
def operator(request: pytest.FixtureRequest, sandbox: Sandbox) -> Iterator[Operator]:
    made = operator_of(request.param)
    sandbox.apply(bundle.documents(made, image=None, namespace=NAME, local=True))
    yield made
    for api_version, kind in ((TEAM["apiVersion"], "Team"), (API_VERSION, "Role"), (API_VERSION, "RoleBinding")):
        sandbox.delete(api_version, kind, "blue", namespace="default")


def condition(sandbox: Sandbox) -> Resource:
    live = sandbox.get(TEAM["apiVersion"], "Team", "blue", namespace="default") or {}
    return next((each for each in (live.get("status") or {}).get("conditions", ()) if each["type"] == "Reconciled"), {})


def notes_about(sandbox: Sandbox, name: str) -> list[str]:
    events = sandbox.items("events.k8s.io/v1", "Event", namespace="default")
    return [each["note"] for each in events if each["regarding"]["name"] == name]


async def findings(sandbox: Sandbox, operator: Operator) -> list[tuple[bool, str, tuple[str, ...]]]:
    cluster = Kubeconfig(str(sandbox.kubeconfig))
    return [
        (each.ok, each.text, each.detail)
        async for each in examine(operator, cluster, namespace=NAME, samples={})
        if each.part == "permissions"
    ]


def test_a_role_that_grants_too_much_names_the_missing_rule_wherever_people_look(
    sandbox: Sandbox, operator: Operator, caplog: pytest.LogCaptureFixture
) -> None:
    """Regression: condition, event and log said that details were left out, and doctor that nothing was missing."""
    (controller,) = operator.controllers
    with (
        FaultProxy(sandbox, token=sandbox.service_account_token(NAME, NAME)) as account,
        serving(operator, account.kubeconfig),
    ):
        sandbox.apply(SENT)
        ready = sandbox.eventually(lambda: condition(sandbox).get("status"), within_seconds=30.0)
        if controller is Allowed:
            sandbox.eventually(lambda: condition(sandbox).get("status") == "True", within_seconds=30.0)
            role = sandbox.get(API_VERSION, "RoleBinding", "blue", namespace="default")
            assert role is not None
            assert role["subjects"][0]["name"] == "ann"
            return
        # Sent after the status, by a task of its own.
        notes = sandbox.eventually(lambda: notes_about(sandbox, "blue"), within_seconds=30.0)
        lines = [vars(each).get("error", "") for each in caplog.records if each.levelno >= logging.WARNING]
        found = asyncio.run(findings(sandbox, operator))
    missing = f"missing rule: {json.dumps(READS)}"
    texts = [condition(sandbox)["message"], *notes]
    assert ready == "False"
    assert all("is attempting to grant RBAC permissions not currently held" in text for text in texts)
    assert all(missing in text for text in texts)
    assert any(missing in line for line in lines)
    assert [ok for ok, *_ in found] == [True, False]
    (_, _, warned), (_, text, rules) = found
    sentence = "TeamController owns Role, RoleBinding, and an operator may grant only rules that it has"
    assert warned[0].startswith(sentence)
    assert text == "TeamController may not grant rules that it lacks: add to its `rules`"
    assert rules == (f"{json.dumps(READS)}  # for Team default/blue",)


# --- as Kubernetes decides --------------------------------------------------------------------------------------------

HELD: dict[str, list[Resource]] = {
    CLUSTER: [
        {"apiGroups": [GROUP], "resources": ["clusterroles"], "verbs": ["get", "create", "patch", "escalate"]},
        {"apiGroups": [GROUP], "resources": ["clusterroles"], "resourceNames": ["cluster-admin"], "verbs": ["bind"]},
        {"apiGroups": [GROUP], "resources": ["roles", "rolebindings"], "verbs": ["get", "create", "patch"]},
        {"apiGroups": [GROUP], "resources": ["clusterrolebindings"], "verbs": ["get", "create", "patch"]},
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["one"], "verbs": ["get"]},
        {"nonResourceURLs": ["/metrics"], "verbs": ["get"]},
    ],
    "default": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}],
}


def role(*rules: Resource, kind: str = "Role", namespace: str = "default") -> Resource:
    metadata = {"name": "tried", **({"namespace": namespace} if kind == "Role" else {})}
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "rules": [*rules]}


def binding(name: str, kind: str = "RoleBinding", namespace: str = "default") -> Resource:
    metadata = {"name": "tried", **({"namespace": namespace} if kind == "RoleBinding" else {})}
    named = {"apiGroup": GROUP, "kind": "ClusterRole", "name": name}
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "roleRef": named}


def rule(resources: str, *verbs: str, names: tuple[str, ...] = ()) -> Resource:
    its = {"apiGroups": [""], "resources": resources.split(), "verbs": [*verbs]}
    return {**its, "resourceNames": [*names]} if names else its


KNOWN = [{**role(rule("configmaps", "get"), kind="ClusterRole"), "metadata": {"name": "small"}}]
TRIED = {
    "held": role(rule("configmaps", "get")),
    "another verb": role(rule("configmaps", "get", "list")),
    "another resource": role(rule("configmaps secrets", "get")),
    "in the namespace": role(rule("pods", "list")),
    "in another namespace": role(rule("pods", "list"), namespace="kube-system"),
    "one name": role(rule("secrets", "get", names=("one",))),
    "two names": role(rule("secrets", "get", names=("one", "two"))),
    "everything": role({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}),
    "nothing": role(),
    "escalated": role(rule("nodes", "get"), kind="ClusterRole"),
    "bound freely": binding("cluster-admin"),
    "bound freely everywhere": binding("cluster-admin", "ClusterRoleBinding"),
    "bound, and held": binding("small"),
    "bound, and not held": binding("system:node"),
}


async def test_a_unit_test_is_as_strict_as_the_api_server(sandbox: Sandbox) -> None:
    people = [{"kind": "ServiceAccount", "name": "tries", "namespace": "default"}]
    sandbox.apply(
        [{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "tries", "namespace": "default"}}]
    )
    made = list(KNOWN)
    for where, rules in HELD.items():
        kind, metadata = ("ClusterRole", {"name": "tries"}) if where == CLUSTER else ("Role", {"name": "tries"})
        placed = metadata if where == CLUSTER else {**metadata, "namespace": where}
        named = {"apiGroup": GROUP, "kind": kind, "name": "tries"}
        made.append({"apiVersion": API_VERSION, "kind": kind, "metadata": placed, "rules": rules})
        made.append({**made[-1], "kind": f"{kind}Binding", "roleRef": named, "subjects": people})
        made[-1].pop("rules")
    sandbox.apply(made)
    kubeconfig = sandbox.service_account_kubeconfig("default", "tries")
    held = set(permissions(HELD))
    async with Client(Kubeconfig(str(kubeconfig)), user_agent="test") as client:

        async def refused(resource: Resource) -> bool:
            try:
                await client.apply(Kind(API_VERSION, resource["kind"]), resource, manager="test", dry_run=True)
            except Forbidden:
                return True
            return False

        async def granted() -> bool:
            return not await refused(TRIED["held"]) and not await refused(TRIED["bound freely"])

        async with asyncio.timeout(30.0):
            while not await granted():  # noqa: ASYNC110  the API server learns of roles a moment later
                await asyncio.sleep(0.1)
        decided = {name: await refused(resource) for name, resource in TRIED.items()}
    for resource in made:
        sandbox.delete(
            API_VERSION, resource["kind"], resource["metadata"]["name"], namespace=resource["metadata"].get("namespace")
        )

    ours = {name: lacking(each, held, namespace="default", known=KNOWN) for name, each in TRIED.items()}
    assert {name: bool(rules) for name, rules in ours.items()} == decided
    assert sum(decided.values()) == 6
    assert ours["another verb"] == [rule("configmaps", "list")]
    assert ours["bound, and not held"] == [
        {"apiGroups": [GROUP], "resources": ["clusterroles"], "resourceNames": ["system:node"], "verbs": ["bind"]}
    ]
