"""Compare this tree with an earlier commit, round by round on one API server, and fail when it costs more.

    make bench-check                                    everything; about a quarter of an hour on a quiet machine
    python -m bench.check --quick                       does it work? a few hundred objects, one round
    python -m bench.check --workload create --rounds 9  one workload
    BENCH_BASELINE=main make bench-check                another commit than that in bench/check/BASELINE
    BENCH_BASELINE=HEAD make bench-check                the noise of this machine, if nothing is changed

events    one update of each object, the handler does nothing          sync      a start with many objects
create    many objects at once, each with a ConfigMap and a condition  start     a start with three objects

The exit code is 1 when the median of a ratio exceeds its limit, and 2 when the commit is not in this clone.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from bench.core import workloads as core
from bench.harness.command import Suite, Workload
from bench.harness.contestants import bonny
from bench.harness.report import Goal, Outcome
from bench.harness.rounds import Bench
from bench.pipeline import workloads as pipeline
from bonny.errors import UsageError

from .baseline import BASELINE, baseline, commit

__all__ = ["SUITE", "main"]

# Medians of five ratios of the same commit differ by a few percent on a quiet machine, by less in memory. Requests do
# not differ at all.
CPU_LIMIT: Final = 1.1
MEMORY_LIMIT: Final = 1.05
WRITES_LIMIT: Final = 1.0


CORE: Final = "bench.core.bonny_operator"
PIPELINE: Final = "bench.pipeline.bonny_operator"


def compared(run: Callable[[Bench], Outcome], module: str, limits: Mapping[str, float]) -> Callable[[Bench], Outcome]:
    """A workload of another suite, with ours of this tree and of the baseline; `limits` of the ratios are by metric."""
    goals = [Goal(metric=metric, limit=limit, against=BASELINE) for metric, limit in limits.items()]

    def beside_the_baseline(bench: Bench) -> Outcome:
        return replace(run(replace(bench, contestants=[bonny(module), baseline(module)])), goals=goals)

    return beside_the_baseline


EVENTS: Final = compared(core.events, CORE, {core.OF_SERVER: CPU_LIMIT})
SYNC: Final = compared(core.sync, CORE, {core.CPU: CPU_LIMIT, core.RESIDENT: MEMORY_LIMIT})
START: Final = compared(core.start, CORE, {core.FIRST_CPU: CPU_LIMIT})
CREATE: Final = compared(
    pipeline.create,
    PIPELINE,
    {core.OF_SERVER: CPU_LIMIT, pipeline.RESIDENT: MEMORY_LIMIT, pipeline.WRITES: WRITES_LIMIT},
)

SUITE: Final = Suite(
    name="check",
    about=(__doc__ or "").splitlines()[0],
    makers={},
    workloads={
        "events": Workload(EVENTS, 10_000, with_peers=False),
        "sync": Workload(SYNC, 10_000, with_peers=False),
        "start": Workload(START, 3, rounds=9, with_peers=False),
        "create": Workload(CREATE, 2_000, with_peers=False),
    },
    strict=True,
)


def main() -> int:
    """Look for the commit first, then compare; returns the exit code."""
    try:
        print(f"the baseline is {commit()}", flush=True)
        return SUITE.main()
    except UsageError as error:
        print(error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
