"""Changes: the paths of the fields that each write of the operator changed, as the watches of the page saw it.

`+spec.size` is new, `~spec.size` got another value, `-spec.size` is gone; items of lists are `[]`. Only paths are kept,
and of a Secret nothing but its metadata is read. `managedFields` shows the operator's fields and its own
writes. Writes before the page was served are unknown.
"""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice
from typing import Any, Final

from bonny.client.request import path_of
from bonny.core.fields import project
from bonny.core.store import Delta
from bonny.engine.stream import Stream
from bonny.errors import InvalidObject
from bonny.kinds import Kind
from bonny.resource import Resource, printable

# Of one object. An operator remembers as many runs.
KEPT: Final = 10
OBJECTS: Final = 5_000
# Of one write; the rest are counted.
PATHS: Final = 20
# An object that is larger is not compared: a person waits for the page meanwhile.
LARGEST: Final = 2**20
HIDDEN: Final = "~ more, perhaps: of this kind only the metadata is read"


class Changes:
    """Subscribes to streams; `of` returns the changes that it saw at a path of the API."""

    def __init__(self, operator: str) -> None:
        self._ours = f"{operator}/"
        self._seen: OrderedDict[str, deque[tuple[float, list[str]]]] = OrderedDict()
        self.since = time.time()

    def of(self, path: str) -> list[tuple[float, list[str]]]:
        """When an object at a path was changed by the operator (wall clock), and which fields; the oldest first."""
        return list(self._seen.get(path, ()))

    def seen(self, stream: Stream, delta: Delta) -> None:
        """Note a change by the operator."""
        item, old = delta.new, delta.old
        if item is None or not delta.live or len(item.raw) > LARGEST:
            return
        with suppress(InvalidObject):
            live, before = item.decode(), {} if old is None else old.decode()
            for subresource, fields in written(live, before, self._ours):
                self._note(path_of(stream.kind, delta.key.namespace, delta.key.name, subresource), stream.kind, fields)

    def advanced(self, stream: Stream) -> None:
        """Nothing is done."""

    def restored(self, stream: Stream) -> None:
        """Nothing is done."""

    def _note(self, path: str, kind: Kind, fields: list[str]) -> None:
        known = self._seen.setdefault(path, deque(maxlen=KEPT))
        known.append((time.time(), [*fields, *([HIDDEN] if kind.metadata_only else [])]))
        self._seen.move_to_end(path)
        if len(self._seen) > OBJECTS:
            self._seen.popitem(last=False)


def written(live: Resource, before: Resource, ours: str) -> Iterator[tuple[str, list[str]]]:
    """The writes by managers that begin with `ours`: their subresource, and the paths of the fields they changed.

    Another manager's write may take fields from an entry of ours, whose time stays then.
    """
    earlier = {_name(each): each for each in _entries(before)}
    entries = {_name(each): each for each in _entries(live)}
    foreign = any(each != earlier.get(name) for name, each in entries.items() if not _is_ours(each, ours))
    for name, entry in entries.items():
        last = earlier.get(name, {})
        if not _is_ours(entry, ours) or (foreign and entry.get("time") == last.get("time")):
            continue
        found = changes(_part(live, entry.get("fieldsV1") or {}), _part(before, last.get("fieldsV1") or {}))
        shown = [printable(each) for each in islice(found, PATHS)]
        more = sum(1 for _ in found)
        if shown or entry != last:
            yield entry.get("subresource", ""), [*shown, *([f"and {more} more"] if more else [])]


def _is_ours(entry: Mapping[str, Any], ours: str) -> bool:
    return str(entry.get("manager")).startswith(ours)


def _entries(resource: Resource) -> list[Resource]:
    return (resource.get("metadata") or {}).get("managedFields") or []


def _name(entry: Mapping[str, Any]) -> tuple[Any, ...]:
    return entry.get("manager"), entry.get("operation"), entry.get("subresource", "")


def _part(resource: Resource, fields: Mapping[str, Any]) -> Any:
    return project(resource, fields) if fields else {}


def changes(now: Any, before: Any, path: str = "") -> Iterator[str]:
    """The paths where two values differ."""
    if isinstance(now, dict) and isinstance(before, dict):
        for name in before | now:
            where = f"{path}.{name}" if path else name
            if name in now and name in before:
                yield from changes(now[name], before[name], where)
            else:
                yield f"{'+' if name in now else '-'}{where}"
    elif isinstance(now, list) and isinstance(before, list) and len(now) == len(before):
        for one, other in zip(now, before, strict=True):
            yield from changes(one, other, f"{path}[]")
    elif now != before:
        yield f"~{path}"
