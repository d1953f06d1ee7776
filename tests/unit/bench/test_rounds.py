"""Rounds: who has a turn when."""

from __future__ import annotations

from typing import Any

from bench.harness.contestants import Contestant
from bench.harness.rounds import Bench, interleaved


def test_every_contestant_has_its_turn_in_every_round_and_none_is_always_the_first() -> None:
    turns: list[str] = []
    nowhere: Any = None
    bench = Bench(
        guard=nowhere,
        sandbox=nowhere,
        contestants=[Contestant(name, ()) for name in ("bonny", "kopf", "controller-runtime")],
        objects=1,
        rounds=4,
    )

    def measured(contestant: Contestant) -> dict[str, float]:
        turns.append(contestant.name)
        return {"turn": float(len(turns))}

    rounds = interleaved(bench, measured)

    assert turns[::3] == ["bonny", "kopf", "controller-runtime", "bonny"]
    assert all(len(figures) == 3 for figures in rounds)
    assert rounds[1] == {"kopf": {"turn": 4.0}, "controller-runtime": {"turn": 5.0}, "bonny": {"turn": 6.0}}
