"""The examples place pods that [pods.py](examples/pods.py) makes; each is run by a test. `filters` is
`bonny.filters`, and `testing` is `bonny_dev.testing`.
"""

from __future__ import annotations

from bonny import filters
from bonny.scheduler import Binding, Choice, Nodes, NodeView, PodView, Scheduler
from bonny_dev import testing
from docs.reference.examples.pods import ZONE, node, pod


async def scheduler() -> None:
    class CheapNode(Scheduler):
        name = "cheap-node"
        check = filters.fits

        def select_node_for_pod(self, pod: PodView, nodes: Nodes) -> Choice:
            cheap = [node for node in nodes.fitting(pod) if node.labels.get("cheap") == "true"]
            return max(cheap, key=lambda node: filters.least_allocated(pod, node), default=None)

    pair = [node("n1"), node("n2", labels={"cheap": "true"})]
    assert await testing.schedule(CheapNode, pod("p1"), nodes=pair) == "n2"
    assert await testing.schedule(CheapNode, pod("p1"), nodes=[node("n1")]) is None  # it waits


async def pod_view() -> None:
    class Shown(Scheduler):
        name = "shown"
        check = filters.fits

        def select_node_for_pod(self, pod: PodView, nodes: Nodes) -> Choice:
            assert (pod.name, pod.key.namespace, pod.labels) == ("p1", "default", {"team": "a"})
            assert filters.requests(pod) == {"cpu": 500, "memory": 1024**3}
            assert pod["spec"]["containers"][0]["name"] == "main"
            return nodes.named("n1")

    assert await testing.schedule(Shown, pod("p1", cpu="500m", labels={"team": "a"}), nodes=[node("n1")]) == "n1"


async def node_view() -> None:
    class OneOfEachTeam(Scheduler):
        name = "one-of-each-team"
        check = filters.fits

        def select_node_for_pod(self, pod: PodView, nodes: Nodes) -> Choice:
            def has_the_team(node: NodeView) -> bool:
                return any(other.labels["team"] == pod.labels["team"] for other in node.pods.values())

            free = [node for node in nodes.fitting(pod) if not has_the_team(node)]
            return max(free, key=lambda node: filters.free(node)["cpu"], default=None)

    a, b = ({"team": name} for name in "ab")
    options = {"nodes": [node("n1", cpu="8"), node("n2")], "pods": [pod("p1", on="n1", labels=a)]}
    assert await testing.schedule(OneOfEachTeam, pod("p2", labels=a), **options) == "n2"
    assert await testing.schedule(OneOfEachTeam, pod("p2", labels=b), **options) == "n1"


async def usage() -> None:
    class Shown(Scheduler):
        name = "shown"
        check = filters.fits

        def select_node_for_pod(self, pod: PodView, nodes: Nodes) -> Choice:
            (node,) = nodes
            assert [other.name for other in node.pods.values()] == ["p0"]
            assert filters.usage(node).requested["cpu"] == 3000
            assert (filters.allocatable(node)["cpu"], filters.free(node)["cpu"]) == (4000, 1000)
            return node

    there = pod("p0", cpu="3", on="n1")
    assert await testing.schedule(Shown, pod("p1"), nodes=[node("n1")], pods=[there]) == "n1"


async def nodes() -> None:
    class Pinned(Scheduler):
        name = "pinned"
        check = filters.fits

        def select_node_for_pod(self, pod: PodView, nodes: Nodes) -> Choice:
            wanted = nodes.named(pod.labels["node"])
            return wanted if wanted in nodes.fitting(pod) else None

    pair = [node("n1"), node("n2")]
    assert await testing.schedule(Pinned, pod("p1", labels={"node": "n2"}), nodes=pair) == "n2"
    assert await testing.schedule(Pinned, pod("p1", labels={"node": "n3"}), nodes=pair) is None


async def fitting() -> None:
    class CheapFirst(Scheduler):
        name = "cheap-first"
        check = filters.fits

        def select_node_for_pod(self, pod: PodView, nodes: Nodes) -> Choice:
            return nodes.fitting(pod).best(cheap_first)

    def cheap_first(pod: PodView, node: NodeView) -> float:
        return filters.least_allocated(pod, node) + (1000.0 if node.labels.get("cheap") == "true" else 0.0)

    pair = [node("n1"), node("n2", cpu="1", labels={"cheap": "true"})]
    assert await testing.schedule(CheapFirst, pod("p1", cpu="1"), nodes=pair) == "n2"
    assert await testing.schedule(CheapFirst, pod("p1", cpu="2"), nodes=pair) == "n1"


async def least_allocated() -> None:
    class Emptiest(Scheduler):
        name = "emptiest"
        check = filters.fits

        def select_node_for_pod(self, pod: PodView, nodes: Nodes) -> Choice:
            return nodes.fitting(pod).best(filters.least_allocated)

    there = pod("p0", on="n1")
    assert await testing.schedule(Emptiest, pod("p1"), nodes=[node("n1"), node("n2")], pods=[there]) == "n2"


async def most_allocated() -> None:
    class Fullest(Scheduler):
        name = "fullest"
        check = filters.fits

        def select_node_for_pod(self, pod: PodView, nodes: Nodes) -> Choice:
            return nodes.fitting(pod).best(filters.most_allocated)

    there = pod("p0", on="n1")
    assert await testing.schedule(Fullest, pod("p1"), nodes=[node("n1"), node("n2")], pods=[there]) == "n1"


async def balanced() -> None:
    class Balanced(Scheduler):
        name = "balanced"
        check = filters.fits

        def select_node_for_pod(self, pod: PodView, nodes: Nodes) -> Choice:
            return nodes.fitting(pod).best(filters.balanced)

    much_memory = pod("p0", cpu="100m", memory="4Gi", on="n1")
    much_cpu = pod("p1", cpu="2", memory="100Mi")
    assert await testing.schedule(Balanced, much_cpu, nodes=[node("n1"), node("n2")], pods=[much_memory]) == "n1"


async def spread() -> None:
    class Spread(Scheduler):
        name = "spread"
        check = filters.fits

        def select_node_for_pod(self, pod: PodView, nodes: Nodes) -> Choice:
            return max(nodes.fitting(pod), key=filters.spread(pod, nodes, ZONE), default=None)

    zones = {"n1": "a", "n2": "a", "n3": "b"}
    options = {"nodes": [node(name, labels={ZONE: zone}) for name, zone in zones.items()], "pods": [pod("p0", on="n1")]}
    assert await testing.schedule(Spread, pod("p1"), **options) == "n3"


async def fits() -> None:
    class Explained(Scheduler):
        name = "explained"
        check = filters.fits

        def select_node_for_pod(self, pod: PodView, nodes: Nodes) -> Choice:
            small, large = nodes
            assert filters.fits(pod, large)
            assert filters.fits(pod, small).reasons == ("Insufficient cpu",)
            return large

    pair = [node("small", cpu="1"), node("large")]
    assert await testing.schedule(Explained, pod("p1", cpu="2"), nodes=pair) == "large"


def binding() -> None:
    assert Binding.new(pod("p1"), node("n1")) == {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "p1", "namespace": "default"},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "n1"},
    }
