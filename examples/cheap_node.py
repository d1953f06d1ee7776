"""CheapNode: pods with `schedulerName: cheap-node` go to a node with the label cheap=true, if they fit.

This is all of a scheduler. A pod for which None is returned waits, with the reason on it, and is tried again when a
node or a pod changes.
"""

from bonny import Operator
from bonny.filters import fits
from bonny.scheduler import Choice, Nodes, PodView, Scheduler


class CheapNode(Scheduler):
    name = "cheap-node"
    check = fits

    def select_node_for_pod(self, pod: PodView, nodes: Nodes) -> Choice:
        return next((node for node in nodes.fitting(pod) if node.labels.get("cheap") == "true"), None)


operator = Operator(name="cheap-node", group="example.com", controllers=[CheapNode])
