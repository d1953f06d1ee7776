"""Assume: which pods count on which nodes; those that are bound, and those for which a binding is on its way.

A chosen node counts from the moment of the choice, so the next decision sees it. What the streams show is the truth;
what was assumed holds until they show it, or until it is known that the binding failed.

Guarantees: a pod counts once, on one node; what is neither shown as bound nor assumed takes no room.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

from ..core.objects import Item
from .demand import AntiAffinity
from .selector import hold
from .views import NodeView, PodView

__all__ = ["AssumeCache", "Usage"]

Pairs: TypeAlias = frozenset[tuple[str, str]]
NOBODY: Final[Pairs] = frozenset()


class Usage:
    """What the pods of one node take."""

    __slots__ = ("pods", "ports", "requested", "scored")

    def __init__(self) -> None:
        self.requested: Counter[str] = Counter()
        self.scored = (0, 0)
        self.ports: Counter[tuple[str, str, int]] = Counter()
        self.pods: dict[str, PodView] = {}
        """By UID."""

    def count(self, pod: PodView, sign: int) -> None:
        """Take the pod in (1) or out (-1)."""
        demand = pod.demand
        for name, amount in demand.requests:
            self.requested[name] += sign * amount
        for port in demand.ports:
            self.ports[port] += sign
            if not self.ports[port]:
                del self.ports[port]
        self.scored = (self.scored[0] + sign * demand.scored[0], self.scored[1] + sign * demand.scored[1])
        if sign > 0:
            self.pods[pod.uid] = pod
        else:
            del self.pods[pod.uid]


NO_USAGE: Final = Usage()


class _Placed(NamedTuple):
    pod: PodView
    node: str
    assumed: bool


class AssumeCache:
    """The nodes of a cluster with their pods, shared by all schedulers of an operator."""

    def __init__(self) -> None:
        self.nodes: dict[str, NodeView] = {}
        self.listeners: list[Callable[[str | None], None]] = []
        """Each is called with the name of a node that changed, or of which the pods did; with None when any node may
        have become right for a pod."""

        self._placed: dict[str, _Placed] = {}
        """By UID."""

        self._usage: dict[str, Usage] = {}
        """Of the nodes with pods, whether the node itself is known or not."""

        self._repelling: dict[tuple[AntiAffinity, str], Counter[str]] = {}
        """By term and the namespace of those who have it: how many are on each node."""

        self._told: tuple[PodView, Pairs] | None = None
        """The last answer of `repelled`, while it holds: it is asked about one pod for thousands of nodes."""

    def usage(self, node: str) -> Usage:
        """What the pods of a node take."""
        return self._usage.get(node, NO_USAGE)

    def repelled(self, pod: PodView) -> Pairs:
        """The labels of nodes from which pods that run keep this one away."""
        if not self._repelling:
            return NOBODY
        if self._told is None or self._told[0] is not pod:
            pairs = frozenset(
                (term.topology_key, self.nodes[node].labels[term.topology_key])
                for (term, namespace), where in self._repelling.items()
                if _means(term, namespace, pod)
                for node in where
                if node in self.nodes and term.topology_key in self.nodes[node].labels
            )
            self._told = (pod, pairs)
        return self._told[1]

    # --- what streams show --------------------------------------------------------------------------------------------

    def see_node(self, name: str, new: Item | None) -> None:
        """A node was added, changed, or removed (None)."""
        if new is None:
            self.nodes.pop(name, None)
        else:
            self.nodes[name] = NodeView(new, self)
        self._told = None
        self._tell(name)

    def see_pod(self, pod: PodView) -> None:
        """A pod was added or changed."""
        placed = self._placed.get(pod.uid)
        if pod.node_name:
            if placed is not None and placed.node == pod.node_name and placed.pod.demand == pod.demand:
                # The newest version takes the place of the older one, which would be held in memory for this alone.
                self._placed[pod.uid] = _Placed(pod, placed.node, assumed=False)
                self._usage[placed.node].pods[pod.uid] = pod
            else:
                self._put(pod, pod.node_name, assumed=False)
        elif placed is not None and not (placed.assumed and pod.pending):
            # Finished, deleted before it was bound, or bound once and not any more: the server was restored.
            self.pod_gone(pod.uid)

    def pod_gone(self, uid: str) -> None:
        """A pod was removed."""
        placed = self._placed.pop(uid, None)
        if placed is not None:
            self._count(placed.pod, placed.node, -1)
            # Whom it kept away may fit into any node of its topology domain now.
            self._tell(None if placed.pod.demand.repels else placed.node)

    # --- what schedulers decide ---------------------------------------------------------------------------------------

    def assume(self, pod: PodView, node: str) -> None:
        """The pod takes room on the node from now on."""
        self._put(pod, node, assumed=True)

    def give_back(self, uid: str) -> None:
        """The pod was not bound. Harmless when it is not assumed any more, or was seen bound meanwhile."""
        placed = self._placed.get(uid)
        if placed is not None and placed.assumed:
            self.pod_gone(uid)

    # --- counting -----------------------------------------------------------------------------------------------------

    def _put(self, pod: PodView, node: str, *, assumed: bool) -> None:
        self.pod_gone(pod.uid)
        self._placed[pod.uid] = _Placed(pod, node, assumed)
        self._count(pod, node, 1)
        self._tell(node)

    def _count(self, pod: PodView, node: str, sign: int) -> None:
        usage = self._usage.get(node)
        if usage is None:
            usage = self._usage[node] = Usage()
        usage.count(pod, sign)
        if not usage.pods:
            del self._usage[node]
        for term in pod.demand.repels:
            self._told = None
            where = self._repelling.setdefault((term, pod.item.meta.namespace), Counter())
            where[node] += sign
            if not where[node]:
                del where[node]
            if not where:
                del self._repelling[term, pod.item.meta.namespace]

    def _tell(self, node: str | None) -> None:
        for listener in self.listeners:
            listener(node)


def _means(term: AntiAffinity, namespace: str, pod: PodView) -> bool:
    """Whether those in `namespace` who have the term want the pod nowhere near."""
    if term.namespaces is not None and pod.item.meta.namespace not in (term.namespaces or (namespace,)):
        return False
    return term.requirements is not None and hold(term.requirements, pod.labels)
