"""Nodes and pods for the tests of schedulers, as the API server would show them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from bonny.core.objects import Item, decode_item
from bonny.resource import Resource
from bonny.scheduler.assume import AssumeCache
from bonny.scheduler.views import NodeView, PodView


def requesting(requests: Mapping[str, str], **fields: Any) -> Resource:
    """A container that requests so much."""
    return {"name": "main", "image": "registry.example.com/main:1", "resources": {"requests": dict(requests)}, **fields}


def node(
    name: str = "n1",
    *,
    cpu: str = "4",
    memory: str = "8Gi",
    pods: str = "110",
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Mapping[str, str]] = (),
    unschedulable: bool = False,
    **more: str,
) -> Resource:
    """A node; `more` are further resources."""
    spec: Resource = {"taints": [dict(taint) for taint in taints]} if taints else {}
    if unschedulable:
        spec["unschedulable"] = True
    resources = {"cpu": cpu, "memory": memory, "pods": pods, **more}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "spec": spec,
        "status": {"allocatable": resources, "capacity": resources},
    }


def pod(
    name: str = "p1",
    *,
    namespace: str = "default",
    cpu: str = "",
    memory: str = "",
    node: str = "",
    phase: str = "Pending",
    scheduler: str = "default-scheduler",
    labels: Mapping[str, str] | None = None,
    priority: int | None = None,
    status: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Resource:
    """A pod with one container; `spec` holds further fields, or replaces those of here."""
    requests = {name: amount for name, amount in (("cpu", cpu), ("memory", memory)) if amount}
    made: Resource = {"containers": [requesting(requests)], "schedulerName": scheduler, **spec}
    if node:
        made["nodeName"] = node
    if priority is not None:
        made["priority"] = priority
    metadata: Resource = {"name": name, "namespace": namespace}
    if labels:
        metadata["labels"] = dict(labels)
    told = {"phase": phase, **(status or {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": made, "status": told}


def item(resource: Resource, *, version: int = 1, uid: str = "", created: str = "2026-01-01T00:00:00Z") -> Item:
    """As it comes from a stream."""
    metadata = resource["metadata"]
    stored = {"uid": uid or f"uid-{metadata['name']}", "resourceVersion": str(version), "creationTimestamp": created}
    return decode_item(msgspec.json.encode({**resource, "metadata": {**metadata, **stored}}))


def pod_view(name: str = "p1", **fields: Any) -> PodView:
    """What a scheduler sees of a pod."""
    return PodView(item(pod(name, **fields)))


def node_view(name: str = "n1", *, holds: Sequence[PodView] = (), **fields: Any) -> NodeView:
    """What a scheduler sees of a node on which `holds` count."""
    cache = AssumeCache()
    cache.see_node(name, item(node(name, **fields)))
    for held in holds:
        cache.assume(held, name)
    return cache.nodes[name]


def cluster(count: int, **fields: Any) -> AssumeCache:
    """Nodes n0, n1 and so on, all with these fields."""
    cache = AssumeCache()
    for number in range(count):
        cache.see_node(f"n{number}", item(node(f"n{number}", **fields)))
    return cache


def names(found: Iterable[NodeView]) -> list[str]:
    """The names of nodes."""
    return [known.name for known in found]
