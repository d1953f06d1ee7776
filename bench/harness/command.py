"""Command: the command line of a bench: which workloads, with whom, how many objects, how often.

A missed goal is not an error, unless the suite is strict, but ours is run once more under a profiler. The exit code is
not 0 when a contestant did not do its work.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, NamedTuple

from bonny_dev.sandbox import Sandbox
from bonny_dev.sandbox.guard import Guard

from . import plot, report, sampling
from .contestants import BONNY, ROOT, Makers, Prepared, prepare
from .rounds import Bench

__all__ = ["Suite", "Workload"]

ROUNDS: Final = 5
QUICK_OBJECTS: Final = 300


class Workload(NamedTuple):
    """What is run, and with how many objects and rounds by default."""

    run: Callable[[Bench], report.Outcome]
    objects: int
    rounds: int = ROUNDS
    with_peers: bool = True
    profilable: bool = False
    """Whether a profile of ours tells where its figures come from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """A bench."""

    name: str
    """That of its package below `bench`."""

    about: str
    """One sentence."""

    makers: Makers
    workloads: Mapping[str, Workload]
    sizes: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    """What else may be chosen: default and help, by the name of the option."""

    panels: Sequence[plot.Panel] = ()
    """The measurements that pictures show."""

    strict: bool = False
    """Whether the exit code is 1 unless every goal is met."""

    def main(self, words: Sequence[str] | None = None) -> int:
        """Carry out the command line; returns the exit code."""
        given = self._parser().parse_args(words)
        if given.profile:
            return self._profile(given)
        names = given.workload or list(self.workloads)
        peers = any(self.workloads[name].with_peers for name in names)
        prepared = prepare(self.makers, given.contestant or ()) if peers else Prepared([], {})
        machine = {
            "processors": os.cpu_count(),
            "load": os.getloadavg(),
            "system": platform.platform(),
            "python": platform.python_version(),
        }
        file = ROOT / ".bench" / f"{self.name}-{time.strftime('%Y%m%d-%H%M%S')}.json"
        outcomes: list[report.Outcome] = []
        for name in names:
            outcomes.append(self._run(name, given, prepared))
            print(f"\n{report.table(outcomes[-1])}", flush=True)
            # After each: what comes later may fail.
            report.saved(outcomes, machine, file)
            if outcomes[-1].missed and self.workloads[name].profilable:
                beside = file.with_suffix(f".{name}.profile.txt")
                beside.write_text(self._profiled(name, given), "utf-8")
                print(f"a goal is missed; where the time of ours goes: {beside.relative_to(ROOT)}", flush=True)
        print(f"\nall results: {file.relative_to(ROOT)}")
        # The titles name the default numbers of objects.
        if not (given.quick or given.objects):
            medians = {outcome.workload: report.medians(outcome.rounds) for outcome in outcomes}
            for picture in plot.write(file.with_suffix(""), self.about, self.panels, medians):
                print(f"as a picture: {picture.relative_to(ROOT)}")
        return int(self.strict and not all(outcome.met for outcome in outcomes))

    def _parser(self) -> argparse.ArgumentParser:
        parser = argparse.ArgumentParser(prog=f"python -m bench.{self.name}", description=self.about)
        parser.add_argument("--workload", action="append", choices=self.workloads, help="may be given again")
        parser.set_defaults(contestant=None, profile=False)
        if self.makers:
            parser.add_argument("--contestant", action="append", choices=self.makers, help="may be given again")
        parser.add_argument("--objects", type=int, help="default: as each workload says")
        for name, (default, told) in self.sizes.items():
            parser.add_argument(f"--{name}", type=int, default=default, help=f"{told}; default: %(default)s")
        parser.add_argument("--rounds", type=int, help="default: as each workload says")
        parser.add_argument("--quick", action="store_true", help=f"{QUICK_OBJECTS} objects, one round, short waits")
        if any(workload.profilable for workload in self.workloads.values()):
            parser.add_argument("--profile", action="store_true", help="of ours alone; nothing is compared")
        return parser

    def _profile(self, given: argparse.Namespace) -> int:
        """Run ours under a profiler and print where its time goes."""
        profilable = [name for name, workload in self.workloads.items() if workload.profilable]
        names = given.workload or profilable
        others = [name for name in names if name not in profilable]
        if others:
            print(f"--profile takes --workload {' or '.join(profilable)}, not {others[0]}", file=sys.stderr)
            return 2
        for name in names:
            print(f"\n{self._profiled(name, given)}", end="", flush=True)
        return 0

    def _profiled(self, name: str, given: argparse.Namespace) -> str:
        """Where the time of ours goes in one round of a workload."""
        once = argparse.Namespace(**{**vars(given), "rounds": 1})
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "profile"
            outcome = self._run(name, once, prepare(self.makers, [BONNY]), profile=file)
            return f"{name} of {outcome.objects:,} objects\n{sampling.shown(file, objects=outcome.objects)}\n"

    def _run(
        self, name: str, given: argparse.Namespace, prepared: Prepared, *, profile: Path | None = None
    ) -> report.Outcome:
        """Run one workload on an API server of its own."""
        workload = self.workloads[name]
        folder = Path(tempfile.gettempdir()).resolve() / f"bonny-bench-{os.getpid()}"
        with Sandbox(progress=print) as sandbox, Guard(folder) as guard:
            bench = Bench(
                guard=guard,
                sandbox=sandbox,
                contestants=prepared.contestants,
                objects=given.objects or (min(QUICK_OBJECTS, workload.objects) if given.quick else workload.objects),
                rounds=given.rounds or (1 if given.quick else workload.rounds),
                sizes={name: getattr(given, name) for name in self.sizes},
                quick=given.quick,
                profile=profile,
            )
            outcome = workload.run(bench)
            return replace(outcome, absent=prepared.absent) if workload.with_peers else outcome
