"""The watch and queue core in figures, beside kopf and controller-runtime, on a real API server of its own.

    make bench-core                                          everything; about half an hour
    python -m bench.core --quick                             does it work? a few hundred objects, one round
    python -m bench.core --workload events --rounds 3        one workload
    python -m bench.core --workload sync --profile           where our CPU goes; nothing is compared

events    one update of each object, the handler does nothing          sync       a start with many objects
memory    what each further object takes                               restart    an operator comes back; children
scaling   how a start grows with the number of objects

Prints medians with [smallest..largest], the ratios, and whether each goal is met; `.bench/` gets all figures as JSON.
A missed goal is no error; the exit code is not 0 when a contestant did not see all objects.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "runtime")]

from bench.core import report, restart, sampling, workloads  # noqa: E402
from bench.core.contestants import BONNY, NAMES, Contestant, prepare  # noqa: E402
from bonny.sandbox import Sandbox  # noqa: E402
from bonny.sandbox.guard import Guard  # noqa: E402


class Workload(NamedTuple):
    """What is run, with how many objects by default, and whether the peers take part."""

    run: Callable[[workloads.Bench], report.Outcome]
    objects: int
    with_peers: bool


WORKLOADS: Final = {
    "events": Workload(workloads.events, 10_000, True),
    "sync": Workload(workloads.sync, 10_000, True),
    "memory": Workload(workloads.memory, 10_000, False),
    "restart": Workload(restart.restart, 5_000, False),
    "scaling": Workload(workloads.scaling, 50_000, False),
}
PROFILABLE: Final = ("events", "sync")
ROUNDS: Final = 5
REST_SECONDS: Final = 10.0
QUICK_OBJECTS: Final = 300
QUICK_REST_SECONDS: Final = 1.0


def main(words: Sequence[str] | None = None) -> int:
    """Carry out the command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench.core", description=__doc__.splitlines()[0])
    parser.add_argument("--workload", action="append", choices=WORKLOADS, help="may be given again; default: all")
    parser.add_argument("--contestant", action="append", choices=NAMES, help="may be given again; default: all")
    parser.add_argument("--objects", type=int, help="the largest number of objects; memory takes five times as many")
    parser.add_argument("--rounds", type=int, help=f"default {ROUNDS}")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_OBJECTS} objects, one round, little rest")
    parser.add_argument("--profile", action="store_true", help=f"of ours alone, in {' and '.join(PROFILABLE)}")
    given = parser.parse_args(words)
    if given.profile:
        return profile(given)
    names = given.workload or list(WORKLOADS)
    contestants = prepare(given.contestant or NAMES) if any(WORKLOADS[name].with_peers for name in names) else []
    machine = {
        "processors": os.cpu_count(),
        "load": os.getloadavg(),
        "system": platform.platform(),
        "python": platform.python_version(),
    }
    outcomes = []
    for name in names:
        outcome = run(name, given, contestants)
        print(f"\n{report.table(outcome)}", flush=True)
        outcomes.append(outcome)
    file = ROOT / ".bench" / f"core-{time.strftime('%Y%m%d-%H%M%S')}.json"
    report.saved(outcomes, machine, file)
    print(f"\nall figures: {file.relative_to(ROOT)}")
    return 0


def profile(given: argparse.Namespace) -> int:
    """Run ours once under a profiler and print where its time goes."""
    for name in given.workload or PROFILABLE:
        if name not in PROFILABLE:
            print(f"--profile takes --workload {' or '.join(PROFILABLE)}, not {name}", file=sys.stderr)
            return 2
        given.rounds = 1
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "profile"
            outcome = run(name, given, prepare([BONNY]), profile=file)
            print(f"\n{name} of {outcome.objects:,} objects\n{sampling.shown(file, objects=outcome.objects)}")
    return 0


def run(
    name: str, given: argparse.Namespace, contestants: Sequence[Contestant], *, profile: Path | None = None
) -> report.Outcome:
    """Run one workload on an API server of its own."""
    workload = WORKLOADS[name]
    folder = Path(tempfile.gettempdir()).resolve() / f"bonny-bench-{os.getpid()}"
    with Sandbox(progress=print) as sandbox, Guard(folder) as guard:
        bench = workloads.Bench(
            guard=guard,
            sandbox=sandbox,
            contestants=contestants,
            objects=given.objects or (QUICK_OBJECTS if given.quick else workload.objects),
            rounds=given.rounds or (1 if given.quick else ROUNDS),
            rest=QUICK_REST_SECONDS if given.quick else REST_SECONDS,
            profile=profile,
        )
        return workload.run(bench)


if __name__ == "__main__":
    sys.exit(main())
