"""Filters: kube-scheduler's filters and scores, for schedulers that check where pods fit.

    class CheapNode(Scheduler):
        name = "cheap-node"
        check = fits

        def select_node_for_pod(self, pod, nodes):
            return nodes.fitting(pod).best(least_allocated)

`requests(pod)` is the demand of a pod; `allocatable(node)`, `free(node)`, `usage(node)` and `taints(node)` are the room
of a node: CPU in thousandths, everything else in units (bytes, devices). Single filters are in `bonny.filters.fits`.
"""

from .demand import requests as requests
from .index import fits as fits
from .room import allocatable as allocatable
from .room import free as free
from .room import taints as taints
from .room import usage as usage
from .score import balanced as balanced
from .score import least_allocated as least_allocated
from .score import most_allocated as most_allocated
from .score import spread as spread
