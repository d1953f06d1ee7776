"""RandomNode: pods with `schedulerName: random-node` go to any node.

It may choose a node that is full: its `check` is called before a choice is bound, and the pod tried again where it does
not fit. Without a check, it would be bound all the same.
"""

import random

from bonny import Operator
from bonny.filters import fits
from bonny.scheduler import Choice, Nodes, PodView, Scheduler


class RandomNode(Scheduler):
    name = "random-node"
    check = fits

    def select_node_for_pod(self, pod: PodView, nodes: Nodes) -> Choice:  # noqa: ARG002  any node is as good
        return random.choice(nodes) if nodes else None


operator = Operator(name="random-node", group="example.com", controllers=[RandomNode])
