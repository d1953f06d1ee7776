"""The examples place pods that [pods.py](examples/pods.py) makes; each is run by a test. `testing` is
`bonny_dev.testing`.
"""

from __future__ import annotations

from bonny.scheduler import Binding, Choice, Fit, Nodes, NodeView, PodView, Scheduler
from bonny_dev import testing
from docs.reference.examples.pods import node, pod


async def scheduler() -> None:
    class CheapNode(Scheduler):
        name = "cheap-node"

        def select_node_for_pod(self, pod: PodView, nodes: Nodes) -> Choice:
            return next((node for node in nodes if node.labels.get("cheap") == "true"), None)

    pair = [node("n1"), node("n2", labels={"cheap": "true"})]
    assert await testing.schedule(CheapNode, pod("p1"), nodes=pair) == "n2"
    assert await testing.schedule(CheapNode, pod("p1"), nodes=[node("n1")]) is None  # it waits


async def pod_view() -> None:
    class Shown(Scheduler):
        name = "shown"

        def select_node_for_pod(self, pod: PodView, nodes: Nodes) -> Choice:
            assert (pod.name, pod.key.namespace, pod.labels) == ("p1", "default", {"team": "a"})
            assert pod["spec"]["containers"][0]["name"] == "main"
            return nodes.named("n1")

    assert await testing.schedule(Shown, pod("p1", labels={"team": "a"}), nodes=[node("n1")]) == "n1"


async def node_view() -> None:
    class OneOfEachTeam(Scheduler):
        name = "one-of-each-team"

        def select_node_for_pod(self, pod: PodView, nodes: Nodes) -> Choice:
            def has_the_team(node: NodeView) -> bool:
                return any(other.labels["team"] == pod.labels["team"] for other in node.pods.values())

            return next((node for node in nodes if not has_the_team(node)), None)

    a, b = ({"team": name} for name in "ab")
    options = {"nodes": [node("n1"), node("n2")], "pods": [pod("p1", on="n1", labels=a)]}
    assert await testing.schedule(OneOfEachTeam, pod("p2", labels=a), **options) == "n2"
    assert await testing.schedule(OneOfEachTeam, pod("p2", labels=b), **options) == "n1"


async def nodes() -> None:
    class Pinned(Scheduler):
        name = "pinned"

        def select_node_for_pod(self, pod: PodView, nodes: Nodes) -> Choice:
            return nodes.named(pod.labels["node"])

    pair = [node("n1"), node("n2")]
    assert await testing.schedule(Pinned, pod("p1", labels={"node": "n2"}), nodes=pair) == "n2"
    assert await testing.schedule(Pinned, pod("p1", labels={"node": "n3"}), nodes=pair) is None


async def fitting() -> None:
    def is_small(pod: PodView, node: NodeView) -> bool:
        return len(node.pods) < 2

    class FewestPods(Scheduler):
        name = "fewest-pods"
        check = is_small

        def select_node_for_pod(self, pod: PodView, nodes: Nodes) -> Choice:
            return nodes.fitting(pod).best(lambda pod, node: -len(node.pods))

    there = [pod("p1", on="n1"), pod("p2", on="n1"), pod("p3", on="n2")]
    assert await testing.schedule(FewestPods, pod("p4"), nodes=[node("n1"), node("n2")], pods=there) == "n2"
    assert await testing.schedule(FewestPods, pod("p4"), nodes=[node("n1")], pods=there) is None


async def fit() -> None:
    def has_gpu(pod: PodView, node: NodeView) -> Fit:
        return Fit() if node.labels.get("gpu") == "true" else Fit("node(s) had no GPU")

    class Checked(Scheduler):
        name = "checked"
        check = has_gpu

        def select_node_for_pod(self, pod: PodView, nodes: Nodes) -> Choice:
            return nodes.named("n1")

    assert await testing.schedule(Checked, pod("p1"), nodes=[node("n1", labels={"gpu": "true"})]) == "n1"
    assert await testing.schedule(Checked, pod("p1"), nodes=[node("n1")]) is None


def binding() -> None:
    assert Binding.new(pod("p1"), node("n1")) == {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "p1", "namespace": "default"},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "n1"},
    }
