"""The bench's report: what a ratio, a verdict and an exponent are; no contestant is started."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from bench.harness.report import Goal, Outcome, exponent, medians, on_both_loops, saved, table

CPU = "CPU us/event"
HALF = Goal(metric=CPU, limit=0.5, against="kopf")
ROUNDS = (
    {"bonny": {CPU: 100.0}, "kopf": {CPU: 400.0}},
    # A busy round: both are slow.
    {"bonny": {CPU: 300.0}, "kopf": {CPU: 900.0}},
    {"bonny": {CPU: 100.0}, "kopf": {CPU: 110.0}},
)


def outcome(*goals: Goal, rounds: tuple[dict[str, dict[str, float]], ...] = ROUNDS) -> Outcome:
    return Outcome("events", 1_000, rounds, goals)


def test_a_ratio_is_taken_within_a_round_and_its_median_decides() -> None:
    (verdict,) = outcome(HALF).verdicts

    assert verdict.values == pytest.approx([0.25, 1 / 3, 100 / 110])
    assert verdict.text == "met"


def test_a_goal_whose_median_is_above_its_limit_is_missed() -> None:
    (verdict,) = outcome(Goal(metric=CPU, limit=99.0)).verdicts

    assert (verdict.values, verdict.text) == ([100.0, 300.0, 100.0], "missed")


def test_a_goal_of_at_least_so_much_is_missed_below_it() -> None:
    enough, more = outcome(
        Goal(metric=CPU, limit=0.3, against="kopf", at_least=True),
        Goal(metric=CPU, limit=101.0, at_least=True),
    ).verdicts

    assert (str(enough.goal), enough.text) == ("CPU us/event >= 0.3 of kopf", "met")
    assert (str(more.goal), more.text) == ("CPU us/event >= 101", "missed")


def test_an_outcome_is_missed_when_one_of_its_goals_is() -> None:
    assert outcome(HALF, Goal(metric=CPU, limit=99.0)).missed
    assert not outcome(HALF, Goal(metric="not measured", limit=0.0)).missed


def test_a_goal_against_a_contestant_that_took_no_part_is_not_measured() -> None:
    (verdict,) = outcome(Goal(metric=CPU, limit=0.7, against="controller-runtime")).verdicts

    assert verdict.text == "not measured"


def test_a_goal_of_another_variant_of_ours_is_judged_by_its_own_values() -> None:
    rounds = ({"bonny": {CPU: 100.0}, "bonny-uvloop": {CPU: 50.0}, "kopf": {CPU: 200.0}},)
    stock, uvloop = outcome(*on_both_loops(CPU, stock=0.6, uvloop=0.2, against="kopf"), rounds=rounds).verdicts

    assert (str(stock.goal), stock.values, stock.text) == ("CPU us/event <= 0.6 of kopf", [0.5], "met")
    assert (str(uvloop.goal), uvloop.values) == ("bonny-uvloop: CPU us/event <= 0.2 of kopf", [0.25])
    assert uvloop.text == "missed"


def test_all_goals_are_met_only_if_each_was_measured() -> None:
    met, not_measured = Goal(metric=CPU, limit=300.0), Goal(metric="not measured", limit=0.0)

    assert outcome(met).met
    assert not outcome(met, not_measured).met


def test_a_figure_of_all_rounds_together_is_judged_as_it_is() -> None:
    goal = Goal(metric="exponent", limit=1.1)
    (verdict,) = Outcome("scaling", 1_000, ROUNDS, (goal,), {"exponent": 1.2}).verdicts

    assert (verdict.values, verdict.text) == ([1.2], "missed")


@pytest.mark.parametrize("power", [1.0, 2.0])
def test_the_exponent_is_that_of_the_cost_above_its_fixed_part(power: float) -> None:
    costs = {objects: 0.5 + 1e-3 * objects**power for objects in (1_000, 5_000, 20_000)}

    assert exponent(costs, fixed=0.5) == pytest.approx(power)


def test_what_hardly_stands_out_from_the_fixed_part_has_no_say_in_the_exponent() -> None:
    costs = {1_000: 0.7, 5_000: 5.5, 20_000: 20.5}

    assert exponent(costs, fixed=0.5) == pytest.approx(1.0)


def test_there_is_no_exponent_when_nothing_grows() -> None:
    assert exponent({1_000: 0.4, 5_000: 0.5, 20_000: 0.6}, fixed=0.5) is None


def test_the_table_shows_each_contestant_with_its_median_and_its_spread() -> None:
    lines = table(outcome(HALF)).splitlines()

    assert lines[0].split() == ["events:", "1,000", "objects,", "3", "rounds", "bonny", "kopf"]
    assert lines[1].split() == ["CPU", "us/event", "100", "[100..300]", "400", "[110..900]"]
    assert lines[2].endswith("0.33 [0.25..0.91] met")


def test_a_contestant_without_its_compiler_has_an_empty_column_and_a_sentence_says_why() -> None:
    sentence = "kube-rs did not take part: cargo is not on PATH"
    lines = table(replace(outcome(), absent={"kube-rs": sentence})).splitlines()

    assert lines[0].split()[-1] == "kube-rs"
    assert lines[1].split()[-1] == "-"
    assert lines[-1] == sentence


def test_medians_are_by_contestant_and_measurement() -> None:
    rounds = [{"bonny": {CPU: 1.0}}, {"bonny": {CPU: 5.0, "RSS MB": 60.0}, "kopf": {CPU: 9.0}}, {"bonny": {CPU: 2.0}}]

    assert medians(rounds) == {"bonny": {CPU: 2.0, "RSS MB": 60.0}, "kopf": {CPU: 9.0}}


def test_the_file_has_the_figures_of_every_round(tmp_path: Path) -> None:
    saved([outcome(HALF)], {"processors": 2}, tmp_path / "new" / "core.json")

    (workload,) = json.loads((tmp_path / "new" / "core.json").read_text("utf-8"))["workloads"]
    assert workload["rounds"] == list(ROUNDS)
    assert workload["goals"][0]["verdict"] == "met"
