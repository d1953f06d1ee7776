"""Readiness: whether a live object is as its spec requires.

You need it as `when=` of `axn.register_descendant`, to compute a condition from `axn.observed`, and in tests, as in
`running_operator.until(widget, testing.is_ready)`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from .kinds import builtin

# Signs in the status of built-in kinds. Kinds without one are ready when they exist.
CONDITIONS: Final = {"Job": "Complete", "Pod": "Ready", "CustomResourceDefinition": "Established"}
PHASES: Final = {"PersistentVolumeClaim": "Bound", "Namespace": "Active"}
REPLICAS: Final = {
    "Deployment": ("replicas", "updatedReplicas", "availableReplicas"),
    "StatefulSet": ("replicas", "updatedReplicas", "availableReplicas"),
    "ReplicaSet": ("replicas", "availableReplicas"),
    "DaemonSet": ("updatedNumberScheduled", "numberAvailable"),
}


def is_ready(resource: Mapping[str, Any]) -> bool:
    """Whether the object is as its spec requires; an object under deletion is not.

    - Deployment, StatefulSet, ReplicaSet, DaemonSet: all replicas are of the current template, and available.
    - Job: complete. Pod: ready. PersistentVolumeClaim: bound. Namespace: active. CustomResourceDefinition: established.
    - Other built-in kinds: when they exist.
    - All other kinds: the condition Ready is True; if there is none, Available.

    A status or a condition of an older generation does not count. In a unit test, `bonny_dev.testing.ready` makes a
    ready child.
    Raises: `KeyError` for an object without apiVersion, kind or metadata.
    """
    metadata, status, kind = resource["metadata"], resource.get("status") or {}, resource["kind"]
    generation = metadata.get("generation", 0)
    if metadata.get("deletionTimestamp") or status.get("observedGeneration", generation) < generation:
        return False
    true = {each["type"]: _is_true(each, generation) for each in status.get("conditions") or ()}
    if builtin(resource["apiVersion"], kind) is None:
        return true.get("Ready", true.get("Available", False))
    if kind in REPLICAS:
        wanted = status.get("desiredNumberScheduled", (resource.get("spec") or {}).get("replicas", 1))
        # A server gives each object of these kinds a generation; the child of a unit test may have none.
        return (not generation or "observedGeneration" in status) and {
            status.get(each, 0) for each in REPLICAS[kind]
        } == {wanted}
    if kind in PHASES:
        return bool(status.get("phase") == PHASES[kind])
    return true.get(CONDITIONS.get(kind, ""), kind not in CONDITIONS)


def _is_true(condition: Mapping[str, Any], generation: int) -> bool:
    return bool(condition["status"] == "True" and condition.get("observedGeneration", generation) >= generation)
