"""Changes of a schema: which break stored objects or clients, and which are only shown."""

from __future__ import annotations

from typing import Any

import pytest

from bonny_dev.release.schemas import compare

Schema = dict[str, Any]


def changes(old: Schema, new: Schema) -> list[tuple[str, str, bool]]:
    """Path, text and whether it breaks, of the field `spec.x`."""
    wrapped = ({"type": "object", "properties": {"x": {"type": "string", **each}}} for each in (old, new))
    before, after = wrapped
    found = compare(
        {"type": "object", "properties": {"spec": before}}, {"type": "object", "properties": {"spec": after}}
    )
    return [(each.path, each.text, each.breaks) for each in found]


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ({"type": "integer"}, {"type": "string"}, "was integer and is string: stored values are refused, and so are"),
        ({"type": "number"}, {"type": "integer"}, "was number and is integer"),
        ({"x-kubernetes-int-or-string": True}, {}, "was integer or string and is string"),
        ({"enum": ["a", "b"]}, {"enum": ["a"]}, 'no longer takes "b"'),
        ({}, {"enum": ["a"]}, 'takes only "a": before, it took any value'),
        ({}, {"minLength": 1}, "has minLength 1, which it had not"),
        ({"minLength": 1}, {"minLength": 2}, "has minLength 2, which was 1"),
        ({"maxLength": 9}, {"maxLength": 8}, "has maxLength 8, which was 9"),
        ({"type": "integer"}, {"type": "integer", "maximum": 3}, "has maximum 3, which it had not"),
        ({"pattern": "a"}, {"pattern": "b"}, 'has pattern "b", which was "a"'),
        ({}, {"format": "date-time"}, 'has format "date-time", which it had not'),
        ({"nullable": True}, {}, "may no longer be null"),
        ({}, {"x-kubernetes-validations": [{"rule": "self != ''"}]}, """has the rule "self != ''", which it had not"""),
        (
            {"type": "array", "items": {}, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"]},
            {"type": "array", "items": {}, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["b"]},
            'has list-map-keys ["b"], which was ["a"]: applies merge it in another way',
        ),
    ],
)
def test_what_is_narrower_breaks(old: Schema, new: Schema, text: str) -> None:
    ((path, found, breaks),) = changes(old, new)

    assert (path, breaks) == ("spec.x", True)
    assert found.startswith(text)


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ({"enum": ["a"]}, {"enum": ["a", "b"]}, 'also takes "b"'),
        (
            {"default": "a"},
            {"default": "b"},
            'has the default "b", which was "a": new objects get it, stored ones keep',
        ),
        ({}, {"default": "b"}, 'has the default "b", which was none'),
    ],
)
def test_what_breaks_nothing_is_shown(old: Schema, new: Schema, text: str) -> None:
    ((path, found, breaks),) = changes(old, new)

    assert (path, breaks) == ("spec.x", False)
    assert found.startswith(text)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"type": "integer"}, {"type": "number"}),
        ({"type": "integer"}, {"x-kubernetes-int-or-string": True}),
        ({"minLength": 2}, {"minLength": 1}),
        ({"maxLength": 2}, {}),
        ({"enum": ["a"]}, {}),
        ({"pattern": "a"}, {}),
        ({}, {"nullable": True}),
        ({"description": "one"}, {"description": "other"}),
        ({"x-kubernetes-validations": [{"rule": "a"}]}, {"x-kubernetes-validations": [{"rule": "a", "message": "b"}]}),
        ({"type": "array", "items": {}}, {"type": "array", "items": {}, "x-kubernetes-list-type": "atomic"}),
    ],
)
def test_what_is_wider_or_equal_is_no_change(old: Schema, new: Schema) -> None:
    assert changes(old, new) == []


def of(*required: str, **properties: Schema) -> Schema:
    schema: Schema = {"type": "object", "properties": properties}
    return {**schema, "required": list(required)} if required else schema


TEXT: Schema = {"type": "string"}


def test_a_field_that_is_gone_breaks_and_a_new_one_is_shown() -> None:
    found = [*compare(of(spec=of(a=TEXT, b=TEXT)), of(spec=of(b=TEXT, c=TEXT)))]

    assert [(each.path, each.breaks) for each in found] == [("spec.a", True), ("spec.c", False)]
    assert found[0].text == "is gone: the API server drops it from stored objects and from the writes of clients"


def test_a_required_field_breaks_unless_it_has_a_default() -> None:
    ((change),) = compare(of(a=TEXT), of("a", a=TEXT))
    assert (change.path, change.breaks) == ("a", True)
    assert change.text == "is required, without a default: objects that lack it are refused"

    assert [each.breaks for each in compare(of(), of("a", a=TEXT))] == [False, True]
    filled = of("a", a={**TEXT, "default": "x"})
    assert [each.breaks for each in compare(of(), filled)] == [False]
    assert [*compare(filled, filled)] == []


def test_fields_are_found_in_lists_and_maps() -> None:
    def nested(leaf: Schema) -> Schema:
        return of(items={"type": "array", "items": of(map={"type": "object", "additionalProperties": of(deep=leaf)})})

    (change,) = compare(nested(TEXT), nested({"type": "integer"}))

    assert change.path == "items[].map.*.deep"


def test_a_field_that_any_name_may_have_is_not_gone() -> None:
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}

    assert [*compare(of(a=TEXT), free)] == []
    (change,) = (each for each in compare(free, of(a=TEXT)) if each.breaks)
    assert change.text == "took fields of any name, and drops them now"
