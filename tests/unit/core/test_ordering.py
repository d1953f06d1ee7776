"""Ordering: every object is above all that it comes after; what cannot be ordered is refused by name."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bonny.core.ordering import ObjectName, levels
from bonny.errors import OptionError
from bonny.resource import Key


def name(of: object) -> ObjectName:
    return ObjectName(("v1", "ConfigMap"), Key("default", str(of)))


A, B, C = map(name, "abc")


@given(st.data())
def test_every_object_is_one_above_the_highest_that_it_comes_after(data: st.DataObject) -> None:
    """Objects come only after those of lower numbers here, so there is no cycle; the order of the mapping is any."""
    count = data.draw(st.integers(1, 12))
    edges = {number: data.draw(st.sets(st.integers(0, number - 1))) if number else set() for number in range(count)}
    shuffled = data.draw(st.permutations(range(count)))
    fixed = {name(each): data.draw(st.integers(-3, 3)) for each in shuffled if not edges[each]}
    after = {name(each): [name(other) for other in edges[each]] for each in shuffled if edges[each]}

    found = levels(fixed, after)

    assert found.keys() == {*fixed, *after}
    assert {each: found[each] for each in fixed} == fixed
    assert all(found[each] == 1 + max(found[other] for other in after[each]) for each in after)


@given(st.integers(1, 6), st.sets(st.integers(0, 5)))
def test_a_cycle_is_refused_by_its_names_however_long_it_is(length: int, outside: set[int]) -> None:
    cycle = {name(each): [name((each + 1) % length)] for each in range(length)}
    others = {name(f"other-{each}"): [name(0)] for each in outside}

    with pytest.raises(OptionError, match="objects cannot come after each other: ") as caught:
        levels({}, {**others, **cycle})

    named = str(caught.value).partition(": ")[2].split(" after ")
    assert len(named) == length + 1
    assert all(
        cycle[name(later.rpartition("/")[2])] == [name(each.rpartition("/")[2])]
        for later, each in itertools.pairwise(named)
    )


def test_what_comes_after_an_object_that_is_not_there_is_refused_with_both_names() -> None:
    sentence = "ConfigMap default/b comes after ConfigMap default/a, which is not registered: register that, too"
    with pytest.raises(OptionError) as caught:
        levels({C: 0}, {B: [A]})
    assert str(caught.value) == sentence
