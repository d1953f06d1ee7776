"""Fields: what a manager owns of an object, read from managedFields.

Server-side apply records for each manager the paths that it set (`fieldsV1`): `f:name` for a field, `k:{...}` for an
item of a keyed list, `v:...` for an item of a set, `.` for the thing itself. `project` cuts an object down to these.
You need it to tell whether a live object still has what we applied, and what we once wrote into a status.
Source: structured-merge-diff, fieldpath serialisation.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

__all__ = ["digest", "owned_fields", "project"]


def owned_fields(resource: Mapping[str, Any], manager: str, *, subresource: str = "") -> Mapping[str, Any] | None:
    """The fieldsV1 of what `manager` applied to `resource`; None if it applied nothing."""
    for entry in resource["metadata"].get("managedFields") or ():
        if (
            entry.get("manager") == manager
            and entry.get("operation") == "Apply"
            and entry.get("subresource", "") == subresource
        ):
            fields: Mapping[str, Any] = entry.get("fieldsV1") or {}
            return fields
    return None


def project(value: Any, fields: Mapping[str, Any]) -> Any:
    """The part of `value` that `fields` names; paths that `value` lacks are left out."""
    children = {name: sub for name, sub in fields.items() if name != "."}
    if not children:
        # A leaf: an atomic value, an empty map, or an item that is owned as a whole.
        return value
    if isinstance(value, Mapping):
        return {
            name[2:]: project(value[name[2:]], sub)
            for name, sub in children.items()
            if name.startswith("f:") and name[2:] in value
        }
    if isinstance(value, list):
        # In the order of the list, so that what we applied and what is live can be compared. Other names are leftovers
        # of a schema in which this was no list.
        named = [_element(name, sub) for name, sub in children.items() if name[:2] in ("k:", "v:", "i:")]
        return [project(item, sub) for index, item in enumerate(value) for wanted, sub in named if wanted(index, item)]
    return value


def _element(name: str, fields: Mapping[str, Any]) -> tuple[Callable[[int, Any], bool], Mapping[str, Any]]:
    """What one path element selects of a list: by key fields, by value, or by index; and the fields of its items."""
    kind, _, text = name.partition(":")
    wanted = msgspec.json.decode(text)
    if kind == "k":
        return lambda _, item: isinstance(item, Mapping) and wanted.items() <= item.items(), fields
    if kind == "v":
        return lambda _, item: bool(item == wanted), fields
    return lambda index, _: bool(index == wanted), fields


def digest(value: Any) -> bytes:
    """A short hash of a JSON value that does not depend on the order of its mappings' keys."""
    return hashlib.blake2b(msgspec.json.encode(value, order="deterministic"), digest_size=16).digest()
