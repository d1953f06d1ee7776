"""Managed fields: rewrites metadata.managedFields for another version of a kind.

You need it before a version leaves a CustomResourceDefinition. An entry of managedFields has the version in which a
field manager wrote, and the paths of the fields that it owns, as in `{"f:spec": {"f:size": {}}}`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeAlias

from bonny.resource import Resource

# The schema of the fields of every object, such as labels.
ANYTHING: Final = {"x-kubernetes-preserve-unknown-fields": True}

Fields: TypeAlias = dict[str, Any]
"""`fieldsV1` of an entry."""


def relabelled(
    entries: Iterable[Resource], goes: Callable[[Resource], bool], api_version: str, schema: Resource
) -> list[Resource]:
    """`entries` with `api_version` in those for which `goes` is true, less the fields that its `schema` lacks.

    Entries without a field are left out.
    """
    merged: dict[Any, Resource] = {}
    for each in entries:
        entry = each
        if goes(each):
            entry = {**each, "apiVersion": api_version, "fieldsV1": fitting(each["fieldsV1"], schema)}
        # A manager that updated in two versions has two entries. Of two equal ones, the API server keeps the last.
        manager = tuple(map(entry.get, ("manager", "operation", "apiVersion", "subresource")))
        former = merged.get(manager, {"fieldsV1": {}})
        if entry["fieldsV1"]:
            merged[manager] = {**entry, "fieldsV1": union(former["fieldsV1"], entry["fieldsV1"])}
    return list(merged.values())


def fitting(fields: Fields, schema: Resource) -> Fields:
    """The part of `fields` that an object of `schema` can have."""
    kept = {}
    for step, inner in fields.items():
        below = _below(schema, step)
        if below is not None and (not inner or (inner := fitting(inner, below))):
            kept[step] = inner
    return kept


def _below(schema: Resource, step: str) -> Resource | None:
    """The schema one step of a path further: `f:NAME`, `k:{KEYS}`, `v:VALUE`, `i:INDEX` or `.`; None if it has none."""
    if schema.get("x-kubernetes-preserve-unknown-fields") or schema.get("x-kubernetes-embedded-resource"):
        return ANYTHING
    mark, _, name = step.partition(":")
    if mark == "f":
        below = schema.get("properties", {}).get(name, schema.get("additionalProperties"))
        return ANYTHING if below is True else below
    if mark == "k" and json.loads(name).keys() != {*schema.get("x-kubernetes-list-map-keys", ())}:
        return None
    return schema if mark == "." else schema.get("items")


def union(left: Fields, right: Fields) -> Fields:
    """The paths of both."""
    return {step: union(left.get(step, {}), right.get(step, {})) for step in {**left, **right}}
