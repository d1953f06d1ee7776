"""Room: the resources and host ports of a node and what its pods take of them; and who may not run near whom.

    free(node)["cpu"], allocatable(node)["memory"], usage(node).requested["nvidia.com/gpu"]

CPU is in thousandths, everything else in units (bytes, devices).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, TypeAlias

import msgspec

from ..core.selector import hold
from ..scheduler.assume import AssumeCache
from ..scheduler.views import NodeView, PodView
from .demand import CPU, AntiAffinity, Taint, amounts, demand
from .quantity import nano

TopologyDomains: TypeAlias = frozenset[tuple[str, str]]
"""Labels of nodes, key and value: each names the nodes that have it."""


class Usage:
    """Resources and host ports that the pods of one node take, bound and assumed ones."""

    __slots__ = ("ports", "requested", "scored")

    def __init__(self) -> None:
        self.requested: Counter[str] = Counter()
        """The sum of the requests: CPU in thousandths, everything else in units."""

        self.scored = (0, 0)
        self.ports: Counter[tuple[str, str, int]] = Counter()


class Ledger:
    """Everything that the pods of a cluster take, by node, and the anti-affinity that they require."""

    def __init__(self, cache: AssumeCache) -> None:
        self.usage: defaultdict[str, Usage] = defaultdict(Usage)
        """By node, as long as it is known or has pods."""

        self.lifted = 0
        """Times that a pod with anti-affinity left its node: other pods may fit anywhere in its topology domain now."""

        self._cache = cache
        self._repelling: defaultdict[tuple[AntiAffinity, str], Counter[str]] = defaultdict(Counter)
        """By anti-affinity term and the namespace of its pods: the number of these pods on each node."""

        self.domains = lru_cache(maxsize=1)(self._domains)
        """The topology domains that these pods close to a pod; cached for the last pod, because one pod is compared
        with thousands of nodes."""

        for name, pods in cache.pods.items():
            for pod in pods.values():
                self._count(pod, name, 1)
        cache.counters.append(self._count)
        cache.listeners.append(self._changed)

    def _count(self, pod: PodView, node: str, sign: int) -> None:
        asked, usage = demand(pod), self.usage[node]
        for name, amount in asked.requests:
            usage.requested[name] += sign * amount
        for port in asked.ports:
            usage.ports[port] += sign
            if not usage.ports[port]:
                del usage.ports[port]
        usage.scored = (usage.scored[0] + sign * asked.scored[0], usage.scored[1] + sign * asked.scored[1])
        for term in asked.repels:
            self.lifted += sign < 0
            counts = self._repelling[term, pod.key.namespace]
            counts[node] += sign
            if not counts[node]:
                del counts[node]
            if not counts:
                del self._repelling[term, pod.key.namespace]

    def _changed(self, node: str) -> None:
        self.domains.cache_clear()
        if node not in self._cache.pods:
            self.usage.pop(node, None)

    def _domains(self, pod: PodView) -> TopologyDomains:
        nodes = self._cache.nodes
        return frozenset(
            (term.topology_key, nodes[node].labels[term.topology_key])
            for (term, namespace), counts in self._repelling.items()
            if _excludes(term, namespace, pod)
            for node in counts
            if node in nodes and term.topology_key in nodes[node].labels
        )


def _excludes(term: AntiAffinity, namespace: str, pod: PodView) -> bool:
    """Whether the term, of a pod in `namespace`, selects `pod`."""
    if term.namespaces is not None and pod.key.namespace not in (term.namespaces or (namespace,)):
        return False
    return term.requirements is not None and hold(term.requirements, pod.labels)


class _NodeSpec(msgspec.Struct, frozen=True, gc=False):
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class _Node(msgspec.Struct, frozen=True, gc=False):
    spec: _NodeSpec = _NodeSpec()
    status: dict[str, msgspec.Raw] = {}


_decode_node: Final = msgspec.json.Decoder(_Node).decode
_decode_amounts: Final = msgspec.json.Decoder(dict[str, str]).decode


class Room:
    """The parts of one version of a node that filters and scores use, and the usage of its pods at this moment."""

    __slots__ = ("allocatable", "scored", "size", "taints", "unschedulable", "usage")

    def __init__(self, node: NodeView) -> None:
        decoded = _decode_node(node.item.raw)
        listed = _decode_amounts(decoded.status.get("allocatable", b"{}"))
        self.allocatable: Mapping[str, int] = amounts({name: nano(amount) for name, amount in listed.items()})
        self.scored = (self.allocatable.get(CPU, 0), self.allocatable.get("memory", 0))
        excess = [max(amount.bit_length() - 7, 0) for amount in self.scored]
        self.size = tuple((amount >> bits) * 2**bits for amount, bits in zip(self.scored, excess, strict=True))
        """`scored`, rounded down to 7 binary digits: nodes of one kind differ by some kilobytes of memory."""

        self.taints = decoded.spec.taints
        self.unschedulable = decoded.spec.unschedulable
        self.usage = node.cache.derived(Ledger).usage[node.name]


def allocatable(node: NodeView) -> Mapping[str, int]:
    """Resources that the node has for pods: CPU in thousandths, everything else in units."""
    return node.derived(Room).allocatable


def taints(node: NodeView) -> tuple[Taint, ...]:
    """The node's taints, each with `key`, `value` and `effect`."""
    return node.derived(Room).taints


def usage(node: NodeView) -> Usage:
    """Resources and host ports that the node's bound and assumed pods take."""
    return node.derived(Room).usage


def free(node: NodeView) -> Mapping[str, int]:
    """Allocatable resources minus the requests of bound and assumed pods."""
    room = node.derived(Room)
    free = {name: amount - room.usage.requested[name] for name, amount in room.allocatable.items()}
    return {**free, "pods": free.get("pods", 0) - len(node.pods)}


def repels(node: NodeView, pod: PodView) -> bool:
    """Whether the anti-affinity of a pod in one of the node's topology domains excludes `pod`."""
    domains = node.cache.derived(Ledger).domains(pod)
    return bool(domains) and not domains.isdisjoint(node.labels.items())
