"""Schemas: compares the schemas of two releases of one version of a kind.

A stored object was valid before, and a client writes what was valid before: a value that is refused now, or dropped,
breaks them. A value that is allowed in addition breaks neither.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from bonny.resource import Resource

from .changes import Change

# Limits, and whether a higher number allows more.
LIMITS: Final = {
    "minimum": False,
    "minLength": False,
    "minItems": False,
    "minProperties": False,
    "maximum": True,
    "maxLength": True,
    "maxItems": True,
    "maxProperties": True,
}
# Texts and flags that restrict a value: a new or another one may refuse it.
RESTRICTIONS: Final = ("pattern", "format", "multipleOf", "uniqueItems", "exclusiveMinimum", "exclusiveMaximum")
LISTS: Final = ("x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type")
ANY: Final = "x-kubernetes-preserve-unknown-fields"
WHOLE_OR_TEXT: Final = "x-kubernetes-int-or-string"


def compare(old: Resource, new: Resource, path: str = "") -> Iterator[Change]:
    """The changes from `old` to `new`, both schemas of the value at `path`."""
    if (before := _type(old)) != (after := _type(new)) and not _is_wider(before, after):
        yield Change(path, f"was {before} and is {after}: stored values are refused, and so are the writes of clients")
        return
    yield from _enum(old, new, path)
    yield from _limits(old, new, path)
    yield from _rules(old, new, path)
    yield from _fields(old, new, path)
    yield from _required(old, new, path)
    if old.get("nullable") and not new.get("nullable"):
        yield Change(path, "may no longer be null")
    if old.get("default") != new.get("default"):
        change = f"has the default {_shown(new.get('default'))}, which was {_shown(old.get('default'))}"
        yield Change(path, f"{change}: new objects get it, stored ones keep theirs", breaks=False)
    if "items" in old and "items" in new:
        yield from compare(old["items"], new["items"], f"{path}[]")
    values = old.get("additionalProperties"), new.get("additionalProperties")
    if isinstance(values[0], dict) and isinstance(values[1], dict):
        yield from compare(values[0], values[1], f"{path}.*")


def _type(schema: Resource) -> str:
    if schema.get(WHOLE_OR_TEXT):
        return "integer or string"
    return str(schema.get("type", "any value"))


def _is_wider(before: str, after: str) -> bool:
    """Whether each value of the type `before` is one of `after`."""
    return after == "any value" or (before, after) in {
        ("integer", "number"),
        ("integer", "integer or string"),
        ("string", "integer or string"),
    }


def _enum(old: Resource, new: Resource, path: str) -> Iterator[Change]:
    before, after = old.get("enum"), new.get("enum")
    if after is not None:
        gone = after if before is None else [value for value in before if value not in after]
        if before is None:
            yield Change(path, f"takes only {_list(gone)}: before, it took any value")
        elif gone:
            yield Change(path, f"no longer takes {_list(gone)}")
    if before is not None and after is not None and (added := [value for value in after if value not in before]):
        yield Change(path, f"also takes {_list(added)}", breaks=False)


def _limits(old: Resource, new: Resource, path: str) -> Iterator[Change]:
    for name, more_is_wider in LIMITS.items():
        before, after = old.get(name), new.get(name)
        if after is not None and (before is None or (after < before if more_is_wider else after > before)):
            yield Change(path, f"has {name} {after}{_before(before)}")
    for name in RESTRICTIONS:
        before, after = old.get(name), new.get(name)
        if after not in (None, False, before):
            yield Change(path, f"has {name} {_shown(after)}{_before(before)}")
    for name in LISTS:
        before, after = old.get(name), new.get(name)
        if before != after and not (name == LISTS[0] and (before, after) in ((None, "atomic"), ("atomic", None))):
            word = name.removeprefix("x-kubernetes-")
            yield Change(
                path, f"has {word} {_shown(after)}, which was {_shown(before)}: applies merge it in another way"
            )


def _rules(old: Resource, new: Resource, path: str) -> Iterator[Change]:
    known = {each["rule"] for each in old.get("x-kubernetes-validations", ())}
    for each in new.get("x-kubernetes-validations", ()):
        if each["rule"] not in known:
            yield Change(path, f"has the rule {each['rule']!r}, which it had not")


def _fields(old: Resource, new: Resource, path: str) -> Iterator[Change]:
    before, after = old.get("properties", {}), new.get("properties", {})
    free = new.get(ANY) or new.get("additionalProperties")
    for name, schema in before.items():
        field = f"{path}.{name}".removeprefix(".")
        if name in after:
            yield from compare(schema, after[name], field)
        elif not free:
            yield Change(field, "is gone: the API server drops it from stored objects and from the writes of clients")
    for name in after.keys() - before.keys():
        yield Change(f"{path}.{name}".removeprefix("."), "is new", breaks=False)
    if (old.get(ANY) or old.get("additionalProperties")) and not free:
        yield Change(path, "took fields of any name, and drops them now")


def _required(old: Resource, new: Resource, path: str) -> Iterator[Change]:
    before = old.get("required", ())
    for name in new.get("required", ()):
        if name not in before and "default" not in new.get("properties", {}).get(name, {}):
            field = f"{path}.{name}".removeprefix(".")
            yield Change(field, "is required, without a default: objects that lack it are refused")


def _before(value: Any) -> str:
    return ", which it had not" if value is None else f", which was {_shown(value)}"


def _list(values: list[Any]) -> str:
    return ", ".join(map(_shown, values))


def _shown(value: Any) -> str:
    return "none" if value is None else json.dumps(value, ensure_ascii=False)
