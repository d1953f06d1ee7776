"""Granting: whether the operator may create a Role or a binding.

A client may only grant permissions that it has. A rule with the verb `escalate` on roles, or `bind` on the role that a
binding names, lifts that. `bonny_dev.testing.handle` checks the roles that a handler registers; a manifest, which does
not know them, gets `warnings`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from bonny.controller import Controller
from bonny.kinds import Kind
from bonny.operator import Operator
from bonny.resource import Resource

from .rbac import CLUSTER, Permission, as_rules, permissions
from .recorder import covers

API_VERSION: Final = "rbac.authorization.k8s.io/v1"
ROLES: Final = ("Role", "ClusterRole")
BINDINGS: Final = ("RoleBinding", "ClusterRoleBinding")


def lacking(
    resource: Mapping[str, Any], granted: Iterable[Permission], *, namespace: str, known: Iterable[Mapping[str, Any]]
) -> list[Resource]:
    """The rules without which an operator with the permissions `granted` may not create `resource`; none if it may.

    `namespace` is that of its owner. The role of a binding is searched in `known`; for another role, `bind` is needed.
    """
    kind = resource["kind"]
    if resource["apiVersion"] != API_VERSION or kind not in ROLES + BINDINGS:
        return []
    scope = (resource["metadata"].get("namespace") or namespace) if kind in ("Role", "RoleBinding") else CLUSTER
    role, verb = resource, "escalate"
    if kind in BINDINGS:
        if not {"kind", "name"} <= (named := resource.get("roleRef") or {}).keys():
            return []  # refused for another reason
        role, verb = {"kind": named["kind"], "metadata": named}, "bind"
        role = next((each for each in known if _name(each) == _name(role)), role)
    of_roles = Kind(API_VERSION, role["kind"])
    freely = Permission(scope, of_roles.group, of_roles.plural, (role["metadata"]["name"],), verb)
    wanted = {freely} if kind in BINDINGS and "rules" not in role else _single(role.get("rules") or (), scope)
    held = [*granted]
    missing = {asked for asked in wanted if not any(covers(each, asked) or covers(each, freely) for each in held)}
    return [rule for rules in as_rules(missing).values() for rule in rules]


def _name(resource: Mapping[str, Any]) -> tuple[str, str]:
    return resource["kind"], resource["metadata"]["name"]


def _single(rules: Iterable[Resource], scope: str) -> set[Permission]:
    """The permissions of a role, each for one name, as Kubernetes compares them."""
    asked = permissions({scope: rules})
    return {each._replace(names=(name,) if name else ()) for each in asked for name in each.names or ("",)}


def controllers(operator: Operator) -> list[type[Controller[Any]]]:
    """The controllers that own Roles or bindings."""
    return [each for each in operator.controllers if any(owned.api_version == API_VERSION for owned in each.owns)]


def warnings(operator: Operator) -> Iterator[str]:
    """A sentence for each controller that owns Roles or bindings, and whose own `rules` name nothing to grant."""
    for controller in controllers(operator):
        if not controller.rules:
            kinds = ", ".join(each.kind for each in controller.owns if each.api_version == API_VERSION)
            yield (
                f"{controller.__name__} owns {kinds}, and an operator may grant only rules that it has: add "
                "the rules that it grants to its `rules`"
            )
