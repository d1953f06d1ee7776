"""Facts: an object, its children and the operator, as the API server has them; read once, then judged.

A part that cannot be read, because the person may not or the cluster does not serve it, is noted.

RBAC of the person: get of the object, list of its kind, of the kinds in `owns`, of events, pods and, where a child is a
workload, of ReplicaSets and Jobs; get of the operator's Lease; create of subjectaccessreviews.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

from bonny.client.api import Client
from bonny.client.errors import NotFound
from bonny.controller import Controller
from bonny.errors import ApiError
from bonny.events import EVENT
from bonny.kinds import Kind
from bonny.operator import Operator
from bonny.resource import OWNER_UID, Resource, gvk_of, key_of
from bonny.run.leader import LEASE

from ..manifest import selected
from ..manifest.rbac import Permission
from ..manifest.reviews import refused

POD: Final = Kind("v1", "Pod")
# The objects that Kubernetes' own controllers make for a child, by the kind of the child.
MADE_BY: Final = {
    ("apps/v1", "Deployment"): (Kind("apps/v1", "ReplicaSet"),),
    ("apps/v1", "StatefulSet"): (POD,),
    ("apps/v1", "DaemonSet"): (POD,),
    ("apps/v1", "ReplicaSet"): (POD,),
    ("batch/v1", "Job"): (POD,),
    ("batch/v1", "CronJob"): (Kind("batch/v1", "Job"),),
}
# A person reads no larger tree.
MOST_CHILDREN: Final = 1_000
DEEPEST: Final = 6

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Child:
    """An object that belongs to another one, and its own children."""

    resource: Resource
    children: tuple[Child, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorFacts:
    """The operator as it is deployed."""

    operator: Operator
    namespace: str
    lease: Resource | None = None
    """None: there is none."""

    pods: tuple[Resource, ...] = ()
    missing: frozenset[Permission] = frozenset()
    """Permissions that its ServiceAccount needs and lacks."""

    unread: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """One object, at the time `now`."""

    now: datetime
    kind: Kind
    controller: type[Controller[Any]] | None
    """The controller of the kind; None if this operator has none."""

    of: OperatorFacts
    resource: Resource | None
    """None: there is no such object."""

    names: tuple[str, ...] = ()
    """The objects of the kind, where there is none of that name."""

    children: tuple[Child, ...] = ()
    events: tuple[Resource, ...] = ()
    """Of events.k8s.io/v1, about this object, oldest first."""

    outside: str = ""
    """The namespace of the object, if the operator does not watch it."""

    unread: tuple[str, ...] = ()


@dataclass(slots=True)
class _Reader:
    """Reads, and notes each refusal."""

    client: Client
    unread: dict[str, None] = field(default_factory=dict)
    lists: dict[tuple[Kind, str], list[Resource]] = field(default_factory=dict)

    async def read(self, request: Awaitable[T], otherwise: T) -> T:
        try:
            return await request
        except ApiError as error:
            self.unread[str(error).splitlines()[0]] = None
            return otherwise

    async def listed(self, kind: Kind, namespace: str) -> list[Resource]:
        """The objects of a kind; empty: of all namespaces. A second call for the same ones sends no request."""
        if (kind, namespace) not in self.lists:
            self.lists[kind, namespace] = await self.read(self.client.list(kind, namespace=namespace or None), [])
        return self.lists[kind, namespace]


async def operator_facts(client: Client, operator: Operator, namespace: str) -> OperatorFacts:
    """The operator in `namespace`. Raises nothing: refusals are in `unread`."""
    reader = _Reader(client)
    lease = await _lease(reader, operator.name, namespace)
    name = f"app.kubernetes.io/name={operator.name}"
    pods = await reader.listed(replace(POD, label_selector=name), namespace)
    needed = await reader.read(selected.needed(client, operator, namespace=namespace), set())
    account = (namespace, operator.name)
    missing = await reader.read(refused(client, needed, service_account=account), set())
    # Not deployed at all: it runs elsewhere, such as on a laptop, as another user.
    lacking = frozenset() if missing == needed and not pods else frozenset(missing)
    return OperatorFacts(
        operator=operator,
        namespace=namespace,
        lease=lease,
        pods=tuple(pods),
        missing=lacking,
        unread=tuple(reader.unread),
    )


async def _lease(reader: _Reader, name: str, namespace: str) -> Resource | None:
    try:
        return await reader.client.get(LEASE, name, namespace=namespace)
    except NotFound:
        return None
    except ApiError as error:
        reader.unread[str(error)] = None
        return None


async def facts(client: Client, kind: Kind, namespace: str, name: str, *, of: OperatorFacts) -> Facts:
    """The facts of an object. Raises: `ApiError` when the object itself cannot be read."""
    controller = controller_of(of.operator, kind.group, kind.kind)
    now, reader = datetime.now(UTC), _Reader(client)
    try:
        resource = await client.get(kind, name, namespace=namespace or None)
    except NotFound:
        others = await reader.listed(replace(kind, metadata_only=True), "")
        names = tuple(str(key_of(each)) for each in others)
        return Facts(now=now, kind=kind, controller=controller, of=of, resource=None, names=names)
    selector = f"regarding.uid={resource['metadata']['uid']}"
    events = await reader.listed(replace(EVENT, field_selector=selector), namespace or "default")
    return Facts(
        now=now,
        kind=kind,
        controller=controller,
        of=of,
        resource=resource,
        children=await _descendants(reader, of.operator, resource, depth=0),
        events=tuple(sorted(events, key=last_seen)),
        outside=await _outside(reader, of, namespace),
        unread=tuple(reader.unread),
    )


async def _outside(reader: _Reader, of: OperatorFacts, namespace: str) -> str:
    """`namespace`, if the operator, by its code, does not watch it."""
    watched: Sequence[str] | None = of.operator.watched(of.namespace)
    if watched == ():
        watched = await reader.read(selected.selected_namespaces(reader.client, of.operator), None)
    return namespace if namespace and watched is not None and namespace not in watched else ""


def last_seen(event: Resource) -> str:
    """When an event happened last, as the API writes it."""
    series: Resource = event.get("series") or {}
    times = (series.get("lastObservedTime"), event.get("deprecatedLastTimestamp"), event.get("eventTime"))
    return next((str(each) for each in times if each), event["metadata"].get("creationTimestamp", ""))


def controller_of(operator: Operator, group: str, kind: str) -> type[Controller[Any]] | None:
    """The controller of `operator` that reconciles the kind, in any version."""
    for controller in operator.controllers:
        if any((each.group, each.kind) == (group, kind) for each in controller.kinds(operator.group)):
            return controller
    return None


async def _descendants(reader: _Reader, operator: Operator, resource: Resource, *, depth: int) -> tuple[Child, ...]:
    """Its children by the label of their owner, or by owner references, and theirs."""
    if depth >= DEEPEST:
        return ()
    uid, namespace = resource["metadata"]["uid"], resource["metadata"].get("namespace") or ""
    api_version, kind = gvk_of(resource)
    found: list[Resource] = []
    for made in MADE_BY.get((api_version, kind), ()):
        found += _owned_by(uid, await reader.listed(made, namespace))
    controller = controller_of(operator, api_version.rpartition("/")[0], kind)
    for owned in controller.owns if controller else ():
        found += await reader.listed(replace(owned, label_selector=f"{OWNER_UID}={uid}"), "")
    return tuple(
        [Child(each, await _descendants(reader, operator, each, depth=depth + 1)) for each in found[:MOST_CHILDREN]]
    )


def _owned_by(uid: str, resources: Iterable[Resource]) -> list[Resource]:
    return [
        each
        for each in resources
        if any(owner["uid"] == uid for owner in each["metadata"].get("ownerReferences") or ())
    ]


def flat(children: Sequence[Child], depth: int = 0) -> list[tuple[int, Resource]]:
    """All of a tree, parents first, each with its depth: 0 for a child of the object."""
    return [entry for each in children for entry in ((depth, each.resource), *flat(each.children, depth + 1))]
