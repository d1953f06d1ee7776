"""Conversion: converts an object from one version of a kind to another, through the hub version.

You need it to write and test conversions between versions whose fields differ.
You do not need it while the fields are the same: the API server then copies objects unchanged.

A version other than the hub has two plain functions, objects in and objects out:

    class WidgetV1(Version):
        ...
        to_hub = staticmethod(widget_v1_to_v2)
        from_hub = staticmethod(widget_v2_to_v1)

They change spec, status, labels and annotations, never the rest of the metadata; `convert` writes apiVersion. Store
values that the hub cannot hold in an annotation, so that a round trip loses nothing (`bonny_dev.testing.round_trip`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from copy import deepcopy
from typing import Any

from ..errors import OptionError
from ..resource import Resource
from .version import Version

_OURS = ("labels", "annotations")


def convert(resource: Mapping[str, Any], source: type[Version], target: type[Version]) -> Resource:
    """A copy of `resource`, an object of `source`, as an object of `target`.

    Raises: `OptionError` when the versions are of different kinds, or a function changes the wrong metadata.
    """
    if source.kind != target.kind or resource.get("kind") != source.kind:
        raise OptionError(f"a {resource.get('kind')} cannot be converted from {source.kind} to {target.kind}")
    converted = deepcopy(dict(resource))
    for function in (() if source.hub else (source.to_hub,)) + (() if target.hub else (target.from_hub,)):
        before = deepcopy(converted)
        converted = function(converted)
        for name in ("kind", "metadata"):
            if _kept(before.get(name)) != _kept(converted.get(name)):
                raise OptionError(
                    f"{function.__qualname__} changes {name} of {source.kind}: a conversion may change spec, status, "
                    "labels and annotations"
                )
    group = str(resource["apiVersion"]).rpartition("/")[0]
    return {**converted, "apiVersion": f"{group}/{target.version}"}


def converted(versions: Collection[type[Version]]) -> tuple[type[Version], ...]:
    """The hubs of the kinds whose versions differ in fields, so that the API server cannot copy objects unchanged."""
    hubs = {(version.group, version.kind): version for version in versions if version.hub}
    differing = {
        (version.group, version.kind): None
        for version in versions
        if not version.hub
        and (hub := hubs.get((version.group, version.kind)))
        and fields_of(version.schema()) != fields_of(hub.schema())
    }
    return tuple(hubs[key] for key in differing)


def fields_of(schema: Any) -> Any:
    """The names and types of the fields in a schema, without limits, rules, defaults and descriptions."""
    if not isinstance(schema, dict):
        return schema
    kept = {name: fields_of(schema[name]) for name in ("items", "additionalProperties") if name in schema}
    properties = {name: fields_of(field) for name, field in schema.get("properties", {}).items()}
    return {"type": schema.get("type"), "properties": properties, **kept}


def _kept(part: Any) -> Any:
    return {key: value for key, value in part.items() if key not in _OURS} if isinstance(part, dict) else part
