"""Validation: normalizes and checks an object by its structural schema, as the API server does before it stores it.

You need it to know without a server whether an object would be accepted: `Version.check` uses it.
You do not need it to read objects that the API server has accepted: use `Version.spec_of`.

`as_stored` and `problems` follow apiextensions-apiserver step by step: the first drops nulls, fills in defaults and
prunes; the second checks types and limits. In what people write, the objects of a test and the status that a handler
registers, unknown fields are kept (`prune=False`) and refused (`strict=True`). Only the server evaluates rules in CEL
and checks the metadata of embedded objects. It also accepts a few spellings of times and addresses that pydantic cannot
read.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date
from difflib import get_close_matches
from typing import Any, Final

import msgspec

from ..resource import Resource
from .markers import EMBEDDED, INT_OR_STRING, LIST_KEYS, LIST_TYPE, PRESERVE_UNKNOWN
from .patterns import matches

# Go reads a number as an integer of 64 bits, and what does not fit as a float. Floats up to EXACT can count as whole.
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
# Keywords that combine schemas, by how many of them must fit.
_COMBINED: Final[Mapping[str, Callable[[int, Any], bool]]] = {
    "oneOf": lambda fitting, _: fitting == 1,
    "anyOf": lambda fitting, _: fitting > 0,
    "allOf": lambda fitting, schemas: fitting == len(schemas),
    "not": lambda fitting, _: fitting == 0,
}
# Fields that the API server requires in every embedded object.
_EMBEDDED_FIELDS: Final[Resource] = {
    "apiVersion": {"type": "string", "minLength": 1, "pattern": "^[^/]*(/[^/]*)?$"},
    "kind": {"type": "string", "pattern": "^[A-Za-z]([-A-Za-z0-9]{0,61}[A-Za-z0-9])?$"},
}

_TEXT: Final[Resource] = {"type": "string"}
_TEXTS: Final[Resource] = {"type": "object", "additionalProperties": _TEXT}
_METADATA: Final = {"name": _TEXT, "namespace": _TEXT, "generateName": _TEXT, "labels": _TEXTS, "annotations": _TEXTS}
# Types without which the API server cannot read an embedded object.
_EMBEDDED_TYPES: Final[Resource] = {
    "apiVersion": _TEXT,
    "kind": _TEXT,
    "metadata": {"type": "object", "properties": _METADATA},
}


def as_stored(value: Any, schema: Resource | None, *, prune: bool = True) -> Any:
    """A copy of `value` in the form that the API server stores: without nulls and unknown fields, with defaults.

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
        if described is not None or keep or (EMBEDDED in schema and name in (*_EMBEDDED_FIELDS, "metadata")):
            stored[name] = as_stored(child, described, prune=prune)
    for name, described in fields.items():
        if name not in stored and "default" in described:
            stored[name] = as_stored(described["default"], described)
    return stored


def _or_default(value: Any, schema: Resource | None) -> Any:
    return schema.get("default") if value is None and schema is not None and "nullable" not in schema else value


def fitting(value: Any, schema: Resource) -> Any:
    """A copy of `value`, a result of `as_stored`, without parts of a wrong type; UNSET if it is of a wrong type itself.

    Readers in other languages fail on a whole list for one value of a wrong type. Limits and patterns do not count.
    """
    if _misfit(value, schema):
        return msgspec.UNSET
    if isinstance(value, dict):
        fields = {**(_EMBEDDED_TYPES if EMBEDDED in schema else {}), **schema.get("properties", {})}
        other = schema.get("additionalProperties")
        kept = {name: fitting(child, fields.get(name, other) or {}) for name, child in value.items()}
        return {name: child for name, child in kept.items() if child is not msgspec.UNSET}
    if isinstance(value, list):
        items = [fitting(item, schema.get("items") or {}) for item in value]
        return [item for item in items if item is not msgspec.UNSET]
    return value


def problems(value: Any, schema: Resource, where: str, *, strict: bool = False) -> Iterator[str]:
    """The errors in `value`, a result of `as_stored`: sentences that begin with the path of a field.

    `strict`: an unknown field is an error. The API server drops it without a word, or rejects it in an apply.
    """
    if misfit := _misfit(value, schema):
        yield f"{where}: {misfit}"
    elif value is None:
        return
    elif "enum" in schema and not any(type(value) is type(one) and value == one for one in schema["enum"]):
        yield f"{where}: must be one of {', '.join(map(str, schema['enum']))}"
    elif any(
        not enough(_fitting(value, schema[key]), schema[key]) for key, enough in _COMBINED.items() if key in schema
    ):
        yield f"{where}: must fit {', '.join(f'{key} {schema[key]}' for key in _COMBINED if key in schema)}"
    elif isinstance(value, dict):
        yield from _object_problems(value, schema, where, strict=strict)
    elif isinstance(value, list):
        yield from _list_problems(value, schema, where, strict=strict)
    elif isinstance(value, str):
        yield from _string_problems(value, schema, where)
    elif not isinstance(value, bool):
        yield from _number_problems(value, schema, where)


def _fitting(value: Any, schemas: Resource | list[Resource]) -> int:
    """How many of some schemas a value fits."""
    each = schemas if isinstance(schemas, list) else [schemas]
    return sum(next(problems(value, schema, ""), None) is None for schema in each)


def _misfit(value: Any, schema: Resource) -> str:
    """Why the value is not of the type of the schema; empty if it is."""
    wanted, either = schema.get("type"), INT_OR_STRING in schema
    if value is None:
        return "must not be null" if (wanted or either) and "nullable" not in schema else ""
    if either and type(value) not in (int, str):
        return "must be an integer or a string"
    return f"must be of type {wanted}" if wanted is not None and type(value) not in _TYPES[wanted] else ""


def _object_problems(value: Resource, schema: Resource, where: str, *, strict: bool) -> Iterator[str]:
    yield from _size_problems(len(value), schema, where, "Properties", "fields")
    demanded = _EMBEDDED_FIELDS if EMBEDDED in schema else {}
    fields, other = {**demanded, **schema.get("properties", {})}, schema.get("additionalProperties")
    for name in (*schema.get("required", ()), *demanded):
        if name not in value:
            yield f"{where}.{name}: is required"
    for name, child in value.items():
        described = fields.get(name, other)
        if described is not None:
            yield from problems(child, described, f"{where}.{name}", strict=strict)
        elif strict and schema.get("type") == "object" and not {PRESERVE_UNKNOWN, EMBEDDED} & schema.keys():
            yield f"{where}.{name}: {unknown(name, fields)}"


def _list_problems(value: list[Any], schema: Resource, where: str, *, strict: bool) -> Iterator[str]:
    yield from _size_problems(len(value), schema, where, "Items", "items")
    seen = set()
    for index, item in enumerate(value):
        yield from problems(item, schema.get("items", {}), f"{where}[{index}]", strict=strict)
        if schema.get(LIST_TYPE) in ("set", "map"):
            keys = schema.get(LIST_KEYS)
            identity = item if keys is None or not isinstance(item, dict) else [item.get(key, ...) for key in keys]
            written = msgspec.json.encode(identity, enc_hook=str, order="deterministic")
            if written in seen:
                yield f"{where}[{index}]: is a duplicate"
            seen.add(written)


def _string_problems(value: str, schema: Resource, where: str) -> Iterator[str]:
    yield from _size_problems(len(value), schema, where, "Length", "characters")
    if "pattern" in schema and not matches(schema["pattern"], value):
        yield f"{where}: must match {schema['pattern']}"
    if schema.get("format") in FORMATS and not FORMATS[schema["format"]](value):
        yield f"{where}: must be of format {schema['format']}"


def _number_problems(value: float, schema: Resource, where: str) -> Iterator[str]:
    least, most, step = schema.get("minimum"), schema.get("maximum"), schema.get("multipleOf")
    if least is not None and (value <= least if "exclusiveMinimum" in schema else value < least):
        yield f"{where}: must be {'above' if 'exclusiveMinimum' in schema else 'at least'} {least}"
    if most is not None and (value >= most if "exclusiveMaximum" in schema else value > most):
        yield f"{where}: must be {'below' if 'exclusiveMaximum' in schema else 'at most'} {most}"
    if step is not None and value % step:
        yield f"{where}: must be a multiple of {step}"
    if schema.get("format") == "int32" and value not in range(-(2**31), 2**31):
        yield f"{where}: must be an integer of 32 bits"


def _size_problems(size: int, schema: Resource, where: str, keyword: str, things: str) -> Iterator[str]:
    if size < schema.get(f"min{keyword}", 0):
        yield f"{where}: must have at least {schema[f'min{keyword}']} {things}"
    if size > schema.get(f"max{keyword}", size):
        yield f"{where}: must have at most {schema[f'max{keyword}']} {things}"


def unknown(name: str, names: Iterable[str]) -> str:
    """The text about a field that is not one of `names`."""
    meant = get_close_matches(name, names, n=1)
    return f"unknown field: did you mean {meant[0]}?" if meant else "unknown field"


def _is_date(text: str) -> bool:
    try:
        return re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text) is not None and date.fromisoformat(text) is not None
    except ValueError:
        return False


def _is_time(text: str) -> bool:
    parts = re.fullmatch(
        r"(.{10})[Tt]([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]+)?([Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])", text
    )
    return parts is not None and _is_date(parts[1])


def _is_address(family: Callable[[str], object], text: str) -> bool:
    try:
        return family(text) is not None and "%" not in text  # a zone is not part of the address for Go
    except ValueError:
        return False


FORMATS: Final[Mapping[str, Callable[[str], bool]]] = {
    "byte": lambda text: (
        re.fullmatch(r"([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}[A-Za-z0-9+/=]=|[A-Za-z0-9+/]{4})", text) is not None
    ),
    "date": _is_date,
    "date-time": _is_time,
    "ipv4": lambda text: _is_address(ipaddress.IPv4Address, text),
    "ipv6": lambda text: _is_address(ipaddress.IPv6Address, text),
    "uuid": lambda text: re.fullmatch(r"(?i)[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12}", text) is not None,
}
"""The formats of strings that the API server checks and pydantic reads alike; unknown ones it ignores."""
