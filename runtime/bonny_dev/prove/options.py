"""Options: the plans that a run tries, and its limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Which plans to run, in which order, and for how many minutes at most (0: no limit)."""

    minutes: float = 0
    seed: int = 0
    only: Sequence[str] = ()
    """Names of plans; `*` stands for any text. Empty: all of a usual run."""

    thorough: bool = False
    """Also the plans that a usual run leaves out: of some faults it has only a few."""

    lives: int = 0
    """Lives at a time; 0: two for each core and one more, since a life mostly waits."""

    shrink: float = 0
    """Seconds to look for a smaller sample that shows a finding, for each (default 0: do not look)."""

    fuzz: int = 4
    """Objects that are made from the schema, for each sample (default 4)."""

    samples: Mapping[str, str] = field(default_factory=dict)
    """Samples as YAML, by name, instead of those in samples/."""

    forms: Mapping[str, str] = field(default_factory=dict)
    """Objects as YAML, by the name of the sample, instead of those made from the schema."""
