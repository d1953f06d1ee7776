"""The few questions that everybody asks of an object."""

from __future__ import annotations

from typing import Any

import pytest

from bonny.resource import OWNER_UID, has_all_of, identify, key_of, owners_of


def test_owners_are_found_by_reference_and_by_label() -> None:
    references = [{"uid": "a"}, {"uid": "b"}]

    assert owners_of({"metadata": {}}) == set()
    assert owners_of({"metadata": {"labels": None, "ownerReferences": None}}) == set()
    assert owners_of({"metadata": {"labels": {OWNER_UID: "c"}, "ownerReferences": references}}) == {"a", "b", "c"}


@pytest.mark.parametrize(
    ("live", "wanted", "expected"),
    [
        ({"a": 1, "b": 2}, {"a": 1}, True),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1}}, True),
        ({"a": {"b": 1}}, {"a": {"b": 2}}, False),
        ({"a": [{"b": 1, "c": 2}]}, {"a": [{"b": 1}]}, True),
        ({"a": [{"b": 1}, {"b": 2}]}, {"a": [{"b": 1}]}, False),
        ({"a": [2, 1]}, {"a": [1, 2]}, False),
        ({}, {"a": None}, True),
        ({"a": 1}, {"a": None}, True),
        ({}, {"a": {}, "b": []}, True),
        ({}, {"a": ""}, False),
        ({}, {"a": {"b": None}}, False),
        ({"a": "1"}, {"a": 1}, False),
        ({"a": 1}, {"a": {"b": 1}}, False),
        ({"a": {"b": 1}}, {"a": 1}, False),
        ({}, {"metadata": {"name": "x"}}, False),
    ],
)
def test_an_object_has_all_of_another_whatever_the_server_added(live: Any, wanted: Any, expected: bool) -> None:
    assert has_all_of(live, wanted) is expected


@pytest.mark.parametrize("name", ["a\n", "a\x1b[2J", "a\u2028b", "a\u202eb", "\udcff"])
def test_a_name_in_a_text_is_printable_and_in_one_line(name: str) -> None:
    """Regression: a line break in a name that a user chose split the line of the log and the message of a condition."""
    resource = {"kind": f"Kind{name}", "metadata": {"name": name, "namespace": name}}
    for text in (identify(resource), str(key_of(resource)), f"{key_of(resource)}"):
        assert text.isprintable()
