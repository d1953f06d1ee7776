"""Roles: permissions of people for an operator's custom resources, added to the default roles of a cluster.

Kubernetes adds the rules of a ClusterRole with such a label to its own `view`, `edit` or `admin`, the rules of `view`
to `edit`, and the rules of `edit` to `admin`: a user who may edit the Deployments of a namespace may edit its custom
resources.

- view: get, list and watch; get of `<plural>/status` and `<plural>/scale`;
- edit: create, update, patch and delete; update and patch of `<plural>/scale`;
- admin: deletecollection, which deletes all at once.

No user may write a status: the operator reports its own observations there, and relies on them.
"""

from __future__ import annotations

from collections.abc import Iterator

from bonny.api import Version
from bonny.operator import Operator
from bonny.resource import Resource

from .rbac import CLUSTER, READ, Permission, as_rules
from .template import read_object


def aggregated_roles(operator: Operator) -> list[Resource]:
    """The ClusterRoles `<operator>-view`, `-edit` and `-admin` for its own kinds; none where it has none."""
    allowed: dict[str, set[Permission]] = {}
    for version in operator.crds:
        kind = version.as_kind(operator.group)
        for role, subresource, verbs in _verbs(version):
            resource = f"{kind.plural}{subresource}"
            granted = (Permission(CLUSTER, kind.group, resource, (), verb) for verb in verbs)
            allowed.setdefault(role, set()).update(granted)
    return [
        {**read_object("aggregated-role", operator, CLUSTER, role=role), "rules": as_rules(permissions)[CLUSTER]}
        for role, permissions in allowed.items()
    ]


def _verbs(version: type[Version]) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Role, subresource and verbs: each role adds to the ones before it."""
    yield "view", "", READ
    yield "edit", "", ("create", "update", "patch", "delete")
    yield "admin", "", ("deletecollection",)
    if version.status_model() is not None:
        yield "view", "/status", ("get",)
    if version.scale is not None:
        yield "view", "/scale", ("get",)
        yield "edit", "/scale", ("update", "patch")
