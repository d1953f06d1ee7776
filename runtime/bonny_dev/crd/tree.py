"""Tree: the schemas inside of a schema."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from bonny.resource import Resource


def inside(schema: Resource) -> Iterator[tuple[str, Resource]]:
    """The schemas one level down, by the step to each: `.size` for a field, `[]` for items, `.*` for other values."""
    for name, child in schema.get("properties", {}).items():
        yield f".{name}", child
    for key, step in (("items", "[]"), ("additionalProperties", ".*")):
        if isinstance(schema.get(key), dict):
            yield step, schema[key]


def mapped(schema: Resource, function: Callable[[Resource], Resource]) -> Resource:
    """A copy of `schema` with `function` applied to the schemas in it, one level down."""
    node = dict(schema)
    if isinstance(node.get("properties"), dict):
        node["properties"] = {name: function(child) for name, child in node["properties"].items()}
    for key in ("items", "additionalProperties"):
        if isinstance(node.get(key), dict):
            node[key] = function(node[key])
    return node
