"""Sayable: the part of a schema that version classes can express, and apart from it, the part that is kept as it is.

A comparison of the definition made of the classes with the original finds again everything that is left out here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from bonny.api.markers import AS_IS, EMBEDDED, INT_OR_STRING, LIST_KEYS, LIST_TYPE, MAP_TYPE, PRESERVE_UNKNOWN
from bonny.api.rules import RULES
from bonny.errors import OptionError
from bonny.resource import Resource

from ..crd.schema import LIMITS, SIZES
from ..crd.schema_checks import check, check_rules
from ..crd.tree import mapped
from .canonical import content, shape, without
from .cover import CONDITION, BuiltInType, built_in, builtin_content, condition_shape

STRING_TYPES: Final = {
    "date-time": "datetime",
    "date": "date",
    "uuid": "UUID",
    "ipv4": "IPv4Address",
    "ipv6": "IPv6Address",
    "byte": "Base64",
}
"""The Python type of each format of strings that has one."""

INTEGER_TYPES: Final = {"int32": "Int32", "int64": "Int64"}

_FORMATS: Final[dict[Any, dict[str, str]]] = {"string": STRING_TYPES, "integer": INTEGER_TYPES}
# Each belongs to some types, and of some the server refuses values, or does not read them as they are meant.
_TRIED: Final = ("enum", *LIMITS, *SIZES)
_MARKS: Final = (LIST_TYPE, LIST_KEYS, MAP_TYPE, EMBEDDED, INT_OR_STRING, PRESERVE_UNKNOWN, RULES)
_CONTENT: Final = ("required", "properties", "items", "additionalProperties")
_KNOWN: Final = frozenset(("type", "format", "description", "nullable", "default", *_TRIED, *_MARKS, *_CONTENT))


TYPE: Final = "x-bonny-type"
"""The key of the type of Kubernetes that stands for an object, in place of its fields."""

_OF_FIELD: Final = ("description", "default", "nullable")


def sayable(schema: Resource, *, own: bool = False) -> Resource:
    """A copy of `schema`, which is canonical, with the keywords that version classes have; the others below `AS_IS`.

    An object that has a type in Kubernetes has that `TYPE` in place of its fields, unless it needs a model of its own.
    """
    if not own and (known := _type_of(schema)):
        exact = known == CONDITION or content(schema, *_OF_FIELD) == builtin_content(known)
        kept = {} if exact else {AS_IS: without(schema, "type", *_OF_FIELD)}
        return {key: schema[key] for key in ("type", *_OF_FIELD) if key in schema} | {TYPE: known} | kept
    node = _said(schema)
    lost = {key: value for key, value in schema.items() if key not in node and key not in _CONTENT}
    if isinstance(schema.get("additionalProperties"), bool):
        lost["additionalProperties"] = schema["additionalProperties"]
    return node | ({AS_IS: lost} if lost else {})


def _type_of(schema: Resource) -> BuiltInType | None:
    if shape(schema, "default", "nullable") == condition_shape():
        return CONDITION
    return built_in(schema)


def _said(schema: Resource) -> Resource:
    node = mapped(schema, sayable)
    if isinstance(node.get("additionalProperties"), bool):
        node = without(node, "additionalProperties")
    kind = node.get("type")
    node = {key: value for key, value in node.items() if key in _KNOWN}
    if "format" in node and node["format"] not in _FORMATS.get(kind, ()):
        node = without(node, "format")
    if "enum" in node and (kind not in ("string", "integer", "boolean") or None in node["enum"]):
        node = without(node, "enum")
    if "enum" in node:
        node = without(node, "nullable")
    typed: Resource = {key: node[key] for key in ("type", "format", INT_OR_STRING) if key in node}
    node = without(node, *(key for key in _TRIED if key in node and not _accepted({**typed, key: node[key]})))
    if node.get(LIST_TYPE, "atomic") not in ("atomic", "set", "map") or (LIST_TYPE in node and kind != "array"):
        node = without(node, LIST_TYPE, LIST_KEYS)
    if RULES in node:
        node = node if _accepted(node, check_rules) else without(node, RULES)
    return node


def _accepted(schema: Resource, check: Callable[[Resource, str], None] = check) -> bool:
    try:
        check(schema, "")
    except OptionError:
        return False
    return True
