"""An operator with a scheduler and nothing else, for tests of several replicas. Run as a script."""

import os
import sys

from bonny import Operator
from bonny.core.lease import LeaseTiming
from bonny.core.watch import WatchOptions
from bonny.filters import fits, least_allocated
from bonny.main import main
from bonny.scheduler import Choice, Nodes, PodView, Scheduler

# Duration, renew deadline and retry period of the lease.
DURATION, DEADLINE, RETRY = os.environ.get("TEST_LEASE_SECONDS", "15 10 2").split()
WATCH_SECONDS = float(os.environ.get("TEST_WATCH_SECONDS", "3"))


class Even(Scheduler):
    """Each pod to the emptiest node into which it fits."""

    name = "even"
    check = fits

    def select_node_for_pod(self, pod: PodView, nodes: Nodes) -> Choice:
        return nodes.fitting(pod).best(least_allocated)


operator = Operator(
    name="scheduled",
    group="example.com",
    controllers=[Even],
    version="1.0.0",
    lease=LeaseTiming(lease_duration=int(DURATION), renew_deadline=float(DEADLINE), retry_period=float(RETRY)),
    watch_options=WatchOptions(timeout=(WATCH_SECONDS, WATCH_SECONDS), grace=3.0),
)

if __name__ == "__main__":
    sys.exit(main(operator))
