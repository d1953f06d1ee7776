"""Validation: finds errors that the API server would report in a value, by its structural schema.

You need it to know without a server whether a value fits a schema; `objects` does it for the objects of a version.
Elsewhere: the form in which the API server stores a value (`bonny.api.stored`).

`problems` follows apiextensions-apiserver step by step. In what people write, the objects of a test and the status that
a handler registers, unknown fields are refused (`strict=True`). Only the server evaluates rules in CEL and checks the
metadata of embedded objects. It also accepts a few spellings of times and addresses that pydantic cannot read.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from typing import Any, Final

import msgspec
from pydantic_core import SchemaError

from bonny.api.markers import EMBEDDED, LIST_KEYS, LIST_TYPE, PRESERVE_UNKNOWN
from bonny.api.patterns import compiled
from bonny.api.reading import path_to, unknown
from bonny.api.stored import misfit
from bonny.resource import Resource

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


def problems(value: Any, schema: Resource, where: str, *, strict: bool = False) -> Iterator[str]:
    """The errors in `value`, a result of `as_stored`: sentences that begin with the path of a field.

    `strict`: an unknown field is an error. The API server drops it without a word, or rejects it in an apply.
    """
    if wrong := misfit(value, schema):
        yield f"{where}: {wrong}"
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


def _object_problems(value: Resource, schema: Resource, where: str, *, strict: bool) -> Iterator[str]:
    yield from _size_problems(len(value), schema, where, "Properties", "fields")
    demanded = _EMBEDDED_FIELDS if EMBEDDED in schema else {}
    fields, other = {**demanded, **schema.get("properties", {})}, schema.get("additionalProperties")
    for name in (*schema.get("required", ()), *demanded):
        if name not in value:
            yield f"{path_to(where, name)}: is required"
    for name, child in value.items():
        described = fields.get(name, other)
        if described is not None:
            yield from problems(child, described, path_to(where, name), strict=strict)
        elif strict and schema.get("type") == "object" and not {PRESERVE_UNKNOWN, EMBEDDED} & schema.keys():
            yield f"{path_to(where, name)}: {unknown(name, fields)}"


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


def matches(pattern: str, value: str) -> bool:
    """Whether `value` contains a match of `pattern`, as Go reads it; True for a pattern that only Go reads."""
    try:
        return compiled(pattern).isinstance_python(value)
    except SchemaError:
        return True


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
