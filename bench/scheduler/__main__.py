"""A scheduler, measured beside kube-scheduler, on a real API server of its own.

    make bench-scheduler                                        everything; about an hour
    python -m bench.scheduler --quick --nodes 50                does it work? a few hundred pods, one round
    python -m bench.scheduler --workload backlog --rounds 3     one workload
    python -m bench.scheduler --nodes 5000 --objects 10000      a larger cluster
    python -m bench.scheduler --workload backlog --profile      where our CPU goes; nothing is compared

backlog   the pods are there when the scheduler starts              live   they come at a steady rate

Nodes and pods are objects that nothing runs; the pods have 60 shapes (`world`). Ours is an operator with one scheduler,
`fits` and `least_allocated`. kube-scheduler has its default profile, and once more (`-lean`) one that scores by
LeastAllocated alone, as ours does; its client may send 5,000 requests a second.

Prints medians with [smallest..largest], the ratios, and whether each goal is met; `.bench/` gets all results as JSON,
and a profile of ours beside them when a goal is missed.
A missed goal is not an error; the exit code is not 0 when a pod was not bound, or a node overcommitted.
"""

from __future__ import annotations

import sys
from typing import Final

from bench.harness.command import Suite, Workload

from . import workloads
from .contestants import MAKERS

SUITE: Final = Suite(
    name="scheduler",
    about=(__doc__ or "").splitlines()[0],
    makers=MAKERS,
    workloads={
        "backlog": Workload(workloads.backlog, 5_000, profilable=True),
        "live": Workload(workloads.live, 3_000, rounds=3, profilable=True),
    },
    sizes={"nodes": (1_000, "how many there are"), "rate": (100, "pods a second that `live` creates")},
)

if __name__ == "__main__":
    sys.exit(SUITE.main())
