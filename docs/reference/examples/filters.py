"""The examples place pods that [pods.py](examples/pods.py) makes; each is run by a test. `filters` is
`bonny.filters`, and `testing` is `bonny_dev.testing`.
"""

from __future__ import annotations

from bonny import filters
from bonny.scheduler import Choice, Nodes, NodeView, PodView, Scheduler
from bonny_dev import testing
from docs.reference.examples.pods import ZONE, node, pod


async def fits() -> None:
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
    assert await testing.schedule(CheapFirst, pod("p1", cpu="5"), nodes=pair) is None  # it waits


async def usage() -> None:
    class Shown(Scheduler):
        name = "shown"
        check = filters.fits

        def select_node_for_pod(self, pod: PodView, nodes: Nodes) -> Choice:
            (node,) = nodes
            assert [other.name for other in node.pods.values()] == ["p0"]
            assert filters.requests(pod) == {"cpu": 500, "memory": 1024**3}
            assert filters.usage(node).requested["cpu"] == 3000
            assert (filters.allocatable(node)["cpu"], filters.free(node)["cpu"]) == (4000, 1000)
            return node

    there = pod("p0", cpu="3", on="n1")
    assert await testing.schedule(Shown, pod("p1", cpu="500m"), nodes=[node("n1")], pods=[there]) == "n1"


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
