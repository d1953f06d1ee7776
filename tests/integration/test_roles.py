"""Roles of people, as the real RBAC reads them. What adds them up is a controller, which does not run here."""

from __future__ import annotations

from typing import Any

import pytest

from bonny_dev.manifest import bundle
from bonny_dev.sandbox import Sandbox
from tests.support.undeclared import operator

RBAC = "rbac.authorization.k8s.io"
ROLES = ("view", "edit", "admin")


@pytest.fixture(scope="module")
def people(sandbox: Sandbox) -> Sandbox:
    """Somebody has each of the roles in the namespace `default`, and is called like it."""
    sandbox.apply(bundle.documents(operator, image=None, namespace=operator.name, local=True))
    for role in ROLES:
        name = f"{operator.name}-{role}"
        sandbox.apply(
            {
                "apiVersion": f"{RBAC}/v1",
                "kind": "RoleBinding",
                "metadata": {"name": name, "namespace": "default"},
                "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": name},
                "subjects": [{"apiGroup": RBAC, "kind": "User", "name": role}],
            }
        )
    return sandbox


def may(people: Sandbox, user: str, verb: str, *, subresource: str = "", namespace: str = "default") -> Any:
    attributes = {"group": operator.group, "resource": "doors", "subresource": subresource, "verb": verb}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": user, "resourceAttributes": {**attributes, "namespace": namespace}},
    }
    return people.request("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review).body["status"][
        "allowed"
    ]


def test_each_role_allows_what_it_says_and_only_there(people: Sandbox) -> None:
    verbs = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
    allowed = {role: [verb for verb in verbs if may(people, role, verb)] for role in ROLES}

    assert allowed == {"view": [*verbs[:3]], "edit": [*verbs[3:7]], "admin": ["deletecollection"]}
    assert not any(may(people, role, "get", namespace="kube-system") for role in ROLES)
    assert not any(may(people, role, "patch", subresource="status") for role in ROLES)


def test_the_labels_are_those_that_kubernetes_adds_up(people: Sandbox) -> None:
    roles = {found["metadata"]["name"]: found for found in people.items(f"{RBAC}/v1", "ClusterRole")}
    chosen = {}
    for role in ROLES:
        (selector,) = roles[role]["aggregationRule"]["clusterRoleSelectors"]
        chosen[role] = {
            name
            for name, found in roles.items()
            if selector["matchLabels"].items() <= (found["metadata"].get("labels") or {}).items()
        }

    assert {role: names & {*ROLES, *(f"doors-{each}" for each in ROLES)} for role, names in chosen.items()} == {
        "view": {"doors-view"},
        "edit": {"doors-edit", "view"},
        "admin": {"doors-admin", "edit"},
    }
