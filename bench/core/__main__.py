"""The watch and queue core in figures, beside kopf and controller-runtime, on a real API server of its own.

    make bench-core                                          everything; about half an hour
    python -m bench.core --quick                             does it work? a few hundred objects, one round
    python -m bench.core --workload events --rounds 3        one workload
    python -m bench.core --workload sync --profile           where our CPU goes; nothing is compared

events    one update of each object, the handler does nothing          sync       a start with many objects
memory    what each further object takes, up to five times --objects   restart    an operator comes back; children
scaling   how a start grows with the number of objects

Prints medians with [smallest..largest], the ratios, and whether each goal is met; `.bench/` gets all figures as JSON,
and a profile of ours beside them when a goal of `events` or `sync` is missed.
A missed goal is no error; the exit code is not 0 when a contestant did not see all objects.
"""

from __future__ import annotations

import sys
from typing import Final

from bench.harness.command import Suite, Workload

from . import restart, workloads
from .contestants import MAKERS

SUITE: Final = Suite(
    name="core",
    about=(__doc__ or "").splitlines()[0],
    makers=MAKERS,
    workloads={
        "events": Workload(workloads.events, 10_000, profilable=True),
        "sync": Workload(workloads.sync, 10_000, profilable=True),
        "memory": Workload(workloads.memory, 10_000, with_peers=False),
        "restart": Workload(restart.restart, 5_000, with_peers=False),
        "scaling": Workload(workloads.scaling, 50_000, with_peers=False),
    },
)

if __name__ == "__main__":
    sys.exit(SUITE.main())
