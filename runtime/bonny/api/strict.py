"""Strict: refuses unknown fields, which the API server drops without a word or rejects in an apply.

You need it for what people write: the objects of a test, the status that a handler registers.
You do not need it for objects of the API server, whose unknown fields may belong to another version: see `validation`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from ..resource import Resource
from .markers import EMBEDDED, PRESERVE_UNKNOWN


def unknown_fields(value: Any, schema: Resource, where: str) -> Iterator[str]:
    """The fields of `value` that the schema does not have: sentences that begin with the path of a field."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from unknown_fields(item, schema.get("items", {}), f"{where}[{index}]")
    if not isinstance(value, Mapping):
        return
    fields, other = schema.get("properties", {}), schema.get("additionalProperties")
    for name, child in value.items():
        described = fields.get(name, other)
        if described is not None:
            yield from unknown_fields(child, described, f"{where}.{name}")
        elif schema.get("type") == "object" and not {PRESERVE_UNKNOWN, EMBEDDED} & schema.keys():
            yield f"{where}.{name}: {unknown(name, fields)}"


def unknown(name: str, names: Iterable[str]) -> str:
    """The text about a field that is not one of `names`."""
    meant = get_close_matches(name, names, n=1)
    return f"unknown field: did you mean {meant[0]}?" if meant else "unknown field"
