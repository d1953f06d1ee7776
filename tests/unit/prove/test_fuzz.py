"""Fuzz: how a life of a made object is judged. Lives of real operators are in tests/faults."""

from __future__ import annotations

from typing import Any

import pytest

from bonny_dev.prove.fuzz import judged
from bonny_dev.prove.life import Life, Reference
from bonny_dev.prove.points import Chapter
from bonny_dev.prove.state import Nature
from bonny_dev.prove.variants import Sample

FORM = {"kind": "Lamp", "metadata": {"name": "desk"}}
SAMPLE = Sample("desk", [], [FORM], [FORM], [FORM], [FORM])
MADE = {"ConfigMap desk": {"data.size": "3"}, "Lamp desk": {"status.conditions[Ready].status": "True"}}
USUAL = {"ConfigMap desk": {"data.size": "2"}, "Lamp desk": {"status.conditions[Ready].status": "True"}}
STATES = {
    Chapter.CREATED: MADE,
    Chapter.CHANGED: USUAL,
    Chapter.BACK: MADE,
    Chapter.REDUCED: USUAL,
    Chapter.DELETED: {},
    Chapter.AGAIN: USUAL,
}
REFERENCE = Reference({Chapter.CREATED: USUAL, Chapter.DELETED: {}}, [], Nature(), frozenset())


def life(other: dict[Chapter, Any] | None = None, **more: Any) -> Life:
    return Life(states={**STATES, **(other or {})}, **more)


def test_a_life_that_ends_as_new_objects_do_is_right() -> None:
    assert judged(SAMPLE, [life()], REFERENCE).problem == ""


@pytest.mark.parametrize(
    ("chapter", "state", "who"),
    [
        (Chapter.CHANGED, MADE, "an object that is changed to the sample"),
        (Chapter.BACK, USUAL, "an object that is changed and changed back"),
        (Chapter.REDUCED, MADE, "an object that is changed"),
    ],
)
def test_an_end_other_than_that_of_a_new_object_is_wrong_and_worse_if_ready(
    chapter: Chapter, state: Any, who: str
) -> None:
    found = judged(SAMPLE, [life({chapter: state})], REFERENCE)

    assert found.problem == f"{who} is Ready, and ends otherwise than a new one with the same spec"
    (line,) = found.diff
    assert line.startswith("~ ConfigMap desk: data.size is ")

    waits = {**state, "Lamp desk": {"status.conditions[Ready].status": "False"}}
    problem = judged(SAMPLE, [life({chapter: waits})], REFERENCE).problem
    assert problem == f"{who} ends otherwise than a new one with the same spec"


def test_a_difference_between_two_lives_is_not_wrong() -> None:
    one, other = (
        life({Chapter.BACK: {**MADE, "Secret desk": {"data.key": key}}, Chapter.CREATED: {**MADE, "Secret desk": {}}})
        for key in "ab"
    )

    assert judged(SAMPLE, [one], REFERENCE).problem
    assert judged(SAMPLE, [one, other], REFERENCE).problem == ""


def test_an_object_that_is_left_after_the_deletion_is_wrong() -> None:
    left = life({Chapter.DELETED: {"ConfigMap desk": {}}})

    found = judged(SAMPLE, [left], REFERENCE)

    assert (found.problem, found.diff) == ("something is left after the deletion", ["+ ConfigMap desk"])
    kept = Reference({**REFERENCE.states, Chapter.DELETED: {"ConfigMap other": {}}}, [], Nature(), frozenset())
    assert judged(SAMPLE, [left], kept).problem == ""


def test_a_secret_that_can_be_read_and_a_life_that_broke_are_wrong() -> None:
    assert judged(SAMPLE, [life(shown=["the value a", "the value b"])], REFERENCE).problem == "the value a"
    broken = Life(problem="the reconcile fails each time: KeyError", chapter=Chapter.CHANGED)
    found = judged(SAMPLE, [broken, life()], REFERENCE)
    assert (found.problem, found.chapter) == ("the reconcile fails each time: KeyError", Chapter.CHANGED)
