"""RandomNode: pods with `schedulerName: random-node` go to any node.

It may choose a node that is full: a choice is checked before it is bound, and the pod tried again where it does not
fit. `check = None` would bind it all the same.
"""

import random

from bonny import Operator
from bonny.scheduler import Choice, Nodes, PodView, Scheduler


class RandomNode(Scheduler):
    name = "random-node"

    def select_node_for_pod(self, pod: PodView, nodes: Nodes) -> Choice:  # noqa: ARG002  any node is as good
        return random.choice(nodes) if nodes else None


operator = Operator(name="random-node", group="example.com", controllers=[RandomNode])
