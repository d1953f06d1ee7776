"""Markers: what Python types cannot say about a field of a schema, written inside `Annotated`.

You need it for fields whose content is not described (`Annotated[dict[str, Any], PreserveUnknown()]`).
You do not need it for limits and patterns: `Field(ge=1, max_length=10, pattern=...)` says those.
"""

from __future__ import annotations

from typing import Any

from pydantic import GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

__all__ = ["ListMap", "PreserveUnknown"]


class _Keywords:
    """Adds keywords to the schema of the annotated field."""

    def __init__(self, keywords: dict[str, Any]) -> None:
        self._keywords = keywords

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {**handler(core), **self._keywords}


class PreserveUnknown(_Keywords):
    """The API server keeps the field as it is given: nothing is pruned, nothing inside is checked."""

    def __init__(self) -> None:
        super().__init__({"x-kubernetes-preserve-unknown-fields": True})


class ListMap(_Keywords):
    """A list that is merged by the values of `keys`: two field managers can each own some of its items."""

    def __init__(self, *keys: str) -> None:
        super().__init__({"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)})
