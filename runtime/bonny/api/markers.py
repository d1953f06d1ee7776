"""Markers: properties of a field that Python types cannot express, written inside `Annotated`.

You need it for fields whose content is not described (`Annotated[dict[str, Any], PreserveUnknown()]`), for the merge
of lists and mappings that several field managers apply, and for objects that Kubernetes defines.
For limits and patterns, use `Field(ge=1, max_length=10, pattern=...)`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pydantic import GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

AS_IS: Final = "x-bonny-as-is"
BUILT_IN: Final = "x-bonny-built-in"
EMBEDDED: Final = "x-kubernetes-embedded-resource"
INT_OR_STRING: Final = "x-kubernetes-int-or-string"
LIST_KEYS: Final = "x-kubernetes-list-map-keys"
LIST_TYPE: Final = "x-kubernetes-list-type"
MAP_TYPE: Final = "x-kubernetes-map-type"
PRESERVE_UNKNOWN: Final = "x-kubernetes-preserve-unknown-fields"

EITHER: Final = [{"type": "integer"}, {"type": "string"}]
"""The only union of a structural schema, that of int-or-string."""


class Keywords:
    """Adds `keywords` to the schema of the annotated field, in place of existing ones; removes the keyword `but`."""

    def __init__(self, keywords: Mapping[str, Any], *, but: str = "") -> None:
        self._keywords = dict(keywords)
        self._but = but

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {**{key: value for key, value in handler(core).items() if key != self._but}, **self._keywords}


class PreserveUnknown(Keywords):
    """The API server keeps the field unchanged: nothing is pruned, and only described fields are checked."""

    def __init__(self) -> None:
        super().__init__({PRESERVE_UNKNOWN: True})


class ListMap(Keywords):
    """A list that is merged by the values of `keys` (wire names): two field managers can each own some of its items.

    No two items may have the same keys. Each key is a scalar field of the items that is required or has a default.
    """

    def __init__(self, *keys: str) -> None:
        super().__init__({LIST_TYPE: "map", LIST_KEYS: list(keys)})


class ListSet(Keywords):
    """A list of unique values that is merged value by value; items are scalars, or atomic lists or mappings."""

    def __init__(self) -> None:
        super().__init__({LIST_TYPE: "set"})


class ListAtomic(Keywords):
    """A list that one field manager owns as a whole: the default, written out for readers of the schema."""

    def __init__(self) -> None:
        super().__init__({LIST_TYPE: "atomic"})


class MapAtomic(Keywords):
    """An object or mapping that one field manager owns as a whole. Without it, each field has its own owner."""

    def __init__(self) -> None:
        super().__init__({MAP_TYPE: "atomic"})


class Embedded(Keywords):
    """On `dict[str, Any]`: a whole object of any kind, with apiVersion and kind; the rest is kept unchecked."""

    def __init__(self) -> None:
        super().__init__({EMBEDDED: True, PRESERVE_UNKNOWN: True})


class Nullable(Keywords):
    """On `X | None` with the default None: null is a value of its own, not the same as a missing field."""

    def __init__(self) -> None:
        super().__init__({"nullable": True})


class AsIs(Keywords):
    """Keywords that Python types cannot express, for the definition as they are: `AsIs({"format": "cidr"})`.

    They replace keywords of the type. Generated classes have them; in your own, prefer limits and `Rule`.
    """

    def __init__(self, keywords: Mapping[str, Any]) -> None:
        super().__init__({AS_IS: dict(keywords)})

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        schema = super().__get_pydantic_json_schema__(core, handler)
        return {key: value for key, value in schema.items() if (key, value) != ("additionalProperties", True)}


def schemas_beside(module: str) -> dict[str, dict[str, Any]]:
    """The schemas in the JSON file beside a module, by name: `SCHEMAS = schemas_beside(__file__)`."""
    schemas: dict[str, dict[str, Any]] = json.loads(Path(module).with_suffix(".json").read_bytes())
    return schemas


class BuiltIn(Keywords):
    """On `dict[str, Any]`: a part of an object that Kubernetes defines, as in `BuiltIn("v1", "PodTemplateSpec")`.

    The API server checks and prunes it by the schema in the table (`bonny_dev.crd.builtin`). The table has no
    descriptions, and none of the limits that Kubernetes checks in its code. `invoke manifest` refuses a type that the
    table lacks.
    """

    def __init__(self, api_version: str, name: str) -> None:
        super().__init__({BUILT_IN: f"{api_version}/{name}"})
