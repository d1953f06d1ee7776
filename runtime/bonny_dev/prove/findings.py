"""Findings: the defects that a run of `prove` found, as sentences."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from .causes import Cause, usual_cause
from .plans import Fault, Plan

# A wrong state can differ in thousands of lines.
DIFF_LINES: Final = 20


@dataclass(frozen=True, slots=True)
class Finding:
    """One life that went wrong."""

    plan: Plan
    problem: str
    diff: Sequence[str] = ()
    log: str = ""
    cause: Cause | None = None
    """Default: the usual one of its sort."""

    smallest: str = ""
    """The smallest sample that shows it, as YAML; empty if none smaller than the file was found."""

    @property
    def classes(self) -> str:
        """Its sort, and its root cause."""
        return f"{self.plan.sort}: {self.cause or usual_cause(self.plan.sort)}"

    @property
    def shown(self) -> list[str]:
        """The first lines of the difference, and how many there are beside them."""
        more = len(self.diff) - DIFF_LINES
        return [*self.diff[:DIFF_LINES], *([f"... and {more} more"] if more > 0 else [])]

    @property
    def sentence(self) -> str:
        """The fault and its consequence, in one sentence."""
        told = f"{self.plan.told()}: {self.problem}"
        return told + (f": {self.diff[0].lstrip('-+~ ')}" if self.diff else "")


@dataclass(slots=True)
class Report:
    """The outcome of a run."""

    operator: str
    seed: int
    findings: list[Finding] = field(default_factory=list)
    passed: list[Plan] = field(default_factory=list)
    missed: list[Plan] = field(default_factory=list)
    """Plans whose request was not sent in their life: the operator may write one time more, or less."""

    left_out: int = 0
    """Plans for which there was no time."""

    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0
    interrupted: bool = False

    def groups(self) -> list[list[Finding]]:
        """Findings with the same consequence, and the most frequent first: they probably have the same cause."""
        groups: dict[object, list[Finding]] = {}
        for each in self.findings:
            groups.setdefault((each.plan.sample, each.problem if not each.diff else tuple(each.diff)), []).append(each)
        return sorted(groups.values(), key=len, reverse=True)

    def command(self, finding: Finding) -> str:
        """The command line that repeats a life, or all of them, for what only all of them show."""
        whole = finding.plan.fault is Fault.PERMISSIONS
        only = "" if whole else f"--only {shlex.quote(finding.plan.name)} "
        return f"invoke prove {only}--seed {self.seed}"

    def lines(self) -> Iterable[str]:
        """The report for a terminal."""
        for number, group in enumerate(self.groups(), start=1):
            first = group[0]
            yield ""
            yield f"{number}. [{first.classes}] {first.sentence}"
            yield from (f"     {line}" for line in first.shown)
            if first.smallest:
                yield f"   {self.smallest_told(first)}:"
                yield from (f"     {line}" for line in first.smallest.splitlines())
            yield f"   again: {self.command(first)}"
            if len(group) > 1:
                names = ", ".join(each.plan.name for each in group[1:3])
                more = f", and {len(group) - 3} more" if len(group) > 3 else ""
                yield f"   the same after {names}{more}"
        yield ""
        yield from (f"note: {note}" for note in self.untried())
        yield self.summary()

    def untried(self) -> Iterable[str]:
        """Notes, and the number of lives that show nothing."""
        yield from self.notes
        if self.missed:
            yield f"lives that did not reach their request, so nothing failed in them: {len(self.missed)}"
        if self.left_out:
            why = "the run was interrupted" if self.interrupted else "there was no time; give more --minutes"
            yield f"lives left out: {self.left_out}; {why}"

    def smallest_told(self, finding: Finding) -> str:
        """A few words before the smallest sample of a finding."""
        return "this object shows it" if finding.plan.fault is Fault.FUZZ else "the smallest sample found that shows it"

    def summary(self) -> str:
        """The last line."""
        count = len(self.passed) + len(self.findings)
        lives = f"{count} {'life' if count == 1 else 'lives'} in {self.seconds:.0f} s"
        if not self.findings and self.interrupted:
            return f"interrupted: nothing found in {lives}"
        if not self.findings:
            return f"nothing found: {self.operator} survived {lives}"
        kinds = len(self.groups())
        return f"{kinds} {'finding' if kinds == 1 else 'findings'} in {len(self.findings)} of {lives}"
