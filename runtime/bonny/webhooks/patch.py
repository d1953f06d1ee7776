"""Patch: what `default` changed, as a JSON patch (RFC 6902) of the object that the API server sent.

A typed spec never replaces the one in the object: only the fields that differ after the handler are set there. So
fields that the class does not know, nulls, and numbers like `1.0` stay as they were written.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from ..api.status import Spec
from ..api.stored import as_stored, types_of
from ..core.fields import digest, same
from ..errors import OptionError
from ..resource import Resource
from .review import Review

# The API server obeys: it would create an object of another name than the user asked for.
FIXED: Final = frozenset(
    ("/apiVersion", "/kind", "/metadata", "/metadata/name", "/metadata/namespace", "/metadata/uid")
)
# Of names that people choose. A key of a map may have megabytes.
LONGEST_PATH: Final = 1024


def patch(review: Review[Any], given: Resource) -> list[Resource]:
    """The operations that turn `given`, the object as it came, into what `default` made of it.

    `given` is `review.resource` where only the typed spec may differ. That is dropped, to save memory.
    Left out is what the API server would not store: of a write of the status all but the status, and the other way
    round. Raises: `OptionError` when `default` changed the identity of the object, or set a number that JSON lacks.
    """
    raw = review.resource
    wanted: Resource = {**raw} if given is raw else msgspec.to_builtins(raw, str_keys=True)
    if isinstance(review.given_spec, Spec) and review.version is not None:
        after, review.given_spec = _fields(review.given_spec), None
        _check_numbers(after, "spec")
        before = _fields(review.version.spec_of(given))
        if not same(before, after):
            wanted["spec"] = merge(wanted.get("spec"), before, after)
    elif review.given_spec and "spec" not in given:
        wanted["spec"] = review.given_spec
    operations = list(difference(given, wanted))
    for operation in operations:
        _check_numbers(operation.get("value"), operation["path"])
        if operation["path"] in FIXED:
            raise OptionError(f"default changed {operation['path'][1:].replace('/', '.')}, which identifies the object")
    return [operation for operation in operations if _has_effect(operation["path"].split("/")[1], review)]


def merge(raw: Any, before: Any, after: Any) -> Any:
    """`raw` with the differences between `before` and `after`, which show its fields as a class reads them."""
    if same(before, after):
        return raw
    if isinstance(raw, dict) and isinstance(before, dict) and isinstance(after, dict):
        kept = {name: value for name, value in raw.items() if name not in before or name in after}
        return kept | {
            name: merge(raw.get(name), before.get(name), value)
            for name, value in after.items()
            if name not in before or not same(before[name], value)
        }
    if isinstance(raw, list) and isinstance(before, list) and isinstance(after, list) and len(raw) == len(before):
        return list(_items(raw, before, after))
    return after


def _items(raw: list[Any], before: list[Any], after: list[Any]) -> Iterator[Any]:
    """The items of `after`, each with the fields of the raw item that it was made from.

    That is an equal one, wherever it stood; for the rest the one in order if as many are left, else at the same index.
    """
    places: dict[bytes, deque[int]] = {}
    for index, item in enumerate(before):
        places.setdefault(digest(item), deque()).append(index)
    origins = [found.popleft() if (found := places.get(digest(item))) else None for item in after]
    left = sorted(index for indexes in places.values() for index in indexes)
    changed = [index for index, origin in enumerate(origins) if origin is None]
    pairs = dict(zip(changed, left, strict=True)) if len(changed) == len(left) else {i: i for i in {*changed} & {*left}}
    for index, (origin, item) in enumerate(zip(origins, after, strict=True)):
        place = pairs.get(index) if origin is None else origin
        yield item if place is None else merge(raw[place], before[place], item)


def difference(before: Any, after: Any, path: str = "") -> Iterator[Resource]:
    """The operations that turn `before` into `after`. Lists of different lengths are replaced as a whole, and so is
    what has a long path, which each operation below it would repeat."""
    if before is after or same(before, after):
        return
    if len(path) > LONGEST_PATH:
        yield {"op": "replace", "path": path, "value": after}
    elif isinstance(before, dict) and isinstance(after, dict):
        for name in dict.fromkeys((*before, *after)):
            where = f"{path}/{name.replace('~', '~0').replace('/', '~1')}"
            if name not in after:
                yield {"op": "remove", "path": where}
            elif name not in before:
                yield {"op": "add", "path": where, "value": after[name]}
            else:
                yield from difference(before[name], after[name], where)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from difference(one, other, f"{path}/{index}")
    else:
        yield {"op": "replace", "path": path, "value": after}


def _check_numbers(value: Any, path: str) -> None:
    """Raises: `OptionError` for NaN and infinity, which would be written as null."""
    if isinstance(value, float) and not math.isfinite(value):
        raise OptionError(f"default set {path.strip('/').replace('/', '.')} to {value}, which JSON does not have")
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list | tuple) else ()
    for name, item in items:
        _check_numbers(item, f"{path}/{name}")


def _has_effect(field: str, review: Review[Any]) -> bool:
    if review.subresource == "status":
        return field == "status"
    kept_apart = review.version is not None and review.version.status_subresource
    return bool(review.subresource) or field != "status" or not kept_apart


def _fields(spec: Spec) -> Any:
    """The spec as the API server would store it, so that two of them can be compared."""
    return as_stored(spec.model_dump(mode="json", warnings=False), types_of(type(spec)), prune=False)
