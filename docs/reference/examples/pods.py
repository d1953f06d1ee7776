"""Pods and nodes: what the examples of schedulers are about, and how these objects are made."""

from __future__ import annotations

from bonny import Resource

ZONE = "topology.kubernetes.io/zone"


def node(name: str, *, cpu: str = "4", labels: dict[str, str] | None = None) -> Resource:
    """A node with 8 GiB of memory."""
    allocatable = {"cpu": cpu, "memory": "8Gi", "pods": "110"}
    return {"metadata": {"name": name, "labels": labels or {}}, "status": {"allocatable": allocatable}}


def pod(
    name: str, *, cpu: str = "1", memory: str = "1Gi", on: str = "", labels: dict[str, str] | None = None
) -> Resource:
    """A pod; `on` is the node on which it runs already."""
    container = {"name": "main", "resources": {"requests": {"cpu": cpu, "memory": memory}}}
    spec = {"containers": [container], **({"nodeName": on} if on else {})}
    return {"metadata": {"name": name, "namespace": "default", "labels": labels or {}}, "spec": spec}
