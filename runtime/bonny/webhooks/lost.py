"""Lost: the values that a conversion loses, and how they come back.

Internal: `bonny.webhooks.conversion` keeps them in an annotation. Everything here is plain values.

A `Loss` is one difference between an object and the same object after a conversion there and back. It names the place
by its keys, and holds the value that was lost, and a digest of the value that came back instead. Later that digest says
whether the user has changed the field in the other version meanwhile: then the user's value stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import Any

import msgspec

from ..api.markers import LIST_KEYS
from ..resource import Resource


class Loss(msgspec.Struct, frozen=True, omit_defaults=True):
    """A value that was lost. Of a list of equal length, only the items that were lost."""

    path: tuple[str | dict[str, Any], ...]
    """Names of fields; a mapping stands for the item of a list that has these keys."""

    instead: str = ""
    """Digest of the value that came back. Empty: none did."""

    value: Any = msgspec.UNSET
    """Unset: there was none."""

    items: tuple[tuple[str, Any] | None, ...] | None = None
    """For each item of the list, the digest of what came back and the item that was lost; None: nothing was."""

    @property
    def known_by(self) -> bytes:
        """The place, and the value that came back."""
        return msgspec.json.encode((self.path, self.instead))


def losses(came_back: Any, was: Any, schema: Resource, path: tuple[Any, ...] = ()) -> Iterator[Loss]:
    """The differences that restore `was` from `came_back`; UNSET stands for no value."""
    if isinstance(came_back, dict) and isinstance(was, dict):
        fields, other = schema.get("properties", {}), schema.get("additionalProperties")
        for name in sorted(came_back.keys() | was.keys()):
            values = (came_back.get(name, msgspec.UNSET), was.get(name, msgspec.UNSET))
            yield from losses(*values, fields.get(name, other) or {}, (*path, name))
    elif (instead := digest(came_back)) == digest(was):
        return
    elif not (isinstance(came_back, list) and isinstance(was, list) and len(came_back) == len(was)):
        yield Loss(path, instead, was)
    elif (keys := _keys(came_back, schema)) and keys == _keys(was, schema):
        for key, item, lost in zip(keys, came_back, was, strict=True):
            yield from losses(item, lost, schema["items"], (*path, key))
    else:
        pairs = [(digest(item), lost) for item, lost in zip(came_back, was, strict=True)]
        yield Loss(path, instead, items=tuple(None if pair[0] == digest(pair[1]) else pair for pair in pairs))


def restored(content: Resource, lost: Iterable[Loss]) -> Resource:
    """A copy of `content` with the lost values, except for fields that were changed meanwhile."""
    made: Resource = msgspec.json.decode(msgspec.json.encode(content))
    for loss in lost:
        _restore(made, loss)
    return made


def digest(value: Any) -> str:
    """A short text that differs for different values; empty for UNSET."""
    if value is msgspec.UNSET:
        return ""
    return blake2b(msgspec.json.encode(value, order="deterministic"), digest_size=6).hexdigest()


def _restore(content: Resource, loss: Loss) -> None:
    parent: Any = content
    for step in loss.path[:-1]:
        parent = _inner(parent, step)
    name = loss.path[-1] if loss.path else None
    if not isinstance(parent, dict) or not isinstance(name, str):
        return  # the user removed what it belongs to
    here = parent.get(name, msgspec.UNSET)
    if loss.items is not None and isinstance(here, list):
        unchanged = digest(here) == loss.instead
        lost = [pair for pair in loss.items if pair is not None]
        for index, item in enumerate(here):
            if unchanged and len(here) == len(loss.items):
                pair = loss.items[index]
            else:
                pair = next((each for each in lost if each[0] == digest(item)), None)
            if pair is not None:
                here[index] = pair[1]
                lost.remove(pair)
    elif digest(here) == loss.instead and loss.value is msgspec.UNSET:
        parent.pop(name, None)
    elif digest(here) == loss.instead:
        parent[name] = loss.value


def _inner(parent: Any, step: str | dict[str, Any]) -> Any:
    if isinstance(step, str):
        return parent.get(step) if isinstance(parent, dict) else None
    items = parent if isinstance(parent, list) else ()
    return next((item for item in items if isinstance(item, dict) and step.items() <= item.items()), None)


def _keys(items: list[Any], schema: Resource) -> list[Resource] | None:
    """The keys of each item of a list that is merged by keys; None if two are the same, or one has none."""
    names = schema.get(LIST_KEYS)
    if not names or not all(isinstance(item, dict) and item.keys() >= set(names) for item in items):
        return None
    keys = [{name: item[name] for name in names} for item in items]
    return keys if len({digest(key) for key in keys}) == len(keys) else None
