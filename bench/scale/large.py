"""Large: one process with up to 100,000 objects. The workload `scaling` of `bench.core`, with goals of its own."""

from __future__ import annotations

from dataclasses import replace

from bench.core.workloads import CPU, RESIDENT, WALL, scaling
from bench.harness.report import Goal, Outcome
from bench.harness.rounds import Bench

__all__ = ["large"]


def large(bench: Bench) -> Outcome:
    """Memory and first sync with all objects, and how the time grows with their number."""
    goals = (
        Goal(metric=f"{RESIDENT} at {bench.objects:,}", limit=240.0),
        Goal(metric=f"{WALL} at {bench.objects:,}", limit=6.0),
        Goal(metric=f"{CPU} at {bench.objects:,}", limit=6.0),
        Goal(metric=f"exponent of {WALL}", limit=1.05),
        Goal(metric=f"exponent of {CPU}", limit=1.05),
    )
    return replace(scaling(bench), workload="large", goals=goals)
