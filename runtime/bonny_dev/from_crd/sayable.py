"""Sayable: the part of a schema that version classes can say.

A comparison of the definition made of the classes with the original finds again everything that is left out here.
"""

from __future__ import annotations

from typing import Final

from bonny.api.markers import EMBEDDED, INT_OR_STRING, LIST_KEYS, LIST_TYPE, MAP_TYPE, PRESERVE_UNKNOWN
from bonny.api.rules import RULES
from bonny.errors import OptionError
from bonny.resource import Resource

from ..crd.checking import check
from .canonical import mapped, without

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

SIZES: Final = {
    "string": ("minLength", "maxLength"),
    "array": ("minItems", "maxItems"),
    "object": ("minProperties", "maxProperties"),
}
"""The limits of length of each type."""

BOUNDS: Final = ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf")

_EVERYWHERE: Final = frozenset(("type", "description", "nullable", "default", "enum", RULES))
_MARKS: Final = frozenset((LIST_TYPE, LIST_KEYS, MAP_TYPE, EMBEDDED, INT_OR_STRING, PRESERVE_UNKNOWN))
_CONTENT: Final = frozenset(("required", "properties", "items", "additionalProperties"))
_OF_TYPE: Final = {
    "string": frozenset(("format", "pattern", *SIZES["string"])),
    "integer": frozenset(("format", *BOUNDS)),
    "number": frozenset(BOUNDS),
    "array": frozenset(SIZES["array"]),
    "object": frozenset(SIZES["object"]),
    None: frozenset(("pattern",)),
}
# Of each, the server refuses some values, or does not read them as they are meant.
_TRIED: Final = ("pattern", "enum", "minimum", "maximum", "multipleOf")


def sayable(schema: Resource) -> Resource:
    """A copy of `schema`, which is canonical, with the keywords that version classes have."""
    node = mapped(schema, sayable)
    if isinstance(node.get("additionalProperties"), bool):
        node = without(node, "additionalProperties") | {PRESERVE_UNKNOWN: True}
    kind = node.get("type")
    known = _EVERYWHERE | _MARKS | _CONTENT | _OF_TYPE.get(kind, frozenset())
    node = {key: value for key, value in node.items() if key in known}
    if "format" in node and node["format"] not in (STRING_TYPES if kind == "string" else INTEGER_TYPES):
        node = without(node, "format")
    if "enum" in node and (kind not in ("string", "integer", "boolean") or None in node["enum"]):
        node = without(node, "enum")
    if "enum" in node:
        node = without(node, "nullable")
    if node.get("format", "byte") != "byte" and kind == "string":
        node = without(node, *SIZES["string"])
    for key in _TRIED:
        if key in node and not _accepted({each: node[each] for each in ("type", INT_OR_STRING, key) if each in node}):
            node = without(node, key)
    if node.get(LIST_TYPE, "atomic") not in ("atomic", "set", "map") or (LIST_TYPE in node and kind != "array"):
        node = without(node, LIST_TYPE, LIST_KEYS)
    if RULES in node:
        node[RULES] = [rule for rule in node[RULES] if _accepted({**without(node, RULES), RULES: [rule]})]
    return node


def _accepted(schema: Resource) -> bool:
    try:
        check(schema, "")
    except OptionError:
        return False
    return True
