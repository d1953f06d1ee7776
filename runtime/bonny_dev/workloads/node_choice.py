"""Node choice: which node a simulated default scheduler chooses. It compares no resources, affinities or taints.

Pods that name another scheduler are left to it, and pods with scheduling gates wait until these are removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from bonny.resource import Resource

NODE: Final = "sandbox"
HOST_ADDRESS: Final = "192.0.2.1"
DEFAULT_SCHEDULER: Final = "default-scheduler"
AMPLE: Final = {"cpu": "64", "memory": "256Gi", "ephemeral-storage": "1Ti", "pods": "1000"}


def first_node() -> Resource:
    """The Node of a sandbox that has none."""
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "simulated: nothing runs here"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": NODE,
            "labels": {"kubernetes.io/hostname": NODE, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"},
        },
        "status": {
            "capacity": AMPLE,
            "allocatable": AMPLE,
            "conditions": [ready],
            "addresses": [{"type": "InternalIP", "address": HOST_ADDRESS}, {"type": "Hostname", "address": NODE}],
        },
    }


def waits_for_a_node(pod: Mapping[str, Any]) -> bool:
    """Whether the default scheduler has to bind the pod."""
    spec = pod["spec"]
    scheduler = spec.get("schedulerName", DEFAULT_SCHEDULER)
    return not spec.get("nodeName") and scheduler == DEFAULT_SCHEDULER and not spec.get("schedulingGates")


def claims_of(pod: Mapping[str, Any]) -> list[str]:
    """The names of the claims that the pod mounts, in its namespace."""
    names = []
    for volume in pod["spec"].get("volumes", ()):
        if "persistentVolumeClaim" in volume:
            names.append(volume["persistentVolumeClaim"]["claimName"])
        elif "ephemeral" in volume:
            names.append(f"{pod['metadata']['name']}-{volume['name']}")
    return names


def choose(pod: Mapping[str, Any], nodes: Iterable[Mapping[str, Any]]) -> str | None:
    """The first node that is not cordoned and that nodeSelector and a DaemonSet's choice allow; None without one."""
    selector, names = (pod["spec"].get("nodeSelector") or {}).items(), _named_by_daemon_set(pod)
    for node in nodes:
        labels = node["metadata"].get("labels") or {}
        if node.get("spec", {}).get("unschedulable") and not names:
            continue
        if selector <= labels.items() and (not names or node["metadata"]["name"] in names):
            return str(node["metadata"]["name"])
    return None


def _named_by_daemon_set(pod: Mapping[str, Any]) -> list[str]:
    """The node that the DaemonSet controller chose: it stays with the scheduler to bind."""
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    terms = (field for term in required.get("nodeSelectorTerms", ()) for field in term.get("matchFields", ()))
    return [name for field in terms if field["key"] == "metadata.name" for name in field["values"]]
