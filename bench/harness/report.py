"""Report: figures of several rounds as a table, goals with their verdicts, and a JSON file.

A goal on a ratio is judged within each round, where both contestants met the same machine; what counts is the median
over the rounds.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import linear_regression, median
from typing import Final, TypeAlias

from .contestants import BONNY, BONNY_UVLOOP

__all__ = ["Figures", "Goal", "Outcome", "Round", "Verdict", "exponent", "medians", "number", "on_both_loops", "saved",
           "table"]  # fmt: skip

Figures: TypeAlias = Mapping[str, float]
"""By the name of what was measured, unit included: `CPU us/event`."""

Round: TypeAlias = Mapping[str, Figures]
"""The figures of each contestant in one round, by its name."""

# Two starts with the same few objects differ by a tenth or two: with less than a half the logarithm is that of chance.
STANDS_OUT: Final = 1.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """Our `metric` shall be at most `limit`, or at most `limit` times that of `against`; `at_least`: at least."""

    metric: str
    limit: float
    against: str | None = None
    of: str = BONNY
    """The contestant that shall meet the goal."""

    at_least: bool = False
    """Whether more is better."""

    def __str__(self) -> str:
        who = "" if self.of == BONNY else f"{self.of}: "
        sign = ">=" if self.at_least else "<="
        return f"{who}{self.metric} {sign} {self.limit:g}" + (f" of {self.against}" if self.against else "")


def on_both_loops(metric: str, *, stock: float, uvloop: float, against: str | None = None) -> tuple[Goal, Goal]:
    """A goal of ours on asyncio's own event loop, and one on uvloop."""
    return (
        Goal(metric=metric, limit=stock, against=against),
        Goal(metric=metric, limit=uvloop, against=against, of=BONNY_UVLOOP),
    )


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a goal stands; `values` has the figure or the ratio of each round that has what it takes."""

    goal: Goal
    values: Sequence[float]

    @property
    def text(self) -> str:
        """`met`, `missed`, or `not measured`."""
        if not self.values:
            return "not measured"
        value, limit = median(self.values), self.goal.limit
        return "met" if (value >= limit if self.goal.at_least else value <= limit) else "missed"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a workload gave."""

    workload: str
    objects: int
    rounds: Sequence[Round]
    goals: Sequence[Goal]
    overall: Figures = field(default_factory=dict)
    """Figures of ours that only all rounds together give."""

    absent: Mapping[str, str] = field(default_factory=dict)
    """For each contestant that did not take part, a sentence with the reason."""

    @property
    def verdicts(self) -> list[Verdict]:
        """One for each goal."""
        return [Verdict(goal, self._values(goal)) for goal in self.goals]

    @property
    def missed(self) -> bool:
        """Whether a goal is."""
        return any(verdict.text == "missed" for verdict in self.verdicts)

    @property
    def met(self) -> bool:
        """Whether every goal is."""
        return all(verdict.text == "met" for verdict in self.verdicts)

    def _values(self, goal: Goal) -> list[float]:
        if goal.metric in self.overall:
            return [self.overall[goal.metric]]
        values = []
        for figures in self.rounds:
            ours = figures.get(goal.of, {}).get(goal.metric)
            theirs = 1.0 if goal.against is None else figures.get(goal.against, {}).get(goal.metric)
            # Less than a tick of the processor's clock cannot be compared with.
            if ours is not None and theirs:
                values.append(ours / theirs)
        return values


def exponent(costs: Mapping[int, float], *, fixed: float) -> float | None:
    """How a cost grows with the number of objects, once its `fixed` part is taken off: 1 is in proportion, 2 quadratic.

    The slope of a straight line through the logarithms. Costs that hardly stand out from the fixed part are left out;
    with fewer than two others the answer is None.
    """
    telling = {objects: cost - fixed for objects, cost in costs.items() if cost > STANDS_OUT * fixed}
    points = [(math.log(objects), math.log(cost)) for objects, cost in telling.items()]
    if len(points) < 2:
        return None
    return linear_regression([x for x, _ in points], [y for _, y in points]).slope


def table(outcome: Outcome) -> str:
    """The figures as `median [smallest..largest]`, and the verdicts."""
    names = [*dict.fromkeys(name for figures in outcome.rounds for name in figures), *outcome.absent]
    metrics = dict.fromkeys(metric for each in outcome.rounds for figures in each.values() for metric in figures)
    rounds = f"{len(outcome.rounds)} round{'s' if len(outcome.rounds) > 1 else ''}"
    rows = [[f"{outcome.workload}: {outcome.objects:,} objects, {rounds}", *names]]
    for metric in metrics:
        values = [[each[name][metric] for each in outcome.rounds if metric in each.get(name, {})] for name in names]
        rows.append([metric, *map(_spread, values)])
    rows += [[metric, number(value)] for metric, value in outcome.overall.items()]
    rows += [[f"goal: {verdict.goal}", f"{_spread(verdict.values)} {verdict.text}"] for verdict in outcome.verdicts]
    widths = [max(len(row[column]) for row in rows if column < len(row)) for column in range(len(names) + 1)]
    lines = ["  ".join(cell.ljust(widths[at]) for at, cell in enumerate(row)).rstrip() for row in rows]
    return "\n".join([*lines, *outcome.absent.values()])


def medians(rounds: Sequence[Round]) -> dict[str, dict[str, float]]:
    """The median of each measurement of each contestant."""
    values: dict[str, dict[str, list[float]]] = {}
    for each in rounds:
        for name, figures in each.items():
            for metric, value in figures.items():
                values.setdefault(name, {}).setdefault(metric, []).append(value)
    return {name: {metric: median(of) for metric, of in metrics.items()} for name, metrics in values.items()}


def saved(outcomes: Sequence[Outcome], machine: Mapping[str, object], file: Path) -> None:
    """Write everything as JSON: the machine, the figures of every round, the verdicts."""
    workloads = [
        {
            "workload": outcome.workload,
            "objects": outcome.objects,
            "rounds": outcome.rounds,
            "overall": outcome.overall,
            "absent": outcome.absent,
            "goals": [
                {**asdict(verdict.goal), "values": verdict.values, "verdict": verdict.text}
                for verdict in outcome.verdicts
            ],
        }
        for outcome in outcomes
    ]
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps({"machine": machine, "workloads": workloads}, indent=2) + "\n", "utf-8")


def _spread(values: Sequence[float]) -> str:
    if not values:
        return "-"
    if len(values) == 1:
        return number(values[0])
    return f"{number(median(values))} [{number(min(values))}..{number(max(values))}]"


def number(value: float) -> str:
    """As text. Three digits are more than such a measurement is worth."""
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{value:,.{digits}f}"
