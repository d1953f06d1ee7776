"""Reviews: asks the API server whether it grants permissions, whoever grants them there.

RBAC: none to ask about oneself (every user has system:basic-user); create of subjectaccessreviews to ask about others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final

from ..client.api import Client
from ..errors import ApiError
from ..kinds import Kind
from ..resource import Resource
from .rbac import Permission

__all__ = ["refused"]

ABOUT_ONESELF: Final = Kind("authorization.k8s.io/v1", "SelfSubjectAccessReview")
ABOUT_OTHERS: Final = Kind("authorization.k8s.io/v1", "SubjectAccessReview")
# A review is decided in memory; more at once would only get in the way of the lists that an operator begins with.
AT_ONCE: Final = 4
SERVICE_ACCOUNTS: Final = "system:serviceaccounts"


async def refused(
    client: Client, permissions: Iterable[Permission], *, service_account: tuple[str, str] | None = None
) -> set[Permission]:
    """Those of `permissions` that are not granted to the client's user, or to a ServiceAccount (namespace, name).

    Raises: `ApiError` and `UsageError`, as the client does; then nothing is known of any of them.
    """
    slots = asyncio.Semaphore(AT_ONCE)

    async def is_granted(permission: Permission, name: str) -> bool:
        spec = {**_attributes(permission, name), **_subject(service_account)}
        kind = ABOUT_ONESELF if service_account is None else ABOUT_OTHERS
        review: Resource = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {}, "spec": spec}
        async with slots:
            answer = await client.create(kind, review)
        match answer:
            case {"status": {"allowed": bool(allowed)}}:
                return allowed
        raise ApiError(f"the answer to a {kind.kind} says neither yes nor no")

    asked = [(permission, name) for permission in permissions for name in permission.names or ("",)]
    try:
        async with asyncio.TaskGroup() as group:
            answers = [group.create_task(is_granted(*each)) for each in asked]
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None
    return {permission for (permission, _), answer in zip(asked, answers, strict=True) if not answer.result()}


def _attributes(permission: Permission, name: str) -> Resource:
    if permission.resource.startswith("/"):
        return {"nonResourceAttributes": {"path": permission.resource, "verb": permission.verb}}
    resource, _, subresource = permission.resource.partition("/")
    attributes = {
        "namespace": permission.place,
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
