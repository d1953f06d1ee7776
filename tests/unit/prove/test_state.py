"""State: how the states of two lives are compared, with plain values."""

from __future__ import annotations

from typing import Any

import pytest

from bonny_dev.prove.state import State, contrasts, differences, fields_of, learned

CHILD = {"kind": "ConfigMap", "metadata": {"name": "desk", "uid": "u"}, "data": {"size": "1", "color": "red"}}


def state(**objects: dict[str, Any]) -> State:
    return {f"ConfigMap {name}": fields for name, fields in objects.items()}


@pytest.mark.parametrize(
    ("found", "line"),
    [
        (state(), "- ConfigMap desk is missing"),
        (state(desk={"size": 1}, lamp={}), "+ ConfigMap lamp should not be there"),
        (state(desk={"size": 2}), "~ ConfigMap desk: size is 2, should be 1"),
        (state(desk={}), "~ ConfigMap desk: size is missing, should be 1"),
        (state(desk={"size": 1, "color": None}), "~ ConfigMap desk: color is null, should not be there"),
        (state(desk={"size": True}), "~ ConfigMap desk: size is true, should be 1"),
        (state(desk={"size": "missing"}), '~ ConfigMap desk: size is "missing", should be 1'),
    ],
    ids=["object missing", "object too many", "other value", "field missing", "field too many", "type", "odd text"],
)
def test_each_difference_is_one_line(found: State, line: str) -> None:
    assert differences(found, state(desk={"size": 1})) == [line]


def test_equal_states_have_no_difference_and_no_contrast() -> None:
    one, other = (state(desk={"size": 1, "list": []}) for _ in range(2))

    assert differences(one, other) == []
    assert contrasts(one, other) == []


def test_a_contrast_tells_which_of_both_ways_leaves_what() -> None:
    changed, created = state(desk={"size": 1, "color": "red"}, old={}), state(desk={"size": 2}, new={})

    assert contrasts(changed, created) == [
        '~ ConfigMap desk: color is "red" after the change, missing after the creation',
        "~ ConfigMap desk: size is 1 after the change, 2 after the creation",
        "+ ConfigMap new is only there after the creation with this spec",
        "- ConfigMap old is only there after the change to this spec",
    ]


def test_uids_versions_and_times_are_the_same_in_each_life_and_values_are_not() -> None:
    def seen(uid: str, version: str, size: int) -> dict[str, Any]:
        metadata = {"name": "w", "uid": uid, "resourceVersion": version, "creationTimestamp": "2026-01-01T00:00:00Z"}
        owner = {"uid": uid, "at": f"2026-01-0{version}T00:00:00Z"}
        return fields_of({"metadata": metadata, "owner": owner, "size": size}, words={uid: "(UID of w)"})

    one = seen("11111111-1111-1111-1111-111111111111", "1", 3)
    assert one == seen("22222222-2222-2222-2222-222222222222", "2", 3)
    assert one != seen("11111111-1111-1111-1111-111111111111", "1", 4)


def test_items_of_a_list_that_share_a_name_do_not_hide_each_other() -> None:
    """Regression: the last one stood for all."""

    def rules(first: int) -> dict[str, Any]:
        items = [{"type": "Allow", "port": first}, {"type": "Allow", "port": 80}]
        return fields_of({"metadata": {}, "rules": items}, words={})

    assert rules(1) != rules(2)
    assert [rules(1)[f"rules[{number}].port"] for number in range(2)] == [1, 80]


def test_conditions_are_compared_by_type_in_whatever_order() -> None:
    ready, seen = {"type": "Ready", "status": "True"}, {"type": "Seen", "status": "False"}
    one, other = (
        fields_of({"metadata": {}, "conditions": conditions}, words={}) for conditions in ([ready, seen], [seen, ready])
    )

    assert one == other


def test_what_differs_between_two_lives_without_a_fault_is_no_difference_in_a_third_one() -> None:
    def life(password: str, name: str, size: int = 1) -> State:
        return state(desk={"password": password, "size": size}, **{name: {"metadata.name": name, "of": "desk"}})

    nature = learned([[life("a", "job-x")], [life("b", "job-y")]])

    def told(found: State) -> list[str]:
        return differences(nature.without(found), nature.without(life("a", "job-x")))

    assert told(life("c", "job-z")) == []
    assert told(life("c", "job-z", size=2)) == ["~ ConfigMap desk: size is 2, should be 1"]
    twice = life("c", "job-z") | life("c", "job-w")
    assert told(twice) == ["+ ConfigMap with a generated name, number 2 should not be there"]
