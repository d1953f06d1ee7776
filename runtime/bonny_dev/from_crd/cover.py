"""Cover: finds the built-in type that can stand for a part of a definition.

An object has a type of Kubernetes where that is equal to the original, or where the original is large and every field
of it, at any depth, is in the type. Names alone decide nothing. Such an object is a plain mapping in Python; its schema
stays that of the original.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import Final, NamedTuple

from bonny.api import Condition
from bonny.api.markers import LIST_KEYS, LIST_TYPE, MAP_TYPE
from bonny.resource import Resource

from ..crd.builtin import builtin_schema, table
from ..crd.schema import structural
from ..crd.tree import inside
from .canonical import canonical, content, shape, without

# Equal to a type by accident are only smaller objects.
_FEWEST_EQUAL: Final = 3
# From this many fields on it is better to have Kubernetes' own type, with the additions of newer releases.
_LARGE: Final = 20
# A difference in one of these refuses no object that has only fields of the original; comparing names it.
_MAY_DIFFER: Final = ("description", "default", "format", "required", "properties", "items", "additionalProperties")
_MARKS: Final = (LIST_TYPE, LIST_KEYS, MAP_TYPE)


class BuiltInType(NamedTuple):
    """A type in the table of `bonny_dev.crd.builtin`."""

    api_version: str
    name: str


CONDITION: Final = BuiltInType("meta/v1", "Condition")
"""The type that has a class in `bonny.api`."""


def built_in(node: Resource) -> BuiltInType | None:
    """The built-in type for `node`, a canonical schema of an object; of several, that with the fewest fields."""
    size = _fields(node)
    if node.get("type") != "object" or "properties" not in node or size < _FEWEST_EQUAL:
        return None
    if equal := _by_shape().get(shape(node, "default", "nullable")):
        return equal
    covering = [each for each, schema in _types().items() if size >= _LARGE and _covers(schema, node)]
    return min(covering, key=lambda each: _fields(_types()[each]), default=None)


@cache
def condition_shape() -> str:
    """The shape of the Condition that all of Kubernetes shares."""
    return shape(canonical(structural(Condition, where="Condition")))


@cache
def builtin_content(known: BuiltInType) -> str:
    """The content of the built-in type, which has no descriptions."""
    return content(_types()[known])


def _covers(schema: Resource, node: Resource) -> bool:
    fields, others = dict(inside(node)), dict(inside(schema))
    limits = [without(each, "nullable", *_MAY_DIFFER, *_MARKS) for each in (schema, node)]
    return (
        limits[0] == limits[1]
        and not ("nullable" in node and "nullable" not in schema)
        and fields.keys() <= others.keys()
        and set(schema.get("required", ())) <= set(node.get("required", ()))
        and not {"[]", ".*"} & (others.keys() - fields.keys())
        and all(_covers(others[step], child) for step, child in fields.items())
    )


def _fields(schema: Resource) -> int:
    """How many fields there are, at any depth."""
    return len(schema.get("properties", {})) + sum(_fields(child) for _, child in inside(schema))


@cache
def _types() -> dict[BuiltInType, Resource]:
    names = [BuiltInType(api_version, name) for api_version, types in table().items() if api_version for name in types]
    return {each: canonical(builtin_schema(*each)) for each in names}


@cache
def _by_shape() -> dict[str, BuiltInType]:
    """The types of which there is one alone with that content."""
    shapes = {each: shape(schema) for each, schema in _types().items()}
    times = Counter(shapes.values())
    return {content: each for each, content in shapes.items() if times[content] == 1}
