"""The whole pipeline in figures, beside kopf and controller-runtime, on a real API server of its own.

    make bench-pipeline                                      everything; about three quarters of an hour
    python -m bench.pipeline --quick                         does it work? a few hundred objects, one round
    python -m bench.pipeline --workload create --rounds 3    one workload
    python -m bench.pipeline --workload create --profile     where our CPU goes; nothing is compared

create      many objects at once, each with a ConfigMap and a condition        latency    the same at 20 a second
unchanged   an operator comes back to objects that it handled, and handles them again and again

Prints medians with [smallest..largest], the ratios, and whether each goal is met; `.bench/` gets all figures as JSON,
and a profile of ours beside them when a goal of `create` or `latency` is missed.
A missed goal is no error; the exit code is not 0 when a contestant left an object without its child or its status.
"""

from __future__ import annotations

import sys
from typing import Final

from bench.harness.command import Suite, Workload

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
)

if __name__ == "__main__":
    sys.exit(SUITE.main())
