"""Values: a few objects have all choices of each field, and the same ones for the same seed."""

from __future__ import annotations

import re
from typing import Any

import pytest

from bonny_dev.prove.values import ABSENT, FEW, Values

SAMPLE = {"colour": "red", "note": "beside the window"}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["colour"],
    "properties": {
        "colour": {"type": "string", "enum": ["red", "green", "blue"]},
        "blink": {"type": "string", "enum": ["off", "slow", "fast"]},
        "bright": {"type": "boolean"},
        "shade": {"type": "object", "required": ["width"], "properties": {"width": {"type": "integer", "minimum": 3}}},
        "note": {"type": "string"},
    },
}


def made(schema: dict[str, Any], *, seed: str = "0", count: int = 4, sample: Any = ABSENT) -> list[Any]:
    return [Values(seed, number).of(schema, sample) for number in range(1, count + 1)]


@pytest.mark.parametrize("seed", ["0", "1", "2"])
def test_four_objects_have_each_value_of_an_enum_and_lack_each_optional_field_once(seed: str) -> None:
    objects = made(SCHEMA, seed=seed, sample=SAMPLE)

    assert {each["colour"] for each in objects} == {"red", "green", "blue"}
    assert {each.get("blink") for each in objects} == {"off", "slow", "fast", None}
    assert {each.get("bright") for each in objects} == {True, False, None}
    assert {"shade" in each for each in objects} == {True, False}
    assert all(each["shade"]["width"] >= 3 for each in objects if "shade" in each)


def test_the_same_seed_makes_the_same_objects() -> None:
    assert made(SCHEMA, sample=SAMPLE) == made(SCHEMA, sample=SAMPLE)
    assert made(SCHEMA, seed="1", sample=SAMPLE) != made(SCHEMA, sample=SAMPLE)


def test_a_later_try_takes_more_of_the_sample() -> None:
    kept = [Values("0", number, keep=0.99).of(SCHEMA, SAMPLE) for number in range(20)]

    assert sum(each.get("note") == SAMPLE["note"] and each["colour"] == "red" for each in kept) > 15


@pytest.mark.parametrize(
    "rules",
    [
        {"minimum": 2, "maximum": 3},
        {"minimum": 10, "maximum": 1000, "multipleOf": 10},
        {"maximum": 3},
        {},
    ],
)
def test_numbers_stay_in_their_range_and_small(rules: dict[str, int]) -> None:
    for value in made({"type": "integer", **rules}, count=6):
        least, step = rules.get("minimum", 0), rules.get("multipleOf", 1)
        assert least <= value <= min(rules.get("maximum", least + FEW * step), least + FEW * step)
        assert value % step == 0


@pytest.mark.parametrize("pattern", [r"^\d+[smh]$", r"^[a-z]([-a-z0-9]*[a-z0-9])?$", r"^\d+(Ki|Mi|Gi)$"])
def test_texts_fit_their_pattern(pattern: str) -> None:
    values = made({"type": "string", "pattern": pattern})

    assert all(re.search(pattern, value) for value in values)


def test_a_text_with_an_unusual_pattern_is_that_of_the_sample_or_left_out() -> None:
    schema = {"type": "string", "pattern": "^x{40}$"}

    assert made(schema, count=1) == [ABSENT]
    assert made(schema, count=1, sample="x" * 40) == ["x" * 40]


def test_items_of_a_list_with_keys_have_different_keys() -> None:
    item = {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}
    schema = {"type": "array", "minItems": 1, "maxItems": 9, "items": item, "x-kubernetes-list-map-keys": ["name"]}

    for value in made(schema, sample=[{"name": "one"}, {"name": "two"}], count=6):
        names = [each["name"] for each in value]
        assert len(names) == len(set(names)) >= 1
