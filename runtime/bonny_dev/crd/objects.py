"""Objects: whether the API server would accept an object of your own kind, or a status of it.

You need it in tests and tools: `check_object(Widget, widget)`.
You do not need it in a running operator: there the API server has checked each object.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import msgspec

from bonny.api.markers import PRESERVE_UNKNOWN
from bonny.api.reading import sentence
from bonny.api.status import Status
from bonny.api.stored import TAKEN, as_stored
from bonny.api.version import Version
from bonny.errors import InvalidObject
from bonny.resource import Resource

from .schema import schema_of, structural
from .validation import problems


def check_object(version: type[Version], resource: Mapping[str, Any], *, strict: bool = False) -> Resource:
    """A copy of `resource` as the API server would store it: without nulls and unknown fields, with defaults.

    `strict` refuses unknown fields instead, as kubectl does; default False, as the API server.
    Does not: evaluate rules in CEL, or check metadata. Raises: `InvalidObject` with the fields.
    """
    given: Resource = msgspec.to_builtins(resource)
    schema = schema_of(version)
    schema["properties"] |= {name: {PRESERVE_UNKNOWN: True} for name in TAKEN}
    stored: Resource = as_stored(given, schema, prune=not strict)
    if errors := sentence(error.removeprefix(".") for error in problems(stored, schema, "", strict=strict)):
        raise InvalidObject(errors)
    return stored


def check_status(status: Resource, model: type[Status]) -> None:
    """Check a status in the form in which it is sent: there, null is not the same as absent.

    Raises: `InvalidObject` with the fields that are unknown or do not fit, never their content.
    """
    if errors := sentence(problems(status, _schema(model), "status", strict=True)):
        raise InvalidObject(errors)


@cache
def _schema(model: type[Status]) -> Resource:
    return structural(model, where=model.__name__)
