"""Assume: counts pods on nodes, both bound pods and pods whose binding is in progress.

A chosen node counts from the moment of the choice, so the next decision sees it. The streams have the last word: an
assumption holds until they show the pod, or until its binding is known to have failed.

Guarantees: a pod counts once, on one node; a pod that is neither bound nor assumed takes no room.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable

from ..core.objects import Item
from .views import Derived, NodeView, PodView


class AssumeCache(Derived):
    """The nodes of a cluster with their pods, shared by all schedulers of an operator."""

    def __init__(self) -> None:
        self.nodes: dict[str, NodeView] = {}
        self.listeners: list[Callable[[str], None]] = []
        """Each is called with the name of a node after it or its pods changed."""

        self.counters: list[Callable[[PodView, str, int], None]] = []
        """For filters: each is called with a pod, its node, and 1 after it was counted there or -1 after it left."""

        self.shapes: list[Callable[[PodView], Hashable]] = []
        """`Check.shape` of each scheduler; a pod whose shape changed is counted again."""

        self._placed: dict[str, tuple[PodView, str]] = {}
        """Each pod that counts, by UID, and its node. An assumed pod is a version without a node."""

        self.pods: defaultdict[str, dict[str, PodView]] = defaultdict(dict)
        """The pods that count, by node and UID: for every known node, and for unknown ones that have pods."""

    # --- changes from the streams ---

    def see_node(self, name: str, new: Item | None) -> None:
        """A node was added, changed, or removed (None)."""
        if new is not None:
            self.nodes[name] = NodeView(new, self.pods[name], self)
        elif self.nodes.pop(name, None) is not None and not self.pods[name]:
            del self.pods[name]
        self._notify(name)

    def see_pod(self, pod: PodView) -> None:
        """A pod was added or changed."""
        if pod.node_name:
            self.assume(pod, pod.node_name)
        elif not (self.assumed_node(pod.uid) and pod.pending):
            # Finished, deleted before it was bound, or no longer bound because etcd was restored.
            self.pod_gone(pod.uid)

    def pod_gone(self, uid: str) -> None:
        """A pod was removed."""
        pod, node = self._placed.pop(uid, (None, ""))
        if pod is not None:
            del self.pods[node][uid]
            self._count(pod, node, -1)

    # --- decisions of schedulers ---

    def assume(self, pod: PodView, node: str) -> None:
        """Count the pod on the node from now on."""
        before, on = self._placed.get(pod.uid, (None, ""))
        same = before is not None and on == node and all(shape(before) == shape(pod) for shape in self.shapes)
        if not same:
            self.pod_gone(pod.uid)
        # Also if only the version differs: the older one must not stay in memory.
        self._placed[pod.uid] = (pod, node)
        self.pods[node][pod.uid] = pod
        if not same:
            self._count(pod, node, 1)

    def assumed_node(self, uid: str) -> str:
        """The node of an assumed pod. Empty: it is not assumed, or the streams have shown it as bound."""
        pod, node = self._placed.get(uid, (None, ""))
        return "" if pod is None or pod.node_name else node

    def give_back(self, uid: str) -> None:
        """Undo `assume`, because the pod was not bound. No effect when the streams have shown it as bound."""
        if self.assumed_node(uid):
            self.pod_gone(uid)

    # --- reports ---

    def _count(self, pod: PodView, node: str, sign: int) -> None:
        for count in self.counters:
            count(pod, node, sign)
        if not self.pods[node] and node not in self.nodes:
            del self.pods[node]
        self._notify(node)

    def _notify(self, node: str) -> None:
        for listener in self.listeners:
            listener(node)
