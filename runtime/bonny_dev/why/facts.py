"""Facts: an object, its children and the operator, as the API server has them; read once, then judged.

A part that cannot be read, because the person may not or the cluster does not serve it, is noted.

RBAC of the person: get of the object, list of its kind, of the kinds in `owns`, of events, pods and, where a child is a
workload, of ReplicaSets and Jobs; get of the operator's Lease; create of subjectaccessreviews.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias, TypeVar

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
_Groups: TypeAlias = dict[str, list[Resource]]


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

    inside: Mapping[str, Any] = field(default_factory=dict)
    """The overview of its console (`bonny.console`); without one, `problem` has the reason."""

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

    inside: Mapping[str, Any] = field(default_factory=dict)
    """The object in the operator's memory (/object of its console); else `problem`, or nothing."""

    outside: str = ""
    """The namespace of the object, if the operator does not watch it."""

    unread: tuple[str, ...] = ()


@dataclass(slots=True)
class _Reader:
    """Reads, and notes each refusal. With `whole` it lists a kind once for all objects, not for each."""

    client: Client
    whole: bool = False
    unread: dict[str, None] = field(default_factory=dict)
    lists: dict[tuple[Kind, str], list[Resource]] = field(default_factory=dict)
    groups: dict[Kind, _Groups] = field(default_factory=dict)
    chosen: dict[Operator, list[str] | None] = field(default_factory=dict)

    async def selected(self, operator: Operator) -> list[str] | None:
        """The namespaces that the operator selects by labels; None if it selects none, or they cannot be read."""
        if operator not in self.chosen:
            self.chosen[operator] = await self.read(selected.selected_namespaces(self.client, operator), None)
        return self.chosen[operator]

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

    async def grouped(self, kind: Kind, namespace: str, uids: Callable[[Resource], Iterable[str]]) -> _Groups:
        """The objects of a kind by the UIDs that they name."""
        if not self.whole:
            return _by_uid(await self.listed(kind, namespace), uids)
        if kind not in self.groups:
            self.groups[kind] = _by_uid(await self.listed(kind, ""), uids)
        return self.groups[kind]

    async def events(self, resource: Resource) -> list[Resource]:
        """The events about an object, oldest first."""
        metadata = resource["metadata"]
        chosen = f"regarding.kind={resource['kind']}" if self.whole else f"regarding.uid={metadata['uid']}"
        found = await self.grouped(
            replace(EVENT, field_selector=chosen), metadata.get("namespace") or "default", _about
        )
        return sorted(found.get(metadata["uid"], ()), key=last_seen)

    async def owned(self, kind: Kind, uid: str) -> list[Resource]:
        """The objects with the label of that owner."""
        labels = OWNER_UID if self.whole else f"{OWNER_UID}={uid}"
        return (await self.grouped(replace(kind, label_selector=labels), "", _labelled)).get(uid, [])


def _by_uid(resources: Iterable[Resource], uids: Callable[[Resource], Iterable[str]]) -> _Groups:
    found: _Groups = defaultdict(list)
    for each in resources:
        for uid in uids(each):
            found[uid].append(each)
    return found


def _about(event: Resource) -> Iterable[str]:
    return [(event.get("regarding") or {}).get("uid", "")]


def _labelled(resource: Resource) -> Iterable[str]:
    return [(resource["metadata"].get("labels") or {}).get(OWNER_UID, "")]


def _owners(resource: Resource) -> Iterable[str]:
    return [owner["uid"] for owner in resource["metadata"].get("ownerReferences") or ()]


async def operator_facts(
    client: Client, operator: Operator, namespace: str, *, inside: Mapping[str, Any] | None = None
) -> OperatorFacts:
    """The operator in `namespace`. Raises nothing: refusals are in `unread`."""
    reader = _Reader(client)
    name = f"app.kubernetes.io/name={operator.name}"
    needed = await reader.read(selected.needed(client, operator, namespace=namespace), set())
    account = (namespace, operator.name)
    lease, pods, missing = await asyncio.gather(
        _lease(reader, operator.name, namespace),
        reader.listed(replace(POD, label_selector=name), namespace),
        reader.read(refused(client, needed, service_account=account), set()),
    )
    # Not deployed at all: it runs elsewhere, such as on a laptop, as another user.
    lacking = frozenset() if missing == needed and not pods else frozenset(missing)
    return OperatorFacts(
        operator=operator,
        namespace=namespace,
        lease=lease,
        pods=tuple(pods),
        missing=lacking,
        inside=inside or {},
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


async def facts(
    client: Client,
    kind: Kind,
    namespace: str,
    name: str,
    *,
    of: OperatorFacts,
    inside: Mapping[str, Any] | None = None,
) -> Facts:
    """The facts of an object. Raises: `ApiError` when the object itself cannot be read."""
    reader = _Reader(client)
    try:
        resource = await client.get(kind, name, namespace=namespace or None)
    except NotFound:
        others = await reader.listed(replace(kind, metadata_only=True), "")
        names = tuple(str(key_of(each)) for each in others)
        controller = controller_of(of.operator, kind.group, kind.kind)
        now = datetime.now(UTC)
        return Facts(now=now, kind=kind, controller=controller, of=of, resource=None, names=names)
    return await _facts_of(reader, kind, resource, of=of, inside=inside or {})


async def all_facts(client: Client, kind: Kind, *, of: OperatorFacts) -> AsyncIterator[Facts]:
    """The facts of each object of a kind; the number of requests does not depend on how many there are.

    Raises: `ApiError` when the objects cannot be listed.
    """
    reader = _Reader(client, whole=True)
    for resource in await client.list(kind):
        # An item of a list does not name its type.
        typed = {"apiVersion": kind.api_version, "kind": kind.kind, **resource}
        yield await _facts_of(reader, kind, typed, of=of, inside={})


async def _facts_of(
    reader: _Reader, kind: Kind, resource: Resource, *, of: OperatorFacts, inside: Mapping[str, Any]
) -> Facts:
    events, children = await asyncio.gather(
        reader.events(resource), _descendants(reader, of.operator, resource, depth=0)
    )
    return Facts(
        now=datetime.now(UTC),
        kind=kind,
        controller=controller_of(of.operator, kind.group, kind.kind),
        of=of,
        resource=resource,
        children=children,
        events=tuple(events),
        inside=inside,
        outside=await _outside(reader, of, resource["metadata"].get("namespace", "")),
        unread=tuple(reader.unread),
    )


async def _outside(reader: _Reader, of: OperatorFacts, namespace: str) -> str:
    """`namespace`, if the operator, by its code, does not watch it."""
    watched: Sequence[str] | None = of.operator.watched(of.namespace)
    if watched == ():
        watched = await reader.selected(of.operator)
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
        found += (await reader.grouped(made, namespace, _owners)).get(uid, [])
    controller = controller_of(operator, api_version.rpartition("/")[0], kind)
    for owned in controller.owns if controller else ():
        found += await reader.owned(owned, uid)
    return tuple(
        [Child(each, await _descendants(reader, operator, each, depth=depth + 1)) for each in found[:MOST_CHILDREN]]
    )


def flat(children: Sequence[Child], depth: int = 0) -> list[tuple[int, Resource]]:
    """All of a tree, parents first, each with its depth: 0 for a child of the object."""
    return [entry for each in children for entry in ((depth, each.resource), *flat(each.children, depth + 1))]
