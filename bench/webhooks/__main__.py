"""Admission webhooks, measured beside controller-runtime, on a real API server of its own.

    make bench-webhooks                                       everything; about 15 minutes
    python -m bench.webhooks --quick                          does it work? a few hundred writes, one round
    python -m bench.webhooks --workload burst --rounds 3      one workload

Each write is a creation (a dry run) of an object that a mutating webhook completes and a validating one looks at, so it
costs two reviews.

steady    100 creations a second                             burst    32 creations under way all the time

Prints medians with [smallest..largest], the ratios, and whether each goal is met; `.bench/` gets all results as JSON.
A missed goal is not an error; the exit code is not 0 when a review was not answered as it should be.
"""

from __future__ import annotations

import sys
from typing import Final

from bench.harness.command import Suite, Workload

from . import workloads
from .contestants import MAKERS

SUITE: Final = Suite(
    name="webhooks",
    about=(__doc__ or "").splitlines()[0],
    makers=MAKERS,
    workloads={
        "steady": Workload(workloads.steady, 3_000, profilable=True),
        "burst": Workload(workloads.burst, 5_000, profilable=True),
    },
)

if __name__ == "__main__":
    sys.exit(SUITE.main())
