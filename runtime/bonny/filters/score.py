"""Score: rates nodes for a pod, from 0 to 100; a higher score is better.

    nodes.fitting(pod).best(least_allocated)
    max(nodes.fitting(pod), key=spread(pod, nodes, "topology.kubernetes.io/zone"), default=None)

Semantics as in kube-scheduler v1.36 (noderesources), without its rounding to whole numbers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from typing import Final

from ..scheduler.views import NodeView, PodView
from .demand import CPU, demand
from .room import Room

HIGHEST: Final = 100.0


def least_allocated(pod: PodView, node: NodeView) -> float:
    """The share of CPU and memory that stays free with the pod: prefers empty nodes."""
    shares = _shares(node, demand(pod).scored)
    return HIGHEST * sum(max(1 - share, 0.0) for share in shares) / len(shares) if shares else 0.0


def fullness(node: NodeView) -> float:
    """The node's part of `least_allocated`: among nodes of one size, the lowest is the best one for any pod.

    The order differs from that score where pods without requests count for more than the node has.
    """
    return sum(_shares(node, (0, 0)))


def most_allocated(pod: PodView, node: NodeView) -> float:
    """The share of CPU and memory that is taken with the pod: prefers full nodes."""
    shares = _shares(node, demand(pod).scored)
    return HIGHEST * sum(min(share, 1.0) for share in shares) / len(shares) if shares else 0.0


def balanced(pod: PodView, node: NodeView) -> float:
    """The balance between CPU and memory with the pod: 50 to 100, 75 when the pod does not change it."""
    requests = dict(demand(pod).requests)
    asked = (requests.get(CPU, 0), requests.get("memory", 0))
    if not any(asked):
        return 0.0
    requested = node.derived(Room).usage.requested
    taken = (requested[CPU], requested["memory"])
    before, after = (_unevenness(node, amounts) for amounts in (taken, (taken[0] + asked[0], taken[1] + asked[1])))
    return HIGHEST * (0.75 + (before - after) / 2)


def spread(pod: PodView, nodes: Iterable[NodeView], label: str) -> Callable[[NodeView], float]:
    """A key for `max` that prefers nodes whose value of `label` has the fewest similar pods.

    Pods are similar when they have the same controller; without one, the same namespace and labels. The function
    iterates over every pod on `nodes`. Nodes without the label are the last choice.
    """
    group = _similarity(pod)
    counts: Counter[str] = Counter()
    for node in nodes:
        if label in node.labels:
            counts[node.labels[label]] += sum(_similarity(other) == group for other in node.pods.values())
    return lambda node: -float(counts[node.labels[label]]) if label in node.labels else float("-inf")


def _similarity(pod: PodView) -> Hashable:
    """Equal for similar pods."""
    owners = pod.item.meta.owner_references
    return (pod.item.meta.namespace, owners[0].uid if owners else tuple(sorted(pod.labels.items())))


def _shares(node: NodeView, more: tuple[int, int]) -> list[float]:
    """The shares of the node's CPU and memory that are taken with `more`, without resources that it does not have."""
    room = node.derived(Room)
    (cpu, memory), taken = room.scored, room.usage.scored
    shares = [(taken[0] + more[0]) / cpu] if cpu else []
    if memory:
        shares.append((taken[1] + more[1]) / memory)
    return shares


def _unevenness(node: NodeView, amounts: tuple[int, int]) -> float:
    """The standard deviation of two shares."""
    room = node.derived(Room).scored
    if not all(room):
        return 0.0
    cpu, memory = (min(amount / total, 1.0) for amount, total in zip(amounts, room, strict=True))
    return abs(cpu - memory) / 2
