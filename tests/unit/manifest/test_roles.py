"""Roles: what people may do with custom resources. What Kubernetes makes of them: tests/integration/test_roles.py."""

from __future__ import annotations

from typing import Any

import yaml

from bonny import Axn, Controller, Operator
from bonny.api import Scale, Scope, Spec, Status, Version
from bonny.kinds import Kind
from bonny_dev.manifest.bundle import documents, to_yaml
from bonny_dev.manifest.roles import aggregated_roles


class SizedSpec(Spec):
    """What the user wants."""

    replicas: int = 1


class SizedStatus(Status):
    """What is."""

    replicas: int = 0


class Widget(Version):
    """Has a status and a scale."""

    kind = "Widget"
    version = "v1"
    storage = True
    hub = True
    scale = Scale(".spec.replicas", ".status.replicas")
    spec: SizedSpec
    status: SizedStatus


class Realm(Version):
    """Has neither, and is in another group."""

    kind = "Realm"
    version = "v1"
    group = "realms.example.com"
    scope = Scope.CLUSTER
    storage = True
    hub = True
    spec: Spec


class Pods(Controller[Any]):
    """Of a kind of others."""

    resource = Kind("v1", "Pod")

    async def reconcile(self, axn: Axn[Any]) -> None:
        """Does nothing."""


def operator(*crds: type[Version]) -> Operator:
    return Operator(name="widgets", group="example.com", controllers=[Pods], crds=crds)


def test_each_role_adds_what_the_one_before_it_lacks() -> None:
    view, edit, admin = aggregated_roles(operator(Widget, Realm))

    assert [role["metadata"]["name"] for role in (view, edit, admin)] == [
        "widgets-view",
        "widgets-edit",
        "widgets-admin",
    ]
    assert view["rules"] == [
        {"apiGroups": ["example.com"], "resources": ["widgets"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": ["example.com"], "resources": ["widgets/scale", "widgets/status"], "verbs": ["get"]},
        {"apiGroups": ["realms.example.com"], "resources": ["realms"], "verbs": ["get", "list", "watch"]},
    ]
    assert edit["rules"] == [
        {"apiGroups": ["example.com"], "resources": ["widgets"], "verbs": ["create", "update", "patch", "delete"]},
        {"apiGroups": ["example.com"], "resources": ["widgets/scale"], "verbs": ["update", "patch"]},
        {
            "apiGroups": ["realms.example.com"],
            "resources": ["realms"],
            "verbs": ["create", "update", "patch", "delete"],
        },
    ]
    assert [rule["verbs"] for rule in admin["rules"]] == [["deletecollection"]] * 2


def test_each_role_is_for_one_role_of_kubernetes() -> None:
    assert [role["metadata"]["labels"] for role in aggregated_roles(operator(Widget))] == [
        {f"rbac.authorization.k8s.io/aggregate-to-{name}": "true"} for name in ("view", "edit", "admin")
    ]


def test_an_operator_without_kinds_of_its_own_has_no_such_roles() -> None:
    assert aggregated_roles(operator()) == []


def test_the_manifest_holds_them_and_gives_them_to_nobody() -> None:
    parts = list(yaml.safe_load_all(to_yaml(documents(operator(Widget)))))

    names = [part["metadata"]["name"] for part in parts if part["kind"] == "ClusterRole"]
    assert names == ["widgets", "widgets-view", "widgets-edit", "widgets-admin"]
    assert [part["roleRef"]["name"] for part in parts if part["kind"] == "ClusterRoleBinding"] == ["widgets"]
    (view,) = [part for part in parts if part["metadata"]["name"] == "widgets-view"]
    assert view["metadata"]["labels"]["app.kubernetes.io/name"] == "widgets"
