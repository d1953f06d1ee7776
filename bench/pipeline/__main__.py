"""The whole pipeline, measured beside kopf, controller-runtime and kube-rs, on a real API server of its own.

    make bench-pipeline                                      everything; about 75 minutes
    python -m bench.pipeline --quick                         does it work? a few hundred objects, one round
    python -m bench.pipeline --workload create --rounds 3    one workload
    python -m bench.pipeline --workload create --profile     where our CPU goes; nothing is compared

create      many objects at once, each with a ConfigMap and a condition        latency    the same at 20 a second
unchanged   an operator comes back to objects that it handled, and handles them again and again

Prints medians with [smallest..largest], the ratios, and whether each goal is met; `.bench/` gets all results as JSON,
pictures of the medians, and a profile of ours when a goal of `create` or `latency` is missed.
A missed goal is not an error; the exit code is not 0 when a contestant left an object without its child or its status.
"""

from __future__ import annotations

import sys
from typing import Final

from bench.harness.command import Suite, Workload
from bench.harness.plot import Panel

from . import workloads
from .contestants import MAKERS

SUITE: Final = Suite(
    name="pipeline",
    about=(__doc__ or "").splitlines()[0],
    makers=MAKERS,
    workloads={
        "create": Workload(workloads.create, 2_000, profilable=True),
        "latency": Workload(workloads.latency, 1_000, profilable=True),
        # Counts of writes do not scatter as times do.
        "unchanged": Workload(workloads.unchanged, 1_000, rounds=3),
    },
    panels=(
        Panel("create", workloads.CPU_PER_OBJECT, "A new object, child and status: CPU, µs"),
        Panel("create", workloads.WRITES, "Write requests for it"),
        Panel("latency", workloads.P50, "Creation to status, 20 a second: median, ms"),
        Panel("create", workloads.RESIDENT, "Memory with 2,000 objects and children, MB"),
    ),
)

if __name__ == "__main__":
    sys.exit(SUITE.main())
