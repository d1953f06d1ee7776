"""Assume: counts pods on nodes, both bound pods and pods whose binding is in progress.

A chosen node counts from the moment of the choice, so the next decision sees it. The streams have the last word: an
assumption holds until they show the pod, or until its binding is known to have failed.

Guarantees: a pod counts once, on one node; a pod that is neither bound nor assumed takes no room.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from ..core.objects import Item
from ..core.selector import hold
from .demand import AntiAffinity
from .views import NodeView, PodView, TopologyDomains, Usage


class _Placed(NamedTuple):
    pod: PodView
    node: str
    assumed: bool


class AssumeCache:
    """The nodes of a cluster with their pods, shared by all schedulers of an operator."""

    def __init__(self) -> None:
        self.nodes: dict[str, NodeView] = {}
        self.listeners: list[Callable[[str | None], None]] = []
        """Each is called with the name of a node after it or its pods changed; with None when a pod may fit on any
        node now."""

        self._placed: dict[str, _Placed] = {}
        """By UID."""

        self._usage: defaultdict[str, Usage] = defaultdict(Usage)
        """By node, for every known node, and for unknown ones that have pods."""

        self._repelling: dict[tuple[AntiAffinity, str], Counter[str]] = {}
        """By anti-affinity term and the namespace of its pods: the number of these pods on each node."""

        self.repelling = lru_cache(maxsize=1)(self._repelling_domains)
        """The topology domains that the anti-affinity of running pods closes to a pod; cached for the last pod, because
        one pod is compared with thousands of nodes."""

    def _repelling_domains(self, pod: PodView) -> TopologyDomains:
        return frozenset(
            (term.topology_key, self.nodes[node].labels[term.topology_key])
            for (term, namespace), counts in self._repelling.items()
            if _excludes(term, namespace, pod)
            for node in counts
            if node in self.nodes and term.topology_key in self.nodes[node].labels
        )

    # --- changes from the streams -------------------------------------------------------------------------------------

    def see_node(self, name: str, new: Item | None) -> None:
        """A node was added, changed, or removed (None)."""
        if new is not None:
            self.nodes[name] = NodeView(new, self._usage[name], self.repelling)
        elif self.nodes.pop(name, None) is not None and not self._usage[name].pods:
            del self._usage[name]
        self.repelling.cache_clear()
        self._notify(name)

    def see_pod(self, pod: PodView) -> None:
        """A pod was added or changed."""
        placed = self._placed.get(pod.uid)
        if pod.node_name:
            if placed is not None and placed.node == pod.node_name and placed.pod.demand == pod.demand:
                # Replace the older version, so that it does not stay in memory.
                self._placed[pod.uid] = _Placed(pod, placed.node, assumed=False)
                self._usage[placed.node].pods[pod.uid] = pod
            else:
                self._put(pod, pod.node_name, assumed=False)
        elif placed is not None and not (placed.assumed and pod.pending):
            # Finished, deleted before it was bound, or no longer bound because etcd was restored.
            self.pod_gone(pod.uid)

    def pod_gone(self, uid: str) -> None:
        """A pod was removed."""
        placed = self._placed.pop(uid, None)
        if placed is not None:
            self._count(placed.pod, placed.node, -1)
            # Pods that its anti-affinity excluded may fit on any node of its topology domain now.
            self._notify(None if placed.pod.demand.repels else placed.node)

    # --- decisions of schedulers --------------------------------------------------------------------------------------

    def assume(self, pod: PodView, node: str) -> None:
        """Count the pod on the node from now on."""
        self._put(pod, node, assumed=True)

    def give_back(self, uid: str) -> None:
        """Undo `assume`, because the pod was not bound. No effect when the streams have shown it as bound."""
        placed = self._placed.get(uid)
        if placed is not None and placed.assumed:
            self.pod_gone(uid)

    # --- counting -----------------------------------------------------------------------------------------------------

    def _put(self, pod: PodView, node: str, *, assumed: bool) -> None:
        self.pod_gone(pod.uid)
        self._placed[pod.uid] = _Placed(pod, node, assumed)
        self._count(pod, node, 1)
        self._notify(node)

    def _count(self, pod: PodView, node: str, sign: int) -> None:
        usage = self._usage[node]
        usage.count(pod, sign)
        if not usage.pods and node not in self.nodes:
            del self._usage[node]
        for term in pod.demand.repels:
            self.repelling.cache_clear()
            counts = self._repelling.setdefault((term, pod.item.meta.namespace), Counter())
            counts[node] += sign
            if not counts[node]:
                del counts[node]
            if not counts:
                del self._repelling[term, pod.item.meta.namespace]

    def _notify(self, node: str | None) -> None:
        for listener in self.listeners:
            listener(node)


def _excludes(term: AntiAffinity, namespace: str, pod: PodView) -> bool:
    """Whether the term, of a pod in `namespace`, selects `pod`."""
    if term.namespaces is not None and pod.item.meta.namespace not in (term.namespaces or (namespace,)):
        return False
    return term.requirements is not None and hold(term.requirements, pod.labels)
