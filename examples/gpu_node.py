"""GpuNode: pods with `schedulerName: gpu-node` go to a random node of those with GPUs into which they fit.

`nodes` lists the nodes to choose from. A watch updates the nodes of a label selector.
"""

import random

from bonny import Kind, Operator
from bonny.filters import fits
from bonny.scheduler import Choice, Nodes, PodView, Scheduler


class GpuNode(Scheduler):
    name = "gpu-node"
    check = fits

    def select_node_for_pod(self, pod: PodView, nodes: Nodes) -> Choice:
        fitting = nodes.fitting(pod)
        return random.choice(fitting) if fitting else None

    def nodes(self) -> Kind:
        return Kind("v1", "Node", label_selector="my.label.on.gpu.instances")


operator = Operator(name="gpu-node", group="example.com", controllers=[GpuNode])
