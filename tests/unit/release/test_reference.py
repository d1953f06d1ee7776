"""The reference page of a user's kinds: what a reader finds there."""

from __future__ import annotations

from typing import Any

import pytest

from bonny.resource import Resource
from bonny_dev.crd.builtin import builtin_schema
from bonny_dev.release.reference import page

SAMPLE = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "one"}, "spec": {"size": 3}}


def definition(spec: Resource, **version: Any) -> Resource:
    schema = {
        "type": "object",
        "description": "A thing of some size.",
        "required": ["spec"],
        "properties": {"spec": {"type": "object", "description": "What is wanted.", **spec}},
    }
    names = {"kind": "Widget", "plural": "widgets", "shortNames": ["wd"]}
    versions = [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}, **version}]
    return {"spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": versions}}


def rows(spec: Resource) -> list[str]:
    text = page("widgets-operator", [definition(spec)], [])
    return [line for line in text.splitlines() if line.startswith("| `")]


def test_the_page_names_kind_version_and_an_example() -> None:
    text = page("widgets-operator", [definition({"properties": {"size": {"type": "integer"}}})], [SAMPLE])

    assert text.startswith("<!-- Written by `invoke api-docs`")
    assert "\n# API of widgets-operator\n" in text
    assert "\n## Widget v1\n\nA thing of some size.\n" in text
    assert "- apiVersion `example.com/v1`, kind `Widget`\n- `kubectl get widgets`, or `wd`\n" in text
    assert "- objects are stored in this version\n" in text
    assert "\n### spec of Widget v1\n\nWhat is wanted.\n" in text
    assert "Example:\n\n```yaml\napiVersion: example.com/v1\nkind: Widget\n" in text


def test_a_large_type_of_kubernetes_is_named_and_a_small_one_has_its_rows() -> None:
    """Regression: a template of a Job had more than a thousand rows."""
    job = {**builtin_schema("batch/v1", "JobTemplateSpec"), "description": "The Job."}
    containers = {"type": "array", "items": builtin_schema("v1", "Container")}
    key = builtin_schema("v1", "SecretKeySelector")

    found = rows({"properties": {"job": job, "containers": containers, "key": key}})

    assert "| `spec.job` | object |  | The Job. (as Kubernetes describes `batch/v1 JobTemplateSpec`) |" in found
    assert "| `spec.containers[]` | object |  | (as Kubernetes describes `v1 Container`) |" in found
    assert [row.split("`")[1] for row in found if "spec.key" in row] == [
        "spec.key",
        "spec.key.key",
        "spec.key.name",
        "spec.key.optional",
    ]
    assert len(found) == 7


@pytest.mark.parametrize(
    ("field", "row"),
    [
        ({"type": "integer", "default": 1, "minimum": 1}, "| `spec.x` | integer | `1` | (at least 1) |"),
        ({"type": "string", "description": "One."}, "| `spec.x` | string | required | One. |"),
        ({"type": "string", "enum": ["a", "b"]}, '| `spec.x` | string | required | (one of `"a"`, `"b"`) |'),
        ({"type": "string", "pattern": "^a|b$"}, "| `spec.x` | string | required | (matches `^a\\|b$`) |"),
        ({"x-kubernetes-int-or-string": True}, "| `spec.x` | integer or string | required |  |"),
        ({"type": "array", "items": {"type": "string"}}, "| `spec.x` | list of string | required |  |"),
        (
            {"type": "object", "additionalProperties": {"type": "integer"}},
            "| `spec.x` | map of integer | required |  |",
        ),
        ({"type": "string", "description": "Two\nlines | a"}, "| `spec.x` | string | required | Two lines \\| a |"),
        ({"type": "string", "description": "<script>"}, "| `spec.x` | string | required | \\<script> |"),
        (
            {"type": "string", "x-kubernetes-validations": [{"rule": "self != 'a'", "message": "not a"}]},
            "| `spec.x` | string | required | (not a: `self != 'a'`) |",
        ),
    ],
)
def test_a_field_is_a_row_with_type_default_and_rules(field: Resource, row: str) -> None:
    assert rows({"required": ["x"], "properties": {"x": field}}) == [row]


def test_fields_below_a_field_have_rows_of_their_own() -> None:
    port = {"type": "object", "required": ["number"], "properties": {"number": {"type": "integer"}}}
    spec = {"properties": {"ports": {"type": "array", "items": port}, "labels": {"type": "object", "properties": {}}}}

    assert rows(spec) == [
        "| `spec.ports` | list of object |  |  |",
        "| `spec.ports[].number` | integer | required |  |",
        "| `spec.labels` | object |  |  |",
    ]


def test_rules_of_the_whole_part_are_below_its_table() -> None:
    rule = [{"rule": "self.a < self.b", "message": "a is below b"}]
    text = page("w", [definition({"properties": {"a": {"type": "integer"}}, "x-kubernetes-validations": rule})], [])

    assert "\n\nRules: a is below b: `self.a < self.b`\n" in text


def test_a_deprecated_version_says_so() -> None:
    text = page("w", [definition({}, deprecated=True, deprecationWarning="use v2", storage=False)], [])

    assert "- use v2\n" in text
    assert "objects are stored" not in text


def test_an_operator_without_kinds_has_a_page_too() -> None:
    assert "The operator has no kinds of its own." in page("w", [], [])
