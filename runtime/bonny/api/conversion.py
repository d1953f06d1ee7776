"""Conversion: which kinds have versions whose fields differ, so that functions convert their objects.

You need it to write such a function; `bonny_dev.testing.round_trip` tests it.
You do not need it while the fields are the same: the API server then copies objects unchanged, and calls no function.

A version other than the hub has two plain functions, objects in and objects out:

    class WidgetV1(Version):
        ...
        to_hub = staticmethod(widget_v1_to_v2)
        from_hub = staticmethod(widget_v2_to_v1)

They change spec, status, labels and annotations, never the rest of the metadata; apiVersion is written for them. A
value that the other version cannot hold may be left out: the webhook carries it in an annotation, and brings it back
(`round_trip` names it). They get objects with any fields left out, and do not wait for anything.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from ..resource import Resource
from .markers import BUILT_IN, EMBEDDED, INT_OR_STRING, PRESERVE_UNKNOWN
from .stored import types_of
from .version import Version, object_model

_KEEPS: Final = ("type", "nullable", INT_OR_STRING, PRESERVE_UNKNOWN, EMBEDDED, BUILT_IN)


def converted(versions: Collection[type[Version]]) -> tuple[type[Version], ...]:
    """The hubs of kinds that need the functions: another version has other fields than the hub, and objects in it can
    be read or written, or it has functions already, for the release that will serve it."""
    hubs = {(version.group, version.kind): version for version in versions if version.hub}
    differing = {
        (version.group, version.kind)
        for version in versions
        if (hub := hubs.get((version.group, version.kind)))
        and (version.served or version.storage or has_functions(version))
        and fields_of(types_of(object_model(version).model)) != fields_of(types_of(object_model(hub).model))
    }
    return tuple(hub for key, hub in hubs.items() if key in differing)


def has_functions(version: type[Version]) -> bool:
    """Whether it has both `to_hub` and `from_hub`."""
    return version.to_hub is not Version.to_hub and version.from_hub is not Version.from_hub


def fields_of(schema: Resource) -> Resource:
    """The parts of a schema that decide whether a copy of an object fits another version: names and types of fields,
    unknown fields that are kept, and null where it is a value. Without limits, rules, defaults and enumerations."""
    kept = {name: schema[name] for name in _KEEPS if name in schema}
    below = ("items", "additionalProperties")
    inner = {name: fields_of(schema[name]) for name in below if isinstance(schema.get(name), dict)}
    properties = {name: fields_of(field) for name, field in schema.get("properties", {}).items()}
    return kept | inner | ({"properties": properties} if properties else {})
