"""Lost: differences restore what was lost, and leave what the user changed meanwhile."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bonny.api.markers import LIST_KEYS
from bonny.resource import Resource
from bonny.webhooks.lost import Loss, digest, losses, restored

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(-2, 2) | st.sampled_from(("", "a", "1")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.sampled_from("abc"), JSON, max_size=3)
KEYS = st.tuples(st.sampled_from("abc") | st.integers(0, 1))
PORTS: Resource = {"properties": {"ports": {"items": {}, LIST_KEYS: ["name"]}}}


def returned(came_back: Resource, was: Resource, now: Resource, schema: Resource | None = None) -> Resource:
    """`now` with what was lost, which was written to an annotation."""
    written = msgspec.json.encode(tuple(losses(came_back, was, schema or {})))
    return restored(now, msgspec.json.decode(written, type=tuple[Loss, ...]), schema or {})


@given(OBJECTS, OBJECTS)
def test_what_was_lost_is_restored_to_the_byte(came_back: Resource, was: Resource) -> None:
    given, found = came_back, returned(came_back, was, came_back)

    assert msgspec.json.encode(found, order="deterministic") == msgspec.json.encode(was, order="deterministic")
    assert came_back == given


@given(OBJECTS)
def test_nothing_lost_is_nothing_to_carry(content: Resource) -> None:
    assert not list(losses(content, content, {}))


@pytest.mark.parametrize(
    ("came_back", "was", "now", "wanted"),
    [
        ({}, {"a": 1}, {}, {"a": 1}),
        ({}, {"a": 1}, {"a": 2}, {"a": 2}),  # the user set it
        ({"a": 1}, {}, {"a": 1}, {}),
        ({"a": 1}, {}, {"a": 2}, {"a": 2}),
        ({"a": 1}, {"a": True}, {"a": 1}, {"a": True}),
        ({"a": {}}, {"a": {"b": 1}}, {}, {}),  # the user removed what it belongs to
        ({}, {"a": {"b": 1}}, {"a": {}}, {"a": {}}),  # the user set another in place of it
        ({"a": 1}, {"a": {"b": 1}}, {"a": {"c": 2}}, {"a": {"c": 2}}),
        ({"a": {"b": 1}}, {}, {"a": {"b": 2}}, {"a": {"b": 2}}),
        ({"a": {}, "c": 1}, {"a": {"b": 1}, "c": 2}, {"a": {}, "c": 3}, {"a": {"b": 1}, "c": 3}),
        ({"a": [1, 2, 2]}, {"a": [1, 2, "2"]}, {"a": [1, 2, 2]}, {"a": [1, 2, "2"]}),
        ({"a": ["x", "y"]}, {"a": ["x", "Y"]}, {"a": ["z", "y", "x"]}, {"a": ["z", "Y", "x"]}),
        ({"a": ["x", "y"]}, {"a": ["x", "Y"]}, {"a": ["z"]}, {"a": ["z"]}),
        ({"a": ["x"]}, {"a": ["x", "y"]}, {"a": ["x"]}, {"a": ["x", "y"]}),
        ({"a": ["x"]}, {"a": ["x", "y"]}, {"a": ["z"]}, {"a": ["z"]}),
    ],
)
def test_a_value_comes_back_unless_its_field_was_changed(
    came_back: Resource, was: Resource, now: Resource, wanted: Resource
) -> None:
    assert returned(came_back, was, now) == wanted


def test_items_with_keys_get_their_fields_back_wherever_they_are_now() -> None:
    came_back = {"ports": [{"name": "a", "number": 1}, {"name": "b", "number": 2}]}
    was = {"ports": [{"name": "a", "number": 1, "note": "A"}, {"name": "b", "number": 2, "note": "B"}]}
    now = {"ports": [{"name": "c"}, {"name": "b", "number": 3}]}

    assert returned(came_back, was, now, PORTS) == {"ports": [{"name": "c"}, {"name": "b", "number": 3, "note": "B"}]}


def test_items_that_were_lost_come_back_beside_those_that_the_user_added() -> None:
    a, b, c = ({"name": name} for name in ("a", True, 2.5))

    assert returned({"ports": [a]}, {"ports": [b, a]}, {"ports": [a, c]}, PORTS) == {"ports": [a, c, b]}
    assert returned({"ports": [a, b]}, {"ports": [b, a]}, {"ports": [a, b]}, PORTS) == {"ports": [b, a]}
    assert returned({"ports": [a]}, {"ports": [b, a]}, {}, PORTS) == {}
    assert returned({}, {"ports": [b, a]}, {"ports": [c]}, PORTS) == {"ports": [c]}


@given(came_back=OBJECTS, path=st.lists(st.sampled_from("abc") | KEYS, min_size=1, max_size=3), value=JSON)
def test_whatever_is_in_the_annotation_does_no_harm(came_back: Resource, path: list[Any], value: Any) -> None:
    place = tuple(path)
    forged = [
        Loss(place, digest(value), value),
        Loss(place, order=(("a",),)),
        Loss(place, items=((digest(value), value),)),
    ]

    restored(came_back, forged, PORTS)
