"""Lost: the values that a conversion loses, and how they come back.

Internal: `bonny.webhooks.conversion` keeps each in an annotation of its own. Everything here is plain values.

A `Loss` is one difference between an object and the same object after a conversion there and back. Objects, and lists
that are merged by keys, differ field by field and item by item, as field managers own them.

It holds the value that was lost, and a digest of the value that came back instead. Later that digest says whether the
user has changed the field in the other version meanwhile: then the user's value stays.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import Annotated, Any, TypeAlias

import msgspec

from ..api.markers import LIST_KEYS, LIST_TYPE
from ..resource import Resource

PathElement: TypeAlias = str | tuple[str | bool | int | float, ...]
"""The name of a field, or the keys of an item; an item of a set is its own key."""

Path: TypeAlias = tuple[PathElement, ...]


class Loss(msgspec.Struct, frozen=True, omit_defaults=True):
    """A value that was lost."""

    path: Annotated[Path, msgspec.Meta(min_length=1)]

    instead: str = ""
    """Digest of the value that came back. Empty: none did."""

    value: Any = msgspec.UNSET
    """Unset: there was none. An object is empty here: each of its fields is a loss of its own."""

    order: tuple[PathElement, ...] | None = None
    """In place of the value of a list that is merged by keys: its keys. Each of its items is a loss of its own."""

    items: tuple[tuple[str, Any], ...] | None = None
    """In place of the value of another list, of which as many items came back: the items that were lost, each after the
    digest of the one that came back. Also an item that was not lost, if an equal one came back for a lost one."""

    whole: str = ""
    """Digest of the object that came back, if the value belongs to no other one."""

    @property
    def removes(self) -> bool:
        """Whether there was no value."""
        return self.value is msgspec.UNSET and self.order is None and self.items is None


def losses(came_back: Resource, was: Resource, schema: Resource) -> list[Loss]:
    """The differences that restore `was` from `came_back`."""
    if _text(came_back) == _text(was):
        return []
    here = dict(_flat(came_back, schema))
    pairs = ((path, here.pop(path, msgspec.UNSET), lost) for path, lost in _flat(was, schema))
    found = [_loss(path, one, lost) for path, one, lost in pairs if _text(one) != _text(lost)]
    return found + [_loss(path, one, msgspec.UNSET) for path, one in here.items()]


def places(lost: Iterable[Loss]) -> set[tuple[Path, str]]:
    """The places of the values, and what came back there."""
    return {(loss.path, loss.instead) for loss in lost}


def restored(content: Resource, lost: Iterable[Loss], schema: Resource) -> Resource:
    """`content` with the lost values, except for fields that were changed meanwhile."""
    flat, changed = dict(_flat(content, schema)), set[Path]()
    for loss in sorted(lost, key=lambda loss: len(loss.path)):
        inside, here = loss.path[:-1], flat.get(loss.path, msgspec.UNSET)
        value = loss.value if loss.order is None else loss.order
        if isinstance(here, list) and loss.items is not None:
            flat[loss.path] = _items(here, loss.items)
        elif inside in changed or digest(here) != loss.instead:
            if not (loss.instead and isinstance(here, tuple)):  # the items that the user added do not replace it
                changed.add(loss.path)
        elif value is msgspec.UNSET:
            flat.pop(loss.path, None)
        # Otherwise the user removed the object or list.
        elif isinstance(flat.get(inside), dict if isinstance(loss.path[-1], str) else tuple):
            flat[loss.path] = value
    made: Resource = _nested(flat)
    return made


def digest(value: Any) -> str:
    """A short text that differs for different values; empty for UNSET."""
    return "" if value is msgspec.UNSET else blake2b(_text(value), digest_size=6).hexdigest()


def _text(value: Any) -> bytes:
    return b"" if value is msgspec.UNSET else msgspec.json.encode(value, order="deterministic")


def _loss(path: Path, here: Any, lost: Any) -> Loss:
    if isinstance(here, list) and isinstance(lost, list) and len(here) == len(lost):
        pairs = [(digest(item), was) for item, was in zip(here, lost, strict=True)]
        changed = {came_back for came_back, was in pairs if came_back != digest(was)}
        return Loss(path, digest(here), items=tuple(pair for pair in pairs if pair[0] in changed))
    return Loss(path, digest(here), order=lost) if isinstance(lost, tuple) else Loss(path, digest(here), lost)


def _items(here: list[Any], pairs: Iterable[tuple[str, Any]]) -> list[Any]:
    """The items, with the lost ones in place of what came back for them, wherever the user moved that."""
    lost: dict[str, deque[Any]] = {}
    for came_back, item in pairs:
        lost.setdefault(came_back, deque()).append(item)
    return [found.popleft() if (found := lost.get(digest(item))) else item for item in here]


def _flat(content: Any, schema: Resource, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Each value with its path. An object is `{}`, and a list that is merged by keys is a tuple of them; the values of
    its fields or items follow."""
    keys = _keys(content, schema) if isinstance(content, list) else None
    yield path, {} if isinstance(content, dict) else content if keys is None else keys
    if isinstance(content, dict):
        fields, other = schema.get("properties", {}), schema.get("additionalProperties")
        for name, value in content.items():
            yield from _flat(value, fields.get(name, other) or {}, (*path, name))
    for key, item in zip(keys, content, strict=True) if keys else ():
        yield from _flat(item, schema["items"], (*path, key))


def _nested(flat: dict[Path, Any]) -> Any:
    """The opposite of `_flat`. A field or item whose object or list is missing was changed by the user, and stays."""
    own, parts = flat.pop((), None), dict[PathElement, Any]()
    for (step, *inside), value in flat.items():
        part = parts.get(step)
        if inside or isinstance(part, dict) or isinstance(value, (dict, tuple)):
            parts[step] = part = part if isinstance(part, dict) else {}
            part[tuple(inside)] = value
        else:
            parts[step] = value  # a dict for each would take much memory
    made = {step: _nested(part) if isinstance(part, dict) else part for step, part in parts.items()}
    if isinstance(own, tuple) or any(isinstance(step, tuple) for step in made):
        order = {step: index for index, step in enumerate(own or ())}
        return [made[step] for step in sorted(made, key=lambda step: order.get(step, len(order)))]
    return made if made or isinstance(own, dict) else own


def _keys(items: list[Any], schema: Resource) -> Path | None:
    """The keys of each item of a list that is merged by them; None if two are the same, or one has none."""
    names = schema.get(LIST_KEYS, ())
    if not names and schema.get(LIST_TYPE) != "set":
        return None
    keys: tuple[Any, ...] = tuple(tuple(map(item.get, names)) if isinstance(item, dict) else (item,) for item in items)
    scalar = all(isinstance(value, str | int | float) for key in keys for value in key)
    return keys if scalar and len(set(keys)) == len(keys) else None
