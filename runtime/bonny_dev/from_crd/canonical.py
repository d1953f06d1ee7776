"""Canonical: one spelling for schemas that mean the same to the API server.

You need it before two schemas are compared, or classes are made from one.
"""

from __future__ import annotations

import json
from typing import Any, Final

from pydantic import TypeAdapter

from bonny.api import Quantity
from bonny.api.markers import INT_OR_STRING, MAP_TYPE, PRESERVE_UNKNOWN
from bonny.api.rules import RULES
from bonny.api.stored import as_stored
from bonny.resource import Resource

from ..crd.schema import LIMITS, SIZES
from ..crd.schema_checks import BELONGS
from ..crd.tree import mapped

# The pattern that controller-gen writes for a resource.Quantity. Kubernetes reads none of the texts that only this one
# matches: fractions in an exponent.
_CONTROLLER_GEN: Final = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)
QUANTITY: Final[str] = TypeAdapter(Quantity).json_schema()["pattern"]
"""The pattern of a `Quantity`."""

_WITHOUT_EFFECT: Final = {
    "nullable": False,
    "uniqueItems": False,
    "exclusiveMinimum": False,
    "exclusiveMaximum": False,
    MAP_TYPE: "granular",
    "required": [],
    "properties": {},
    "enum": [],
    "default": None,
    "description": "",
    RULES: [],
}
# For readers, or of no meaning to the API server.
_NOTES: Final = ("example", "externalDocs", "title", "id", "$schema")
# Sizes of numbers as formats, which the API server applies to numbers of that type alone.
_NUMERIC: Final = frozenset(("int32", "int64", "uint32", "uint64", "float", "double"))
_NO_EFFECT_ON: Final = {"string": _NUMERIC, "number": _NUMERIC - {"float"}, "integer": {"float", "double"}}
OF_EVERY_OBJECT: Final = {"apiVersion": "string", "kind": "string", "metadata": "object"}
"""The fields that every object has, and their types."""


def canonical(schema: Resource) -> Resource:
    """A copy of `schema` in the spelling of our own definitions. The canonical form of the result is the same again."""
    node = mapped(_with_effect(schema), canonical)
    if INT_OR_STRING in node:
        node.pop("anyOf", None)
    if node.get("pattern") == _CONTROLLER_GEN and INT_OR_STRING in node:
        node["pattern"] = QUANTITY
    if RULES in node:
        node[RULES] = [_rule(rule) for rule in node[RULES]]
    fields = node.get("properties", {})
    # A field with a default is there before the server looks for required ones.
    node["required"] = sorted(name for name in node.get("required", ()) if "default" not in fields.get(name, {}))
    return {key: value for key, value in node.items() if _WITHOUT_EFFECT.get(key, ...) != value}


def canonical_object(schema: Resource) -> Resource:
    """The canonical form of the schema of whole objects, without the fields that every object has."""
    node = canonical(schema)
    plain = {name: {"type": kind} for name, kind in OF_EVERY_OBJECT.items()}
    fields = {
        name: child
        for name, child in node.get("properties", {}).items()
        if without(child, "description") != plain.get(name)
        # Of a status without fields the server keeps nothing.
        and not (name == "status" and without(child, "description") == {"type": "object"})
    }
    required = [name for name in node.get("required", ()) if name not in plain]
    return without(node, "required") | {"properties": fields} | ({"required": required} if required else {})


def comparable(schema: Resource) -> Resource:
    """A copy in which each default is as the server stores it, with those inside of it, and values have an order."""
    node = mapped(schema, comparable)
    if "default" in node:
        node["default"] = as_stored(node["default"], node)
    if "enum" in node:
        node["enum"] = sorted(node["enum"], key=str)
    return node


def undescribed(schema: Resource) -> Resource:
    """A copy without the descriptions, at any depth."""
    return mapped(without(schema, "description"), undescribed)


def without(schema: Resource, *keywords: str) -> Resource:
    """A copy without some keywords of its own level."""
    return {key: value for key, value in schema.items() if key not in keywords}


def shape(schema: Resource, *but: str) -> str:
    """A text that is equal for schemas of equal content; descriptions and the order of fields do not count."""
    return content(undescribed(schema), *but)


def content(schema: Resource, *but: str) -> str:
    """A text that is equal for equal canonical schemas; the order of fields does not count."""
    return json.dumps(without(schema, *but), sort_keys=True, default=str)


def _with_effect(schema: Resource) -> Resource:
    """A copy without keywords of its own level that the API server ignores."""
    node, kind = without(schema, *_NOTES), schema.get("type", "")
    if kind in BELONGS:
        node = without(node, *(key for key in (*LIMITS, *SIZES) if key not in BELONGS[kind]))
    if node.get("format") in _NO_EFFECT_ON.get(kind, ()):
        node = without(node, "format")
    if kind and kind != "array":
        node = without(node, "items")
    if PRESERVE_UNKNOWN in node and kind == "array":  # protects the fields of its items
        node["items"] = {**node.get("items", {}), PRESERVE_UNKNOWN: True}
    if PRESERVE_UNKNOWN in node and (kind not in ("", "object") or isinstance(node.get("additionalProperties"), dict)):
        node = without(node, PRESERVE_UNKNOWN)
    return node


def _rule(rule: Resource) -> Resource:
    """With the message that the server makes for a rule without one."""
    said: dict[str, Any] = {"message": f"failed rule: {' '.join(rule['rule'].split())}", **rule}
    default = {"reason": "FieldValueInvalid", "optionalOldSelf": False, "messageExpression": "", "fieldPath": ""}
    return {key: value for key, value in said.items() if default.get(key, ...) != value}
