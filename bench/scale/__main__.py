"""Replicas that share the work beside one that has all of it, and 100,000 objects in one process.

    make bench-scale                                     everything; about 40 minutes, on an idle machine
    python -m bench.scale --quick                        does it work? some objects, one round, short waits
    python -m bench.scale --workload moves --rounds 5    one part

throughput  3 replicas beside 1: reconciles a second, with handlers that wait for 100 ms, 10 at a time in each replica
cpu         3 replicas beside 1: CPU of the busiest, the same load, handlers with 5 ms of CPU
received    4 replicas beside 1: bytes and CPU of the busiest, objects with a child of their size and a status; the API
            server selects objects by their hash (`gated`), and does not
moves       a replica is killed, one joins, one leaves: seconds until each bucket has a holder and shares are even
leases      3 and 10 replicas at rest: requests for Leases a second
large       1 to 100,000 objects in one process: memory, first sync, and how it grows

Prints medians with [smallest..largest], and whether each goal is met; `.bench/` gets all results as JSON.
"""

from __future__ import annotations

import sys
from typing import Final

from bench.harness.command import Suite, Workload

from . import received, sharing
from .large import large

SUITE: Final = Suite(
    name="scale",
    about=(__doc__ or "").splitlines()[0],
    makers={},
    workloads={
        "throughput": Workload(sharing.throughput, 400, rounds=3, with_peers=False),
        "cpu": Workload(sharing.cpu, 2_000, rounds=3, with_peers=False),
        "received": Workload(received.received, 2_000, rounds=3, with_peers=False),
        "moves": Workload(sharing.moves, 100, rounds=3, with_peers=False),
        "leases": Workload(sharing.leases, 1, rounds=3, with_peers=False),
        "large": Workload(large, 100_000, rounds=3, with_peers=False),
    },
)

if __name__ == "__main__":
    sys.exit(SUITE.main())
