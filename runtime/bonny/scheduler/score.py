"""Score: how well a node suits a pod, from 0 to 100; the larger, the better.

    nodes.fitting(pod).best(least_allocated)
    max(nodes.fitting(pod), key=spread(pod, nodes, "topology.kubernetes.io/zone"), default=None)

Semantics are those of kube-scheduler v1.36 (noderesources), which rounds down to whole numbers; these do not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from typing import Final

from .demand import CPU
from .views import NodeView, PodView

__all__ = ["balanced", "fullness", "least_allocated", "most_allocated", "spread"]

HIGHEST: Final = 100.0


def least_allocated(pod: PodView, node: NodeView) -> float:
    """The share of CPU and memory that stays free with the pod."""
    shares = _shares(node, pod.demand.scored)
    return HIGHEST * sum(max(1 - share, 0.0) for share in shares) / len(shares) if shares else 0.0


def fullness(node: NodeView) -> float:
    """What takes part in `least_allocated` of the node alone: of nodes of one size, the lower, the better for any pod.

    It differs from it where pods without requests count for more than the node has.
    """
    return sum(_shares(node, (0, 0)))


def most_allocated(pod: PodView, node: NodeView) -> float:
    """The share of CPU and memory that is taken with the pod: fills one node before the next."""
    shares = _shares(node, pod.demand.scored)
    return HIGHEST * sum(min(share, 1.0) for share in shares) / len(shares) if shares else 0.0


def balanced(pod: PodView, node: NodeView) -> float:
    """How much evener CPU and memory are taken with the pod than without: 50 to 100, 75 when nothing changes."""
    requests = dict(pod.demand.requests)
    asked = (requests.get(CPU, 0), requests.get("memory", 0))
    if not any(asked):
        return 0.0
    requested = node.usage.requested
    taken = (requested[CPU], requested["memory"])
    before, after = (_unevenness(node, amounts) for amounts in (taken, (taken[0] + asked[0], taken[1] + asked[1])))
    return HIGHEST * (0.75 + (before - after) / 2)


def spread(pod: PodView, nodes: Iterable[NodeView], label: str) -> Callable[[NodeView], float]:
    """A key for `max`: the fewer pods like this one share the node's value of `label`, the better.

    Alike are those of the same controller, else those in the same namespace with the same labels. It looks at every
    pod on `nodes`. Nodes without the label are the last choice.
    """
    kin = _kin(pod)
    there: Counter[str] = Counter()
    for node in nodes:
        if label in node.labels:
            there[node.labels[label]] += sum(_kin(other) == kin for other in node.usage.pods.values())
    return lambda node: -float(there[node.labels[label]]) if label in node.labels else float("-inf")


def _kin(pod: PodView) -> Hashable:
    owners = pod.item.meta.owner_references
    return (pod.item.meta.namespace, owners[0].uid if owners else tuple(sorted(pod.labels.items())))


def _shares(node: NodeView, more: tuple[int, int]) -> list[float]:
    """The parts of the node's CPU and memory that are taken with `more`; what it does not have is left out."""
    (cpu, memory), taken = node.scored, node.usage.scored
    shares = [(taken[0] + more[0]) / cpu] if cpu else []
    if memory:
        shares.append((taken[1] + more[1]) / memory)
    return shares


def _unevenness(node: NodeView, amounts: tuple[int, int]) -> float:
    """The standard deviation of two shares."""
    if not all(node.scored):
        return 0.0
    cpu, memory = (min(amount / all_of_it, 1.0) for amount, all_of_it in zip(amounts, node.scored, strict=True))
    return abs(cpu - memory) / 2
