"""Our contestant: the emptiest node into which a pod fits. Run as a script."""

from __future__ import annotations

import sys

from bench.harness.ours import run
from bonny.filters import fits, least_allocated
from bonny.scheduler import Scheduler
from bonny.scheduler.nodes import Nodes
from bonny.scheduler.scheduler import Choice
from bonny.scheduler.views import PodView

from .world import NAME


class Emptiest(Scheduler):
    name = NAME
    check = fits

    def select_node_for_pod(self, pod: PodView, nodes: Nodes) -> Choice:
        return nodes.fitting(pod).best(least_allocated)


if __name__ == "__main__":
    sys.exit(run(schedulers=(Emptiest,)))
