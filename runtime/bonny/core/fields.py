"""Fields: the fields of an object that a field manager owns, read from managedFields.

Server-side apply records for each manager the paths that it set (`fieldsV1`): `f:name` for a field, `k:{...}` for an
item of a keyed list, `v:...` for an item of a set, `.` for the value itself. `project` reduces an object to these.
Source: structured-merge-diff, fieldpath serialisation.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

# Of a key that a path shows: a user may choose a longer one, and each field below it would repeat it.
LONGEST_KEY: Final = 255
# JSON that does not depend on the order of a mapping's keys.
_text: Final = msgspec.json.Encoder(order="deterministic").encode


def owned_fields(resource: Mapping[str, Any], manager: str, *, subresource: str = "") -> Mapping[str, Any] | None:
    """The fieldsV1 that `manager` applied to `resource`; None if it applied nothing."""
    for entry in resource["metadata"].get("managedFields") or ():
        if (
            entry.get("manager") == manager
            and entry.get("operation") == "Apply"
            and entry.get("subresource", "") == subresource
        ):
            fields: Mapping[str, Any] = entry.get("fieldsV1") or {}
            return fields
    return None


def unowned(value: Mapping[str, Any], owned: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The fields of `value`, without items of lists, that none of `owned` names: the fieldsV1 of field managers."""
    left, owners = {}, dict[str, list[Mapping[str, Any]]]()
    for fields in owned:
        for path, below in fields.items():
            owners.setdefault(path, []).append(below)
    for name, item in value.items():
        inside = owners.get(f"f:{name}")
        if not inside:
            left[name] = item
        elif isinstance(item, dict) and all(fields.keys() - {"."} for fields in inside):
            left[name] = unowned(item, inside)
    return left


def merged(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of both objects; of two that are not objects, that of `other`."""
    both = {
        name: merged(one[name], other[name])
        for name in one.keys() & other.keys()
        if isinstance(one[name], Mapping) and isinstance(other[name], Mapping)
    }
    return {**one, **other, **both}


def project(value: Any, fields: Mapping[str, Any]) -> Any:
    """The part of `value` that `fields` names; missing paths are left out. Linear in the size of both."""
    if not fields or fields.keys() == {"."}:
        # A leaf: an atomic value, an empty map, or an item that is owned as a whole.
        return value
    if isinstance(value, dict):
        # Most owned paths are leaves, which need no call.
        return {
            name[2:]: project(value[name[2:]], sub) if sub else value[name[2:]]
            for name, sub in fields.items()
            if name[:2] == "f:" and name[2:] in value
        }
    if isinstance(value, list):
        return [project(item, fields[element]) for element, item in _selected(value, fields)]
    return value


def _selected(items: list[Any], elements: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The path elements that select an item by key fields, by value or by index, each with its item, in the order of
    the list. Other path elements come from an older schema in which this was not a list.
    """
    selectors: dict[str, dict[bytes, str]] = {"k": {}, "v": {}, "i": {}}
    keys: set[str] = set()
    for element in elements:
        kind, _, text = element.partition(":")
        if kind in selectors:
            path = msgspec.json.decode(text)
            keys.update(path if kind == "k" else ())
            selectors[kind][_text(path)] = element
    for index, item in enumerate(items):
        # A key field that an item lacks is missing from its path, too.
        keyed = {key: item[key] for key in keys if key in item} if isinstance(item, dict) else None
        for kind, path in (("k", keyed), ("v", item), ("i", index)):
            if selectors[kind] and (element := selectors[kind].get(_text(path), "")):
                yield element, item
                break


def same(one: Any, other: Any) -> bool:
    """Whether two JSON values are the same to the API server: 1.0 is 1, but, unlike in Python, True is not."""
    return _text(one) == _text(other) or (one == other and _same_types(one, other))


def _same_types(one: Any, other: Any) -> bool:
    """For two values that are equal in Python: whether their types are, too."""
    if isinstance(one, dict):
        return all(_same_types(item, other[name]) for name, item in one.items())
    if isinstance(one, (list, tuple)):
        return all(map(_same_types, one, other))
    return isinstance(one, bool) == isinstance(other, bool)


def overridden(wanted: Any, live: Any, fields: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """The paths among `fields` where `live` differs from `wanted`; paths that `wanted` lacks are left out.

    List items are shown as `[]`: their keys would quote the object.
    """
    children = {name: sub for name, sub in fields.items() if name != "."}
    if not children and wanted != live:
        yield path
    if isinstance(wanted, Mapping):
        for name, sub in children.items():
            if name.startswith("f:") and name[2:] in wanted:
                live_value = live.get(name[2:]) if isinstance(live, Mapping) else None
                yield from overridden(wanted[name[2:]], live_value, sub, f"{path}.{name[2:LONGEST_KEY]}")
    elif isinstance(wanted, list) and isinstance(live, list):
        items = dict(_selected(live, children))
        for element, item in _selected(wanted, children):
            if element in items:
                yield from overridden(item, items[element], children[element], f"{path}[]")


def digest(value: Any) -> bytes:
    """A short hash of a JSON value that does not depend on the order of its mappings' keys."""
    return hashlib.blake2b(_text(value), digest_size=16).digest()
