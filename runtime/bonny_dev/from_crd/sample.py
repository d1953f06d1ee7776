"""Sample: the smallest object that a schema accepts, for `samples/`."""

from __future__ import annotations

import math
from typing import Any, Final

from bonny.api import Version
from bonny.api.markers import EMBEDDED, INT_OR_STRING
from bonny.errors import InvalidObject
from bonny.resource import Resource

from ..crd import check_object, schema_of
from ..crd.validation import problems

# Tried one after the other where a text has a form of its own.
_TEXTS: Final = tuple(
    "example Example example.com https://example.com /example example/example 1h 1 10.0.0.0/24 2026-01-01T00:00:00Z "  # noqa: SIM905
    "2026-01-01 10.0.0.1 fd00::1 00000000-0000-4000-8000-000000000000 ZXhhbXBsZQ== @daily v1 True {}".split()
)
_EMBEDDED: Final = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "example"}}


def sample(version: type[Version], group: str) -> tuple[Resource, str]:
    """An object with the required fields alone; and the sentence of the first problem, empty for an accepted object."""
    kind = version.as_kind(group)
    metadata: Resource = {"name": f"{kind.kind.lower()}-sample"}
    resource = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata}
    schema = schema_of(version)
    required = {*schema.get("required", ())} - {"status"}
    resource |= {
        name: _value(field)
        for name, field in schema["properties"].items()
        if name in required or (name == "spec" and "default" not in field)
    }
    try:
        check_object(version, resource)
    except InvalidObject as error:
        return resource, str(error)
    return resource, ""


def _value(schema: Resource) -> Any:
    if "default" in schema:
        return schema["default"]
    if "enum" in schema:
        return schema["enum"][0]
    if schema.get("type") == "object":
        fields = schema.get("properties", {})
        given = _EMBEDDED if EMBEDDED in schema else {}
        one = next(iter(schema.get("oneOf") or schema.get("anyOf") or [{}]))
        required = [*schema.get("required", ()), *one.get("required", ())]
        return given | {name: _value(fields[name]) for name in required if name in fields and name not in given}
    if schema.get("type") == "array":
        return [_value(schema["items"])] * schema.get("minItems", 0)
    if schema.get("type") == "string":
        return _text(schema)
    if schema.get("type") == "boolean":
        return False
    return _number(schema) if "type" in schema or INT_OR_STRING in schema else {}


def _number(schema: Resource) -> int:
    least: int = math.ceil(schema.get("minimum", min(1, schema.get("maximum", 1)))) + int("exclusiveMinimum" in schema)
    step: int = int(schema.get("multipleOf", 1))
    return -(-least // step) * step


def _text(schema: Resource) -> str:
    texts = (*_TEXTS, "a" * schema.get("minLength", 1))
    return next((text for text in texts if not list(problems(text, schema, ""))), _TEXTS[0])
