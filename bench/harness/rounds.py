"""Rounds: in each of them every contestant runs once, alone, on the API server that the others use, too."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bonny_dev.sandbox import Sandbox
from bonny_dev.sandbox.guard import Guard

from .contestants import Contestant
from .report import Figures, Round
from .run import Run

__all__ = ["Bench", "interleaved"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """What a workload is run with."""

    guard: Guard
    sandbox: Sandbox
    contestants: Sequence[Contestant]
    """Those of the workloads with peers; the others are about ours alone."""

    objects: int
    rounds: int
    sizes: Mapping[str, int] = field(default_factory=dict)
    """What else was chosen, by the names that the suite gives them."""

    quick: bool = False
    """Whether the figures do not matter: waits may be short."""

    profile: Path | None = None
    """A file for ours to leave a profile in."""

    def start(self, contestant: Contestant, *, objects: int, settings: Mapping[str, str] | None = None) -> Run:
        return Run(contestant, self.guard, self.sandbox, objects=objects, settings=settings, profile=self.profile)


def interleaved(bench: Bench, measured: Callable[[Contestant], Figures]) -> list[Round]:
    """Let every contestant have its turn in every round, each round with another first one."""
    rounds: list[Round] = []
    for number in range(bench.rounds):
        at = number % len(bench.contestants)
        order = [*bench.contestants[at:], *bench.contestants[:at]]
        rounds.append({contestant.name: measured(contestant) for contestant in order})
    return rounds
