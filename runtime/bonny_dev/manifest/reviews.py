"""Reviews: checks with the API server whether any of its authorizers grants permissions.

One SelfSubjectRulesReview a namespace names the rules that hold there. Access reviews ask, one by one, for what these
rules do not name: they may have wildcards, or be incomplete, as with an authorizing webhook. Access reviews also ask
for what is needed cluster-wide: the rules of a namespace do not say which of them hold elsewhere.

RBAC: none to ask about oneself (every user has system:basic-user); create of subjectaccessreviews to ask about others.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from bonny.client.api import Client
from bonny.client.errors import Forbidden, NotFound, ServerError
from bonny.errors import ApiError
from bonny.kinds import Kind
from bonny.resource import Resource

from .rbac import CLUSTER, Permission
from .rbac import permissions as permissions_of

ABOUT_ONESELF: Final = Kind("authorization.k8s.io/v1", "SelfSubjectAccessReview")
RULES: Final = Kind("authorization.k8s.io/v1", "SelfSubjectRulesReview")
ABOUT_OTHERS: Final = Kind("authorization.k8s.io/v1", "SubjectAccessReview")
SERVICE_ACCOUNTS: Final = "system:serviceaccounts"


async def refused(
    client: Client, permissions: Iterable[Permission], *, service_account: tuple[str, str] | None = None
) -> set[Permission]:
    """The `permissions` that are not granted to the client's user, or to a ServiceAccount (namespace, name).

    Sequential requests: many at once take the place of other requests where the API server limits a user.
    Raises: `ApiError` and `UsageError`, as the client does; then there is no answer for any of them.
    """
    denied, asked, subject = set(), set(permissions), _subject(service_account)
    if service_account is None:
        for namespace in sorted({permission.namespace for permission in asked} - {CLUSTER}):
            asked -= await _named_by_rules(client, namespace)
    for permission in asked:
        for name in permission.names or ("",):
            if not await is_granted(client, permission, name=name, subject=subject):
                denied.add(permission)
    return denied


async def _named_by_rules(client: Client, namespace: str) -> set[Permission]:
    """Permissions that the rules of a namespace grant; none where the API server lists none."""
    review = {"apiVersion": RULES.api_version, "kind": RULES.kind, "metadata": {}, "spec": {"namespace": namespace}}
    with suppress(Forbidden, NotFound, ServerError, LookupError, TypeError, AttributeError):
        return set(permissions_of({namespace: (await client.create(RULES, review))["status"]["resourceRules"]}))
    return set()


async def is_granted(client: Client, permission: Permission, *, name: str = "", subject: Resource) -> bool:
    """Whether `permission` for the object `name` is granted to `subject`: user, uid, groups, extra; empty: to oneself.

    Raises: `ApiError` and `UsageError`, as the client does.
    """
    kind = ABOUT_OTHERS if subject else ABOUT_ONESELF
    spec = {**_attributes(permission, name), **subject}
    review: Resource = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {}, "spec": spec}
    match await client.create(kind, review):
        case {"status": {"allowed": bool(allowed)}}:
            return allowed
    raise ApiError(f"a {kind.kind} came back without a decision")


def _attributes(permission: Permission, name: str) -> Resource:
    if permission.resource.startswith("/"):
        return {"nonResourceAttributes": {"path": permission.resource, "verb": permission.verb}}
    resource, _, subresource = permission.resource.partition("/")
    attributes = {
        "namespace": permission.namespace,
        "group": permission.group,
        "resource": resource,
        "subresource": subresource,
        "verb": permission.verb,
        "name": name,
    }
    return {"resourceAttributes": attributes}


def _subject(service_account: tuple[str, str] | None) -> Resource:
    if service_account is None:
        return {}
    namespace, name = service_account
    groups = [SERVICE_ACCOUNTS, f"{SERVICE_ACCOUNTS}:{namespace}", "system:authenticated"]
    return {"user": f"system:serviceaccount:{namespace}:{name}", "groups": groups}
