"""Pairwise: a few rows in which every two values of different options meet.

You need it to test combinations of options without testing all of them: most faults need two options at most.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations, product

Pair = frozenset[tuple[str, str]]


def pairs(row: Mapping[str, str]) -> set[Pair]:
    """Every two settings that meet in `row`."""
    return {frozenset(two) for two in combinations(row.items(), 2)}


def rows(options: Mapping[str, Sequence[str]]) -> list[dict[str, str]]:
    """Rows that cover all pairs: each time the one that covers most of those that are left. The same every time."""
    every = [dict(zip(options, values, strict=True)) for values in product(*options.values())]
    left = set().union(*map(pairs, every))
    chosen: list[dict[str, str]] = []
    while left:
        best = max(every, key=lambda row: len(pairs(row) & left))
        chosen.append(best)
        left -= pairs(best)
    return chosen
