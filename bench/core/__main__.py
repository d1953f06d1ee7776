"""The watch and queue core, measured beside kopf, controller-runtime and kube-rs, on a real API server of its own.

    make bench-core                                          everything; about 75 minutes
    python -m bench.core --quick                             does it work? a few hundred objects, one round
    python -m bench.core --workload events --rounds 3        one workload
    python -m bench.core --workload sync --profile           where our CPU goes; nothing is compared

events    one update of each object, the handler does nothing          sync       a start with many objects
start     a start with three objects                                   idle       a minute in which nothing changes
large     a start with 100,000 objects, and changes of one of them     restart    an operator comes back; children
memory    what each further object takes, up to five times --objects   scaling    how a start grows with the objects

Prints medians with [smallest..largest], the ratios, and whether each goal is met; `.bench/` gets all results as JSON,
pictures of the medians, and a profile of ours when a goal of `events` or `sync` is missed.
A missed goal is not an error; the exit code is not 0 when a contestant did not see all objects.
"""

from __future__ import annotations

import sys
from typing import Final

from bench.harness.command import Suite, Workload
from bench.harness.plot import Panel

from . import restart, workloads
from .contestants import MAKERS

SUITE: Final = Suite(
    name="core",
    about=(__doc__ or "").splitlines()[0],
    makers=MAKERS,
    workloads={
        "events": Workload(workloads.events, 10_000, profilable=True),
        "sync": Workload(workloads.sync, 10_000, profilable=True),
        "start": Workload(workloads.start, 3),
        "idle": Workload(workloads.idle, 10_000, rounds=3),
        "large": Workload(workloads.large, 100_000, rounds=3),
        "memory": Workload(workloads.memory, 10_000, with_peers=False),
        "restart": Workload(restart.restart, 5_000, with_peers=False),
        "scaling": Workload(workloads.scaling, 50_000, with_peers=False),
    },
    panels=(
        Panel("events", workloads.CPU_PER_EVENT, "An update, the handler does nothing: CPU, µs"),
        Panel("sync", workloads.CPU, "First sync of 10,000 objects: CPU, s"),
        Panel("sync", workloads.WALL, "First sync of 10,000 objects: time, s"),
        Panel("sync", workloads.RESIDENT, "Memory with 10,000 objects, MB"),
        Panel("start", workloads.FIRST_CPU, "Start with three objects: CPU to the first call, s"),
        Panel("large", workloads.RESIDENT, "Memory with 100,000 objects, MB"),
    ),
)

if __name__ == "__main__":
    sys.exit(SUITE.main())
