"""Stored: the form in which the API server stores a value: without nulls and unknown fields, with defaults.

`as_stored` follows apiextensions-apiserver step by step. It takes the schema of a definition, or the result
of `types_of`: the keywords that decide about the stored form, of any model.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

from ..resource import Resource
from .markers import AS_IS, BUILT_IN, EMBEDDED, INT_OR_STRING, LIST_KEYS, LIST_TYPE, PRESERVE_UNKNOWN

TAKEN: Final = ("apiVersion", "kind", "metadata")
"""Fields that every object has. No version describes them."""

# Go reads a number as an integer of 64 bits, and one beyond that as a float. Floats up to EXACT can count as whole.
INT64: Final = range(-(2**63), 2**63)
EXACT: Final = 2**53 - 1
_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}
_KEPT: Final = (
    "type", "nullable", "default", LIST_TYPE, LIST_KEYS, EMBEDDED, INT_OR_STRING, PRESERVE_UNKNOWN, BUILT_IN
)  # fmt: skip
_ANYTHING: Final = {"nullable": True, PRESERVE_UNKNOWN: True}


def as_stored(value: Any, schema: Resource | None, *, prune: bool = True) -> Any:
    """A copy of `value` in the form that the API server stores.

    Without a `schema` nothing is dropped; without `prune` unknown fields stay.
    """
    if isinstance(value, Mapping):
        return _stored_fields(value, schema, prune=prune)
    if isinstance(value, (list, tuple)):
        items = None if schema is None else schema.get("items")
        return [as_stored(_or_default(item, items), items, prune=prune) for item in value]
    if isinstance(value, str):
        return str(value)  # of an enumeration
    if isinstance(value, float) and value.is_integer() and abs(value) <= EXACT:
        return int(value)
    if isinstance(value, int) and value not in INT64:
        return float(value)
    return value


def _stored_fields(value: Mapping[str, Any], schema: Resource | None, *, prune: bool) -> Resource:
    keep, schema = not prune or schema is None or PRESERVE_UNKNOWN in schema, schema or {}
    fields, other = schema.get("properties", {}), schema.get("additionalProperties")
    stored = {}
    for name, child in value.items():
        described = fields.get(name, other)
        child = _or_default(child, described)  # noqa: PLW2901
        if child is None and described is not None and "nullable" not in described:
            continue
        if described is not None or keep or (EMBEDDED in schema and name in TAKEN):
            stored[name] = as_stored(child, described, prune=prune)
    for name, described in fields.items():
        if name not in stored and "default" in described:
            stored[name] = as_stored(described["default"], described)
    return stored


def _or_default(value: Any, schema: Resource | None) -> Any:
    return schema.get("default") if value is None and schema is not None and "nullable" not in schema else value


def misfit(value: Any, schema: Resource) -> str:
    """Why a value, a part of a result of `as_stored`, is not of the type of the schema; empty if it is."""
    wanted, either = schema.get("type"), INT_OR_STRING in schema
    if value is None:
        return "must not be null" if (wanted or either) and "nullable" not in schema else ""
    if either and type(value) not in (int, str):
        return "must be an integer or a string"
    return f"must be of type {wanted}" if wanted is not None and type(value) not in _TYPES[wanted] else ""


class _Generator(GenerateJsonSchema):
    """JSON Schema of any model; a type that has none may be anything."""

    def encode_default(self, dft: Any) -> Any:
        return TypeAdapter(Any).dump_python(dft, mode="json", by_alias=True, exclude_unset=True)

    def handle_invalid_for_json_schema(self, schema: Any, error_info: str) -> JsonSchemaValue:  # noqa: ARG002
        return {}

    def emit_warning(self, kind: Any, detail: str) -> None: ...


@cache
def types_of(model: type[BaseModel]) -> Resource:
    """The types, lists and defaults of `model`, as in a schema. The result is shared: do not change it."""
    document = model.model_json_schema(mode="validation", schema_generator=_Generator)
    return _types(document, document.get("$defs", {}), ())


def _types(node: Resource, definitions: Mapping[str, Resource], inside: tuple[str, ...]) -> Resource:
    node = {key: node[key] for key in node if key != AS_IS} | node.get(AS_IS, {})
    if "$ref" in node:
        name = node.pop("$ref").rpartition("/")[2]
        return dict(_ANYTHING) if name in inside else _types(definitions[name] | node, definitions, (*inside, name))
    choices = [] if INT_OR_STRING in node else node.get("anyOf", [])
    values = [choice for choice in choices if choice.get("type") != "null"]
    if len(values) == 1 and len(choices) == 2:
        del node["anyOf"]
        nullable = {} if node.get("default", ...) is None else {"nullable": True}
        return _types(values[0] | node | nullable, definitions, inside)
    kept = {key: node[key] for key in _KEPT if node.get(key) is not None}
    if "properties" in node:
        kept["properties"] = {name: _types(each, definitions, inside) for name, each in node["properties"].items()}
    if "items" in node:
        kept["items"] = _types(node["items"], definitions, inside)
    if node.get("additionalProperties") is True:
        kept[PRESERVE_UNKNOWN] = True
    elif node.get("additionalProperties") and PRESERVE_UNKNOWN not in node:
        kept["additionalProperties"] = _types(node["additionalProperties"], definitions, inside)
    return kept if {"type", INT_OR_STRING, PRESERVE_UNKNOWN} & kept.keys() else kept | _ANYTHING


def expanded(node: Any, table: Mapping[str, Mapping[str, Any]]) -> Any:
    """A copy of a schema, or of the name of a built-in type, with the schemas in `table` in place of such names."""
    if isinstance(node, str):
        api_version, _, name = node.rpartition("/")
        return expanded(table[api_version][name], table)
    if BUILT_IN in node:
        rest = {key: value for key, value in node.items() if key not in (BUILT_IN, PRESERVE_UNKNOWN)}
        return rest | expanded(node[BUILT_IN], table)
    inner = {key: expanded(node[key], table) for key in ("items", "additionalProperties") if key in node}
    if "properties" in node:
        inner["properties"] = {name: expanded(field, table) for name, field in node["properties"].items()}
    return node | inner
