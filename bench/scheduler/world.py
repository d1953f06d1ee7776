"""World: the nodes and pods of the bench, the same in every run.

Nodes are in 10 zones; every second has an SSD, and every tenth is kept for batch work by a taint. Pods have 60 shapes
that differ in requests; one in four also asks for a zone, an SSD, not to be in some zones, or a host port, and one in
four tolerates the taint. All of them fit, and a quarter of the CPU is taken at the end (1,000 nodes, 5,000 pods).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

from bonny.filters.quantity import milli, nano, whole
from bonny.resource import Resource

__all__ = ["NAME", "SHAPES", "check", "node", "pod"]

NAME: Final = "bench"
"""The scheduler's, whoever it is."""

SHAPES: Final = 60
ZONES: Final = 10
ZONE: Final = "topology.kubernetes.io/zone"
CPU_MILLIS: Final = 8_000
MEMORY_MEGABYTES: Final = 32_768
PODS: Final = 110
BATCH: Final = {"key": "kept-for", "value": "batch", "effect": "NoSchedule"}


def node(number: int) -> Resource:
    """A node as a kubelet registers it, with the taint that is to stay."""
    amounts = {"cpu": f"{CPU_MILLIS}m", "memory": f"{MEMORY_MEGABYTES}Mi", "pods": str(PODS)}
    name = f"n{number}"
    labels = {"kubernetes.io/hostname": name, ZONE: f"z{number % ZONES}", "disk": "ssd" if number % 2 else "hdd"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": [BATCH]} if number % 10 == 9 else {},
        "status": {"allocatable": amounts, "capacity": amounts},
    }


def pod(number: int) -> bytes:
    """A pod as it is sent; `number` says which shape it has."""
    shape = number % SHAPES
    requests = {"cpu": f"{100 + 10 * shape}m", "memory": f"{128 + 32 * (shape * 7 % SHAPES)}Mi"}
    container: Resource = {"name": "main", "image": "registry.example.com/main:1", "resources": {"requests": requests}}
    spec: Resource = {"schedulerName": NAME, "containers": [container]}
    match shape % 16:
        case 1:
            spec["nodeSelector"] = {ZONE: f"z{shape % 9}"}
        case 5:
            spec["nodeSelector"] = {"disk": "ssd"}
        case 9:
            term = {"matchExpressions": [{"key": ZONE, "operator": "NotIn", "values": ["z1", "z2"]}]}
            terms = {"nodeSelectorTerms": [term]}
            spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
        case 13:
            container["ports"] = [{"containerPort": 80, "hostPort": 8000 + shape}]
    if shape % 4 == 2:
        spec["tolerations"] = [{"key": BATCH["key"], "operator": "Equal", "value": BATCH["value"]}]
    metadata = {"name": f"p{number}", "labels": {"app": f"app{shape}"}}
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}).encode()


def check(pods: Iterable[Mapping[str, Any]], *, wanted: int) -> float:
    """Returns: the part of its CPU that is taken of the fullest node.

    Raises: `RuntimeError` when not all `wanted` pods have a node, or a node has more than it can hold.
    """
    cpu: Counter[str] = Counter()
    memory: Counter[str] = Counter()
    count: Counter[str] = Counter()
    for found in pods:
        name = found["spec"].get("nodeName")
        if name:
            requests = found["spec"]["containers"][0]["resources"]["requests"]
            cpu[name] += milli(nano(requests["cpu"]))
            memory[name] += whole(nano(requests["memory"]))
            count[name] += 1
    if count.total() != wanted:
        raise RuntimeError(f"{count.total()} pods have a node, of {wanted}")
    for of, most in ((cpu, CPU_MILLIS), (memory, MEMORY_MEGABYTES << 20), (count, PODS)):
        (name, taken), *_ = of.most_common(1)
        if taken > most:
            raise RuntimeError(f"{name} is overcommitted: {taken} of {most}")
    return max(cpu.values()) / CPU_MILLIS
