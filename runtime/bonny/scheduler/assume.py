"""Assume: counts pods on nodes, both bound pods and pods whose binding is in progress.

A chosen node counts from the moment of the choice, so the next decision sees it. The streams have the last word: an
assumption holds until they show the pod, or until its binding is known to have failed.

Guarantees: a pod counts once, on one node; a pod that is neither bound nor assumed takes no room.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from functools import lru_cache

from ..core.objects import Item
from ..core.selector import hold
from .demand import AntiAffinity
from .views import NodeView, PodView, TopologyDomains, Usage


class AssumeCache:
    """The nodes of a cluster with their pods, shared by all schedulers of an operator."""

    def __init__(self) -> None:
        self.nodes: dict[str, NodeView] = {}
        self.listeners: list[Callable[[str], None]] = []
        """Each is called with the name of a node after it or its pods changed."""

        self.lifted = 0
        """Times that a pod with anti-affinity left its node: other pods may fit anywhere in its topology domain now."""

        self._placed: dict[str, tuple[PodView, str]] = {}
        """Each pod that counts, by UID, and its node. An assumed pod is a version without a node."""

        self._usage: defaultdict[str, Usage] = defaultdict(Usage)
        """By node, for every known node, and for unknown ones that have pods."""

        self._repelling: defaultdict[tuple[AntiAffinity, str], Counter[str]] = defaultdict(Counter)
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
        if pod.node_name:
            self._put(pod, pod.node_name)
        elif not (self.assumed_node(pod.uid) and pod.pending):
            # Finished, deleted before it was bound, or no longer bound because etcd was restored.
            self.pod_gone(pod.uid)

    def pod_gone(self, uid: str) -> None:
        """A pod was removed."""
        pod, node = self._placed.pop(uid, (None, ""))
        if pod is not None:
            self._count(pod, node, -1)
            self.lifted += bool(pod.demand.repels)
            self._notify(node)

    # --- decisions of schedulers --------------------------------------------------------------------------------------

    def assume(self, pod: PodView, node: str) -> None:
        """Count the pod on the node from now on."""
        self._put(pod, node)

    def assumed_node(self, uid: str) -> str:
        """The node of an assumed pod. Empty: it is not assumed, or the streams have shown it as bound."""
        pod, node = self._placed.get(uid, (None, ""))
        return "" if pod is None or pod.node_name else node

    def give_back(self, uid: str) -> None:
        """Undo `assume`, because the pod was not bound. No effect when the streams have shown it as bound."""
        if self.assumed_node(uid):
            self.pod_gone(uid)

    # --- counting -----------------------------------------------------------------------------------------------------

    def _put(self, pod: PodView, node: str) -> None:
        before, on = self._placed.get(pod.uid, (None, ""))
        if before is not None and on == node and before.demand == pod.demand:
            # Only the version differs. The older one must not stay in memory.
            self._placed[pod.uid] = (pod, node)
            self._usage[node].pods[pod.uid] = pod
            return
        self.pod_gone(pod.uid)
        self._placed[pod.uid] = (pod, node)
        self._count(pod, node, 1)
        self._notify(node)

    def _count(self, pod: PodView, node: str, sign: int) -> None:
        usage = self._usage[node]
        usage.count(pod, sign)
        if not usage.pods and node not in self.nodes:
            del self._usage[node]
        for term in pod.demand.repels:
            self.repelling.cache_clear()
            counts = self._repelling[term, pod.key.namespace]
            counts[node] += sign
            if not counts[node]:
                del counts[node]
            if not counts:
                del self._repelling[term, pod.key.namespace]

    def _notify(self, node: str) -> None:
        for listener in self.listeners:
            listener(node)


def _excludes(term: AntiAffinity, namespace: str, pod: PodView) -> bool:
    """Whether the term, of a pod in `namespace`, selects `pod`."""
    if term.namespaces is not None and pod.key.namespace not in (term.namespaces or (namespace,)):
        return False
    return term.requirements is not None and hold(term.requirements, pod.labels)
