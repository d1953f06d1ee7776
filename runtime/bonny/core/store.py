"""Store: the objects of one stream, as the server last told them.

You need it to read what a watch has seen. Keys are (namespace, name); entries keep their UID, so a re-created object of
the same name is recognised. It is filled by the changes of `watch`, and every call returns what really changed.

Guarantees: an entry goes back to an older version only when a list that is newer than the entry shows that one: then
the server's history was rewritten, by a restore from a backup. A list that is under way serves the old entries until
its sweep.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from ..resource import Key
from .objects import Item
from .watch import Begin, Change, Gone, Put, Sweep

IndexFunction: TypeAlias = Callable[[Item], Iterable[str]]
"""Gives the index values of an object; it is found under each of them."""


class Delta(NamedTuple):
    """One difference: `old` is None for an addition, `new` for a removal; both differ in UID for a re-creation.

    `live` tells an event of the watch from a difference that a list found: a list may hide steps in between.
    """

    key: Key
    old: Item | None
    new: Item | None
    live: bool


class Store:
    """Items by key, with indexes on demand."""

    def __init__(self) -> None:
        self._items: dict[Key, Item] = {}
        self.bytes = 0
        """What the objects take as the server wrote them."""

        self._unlisted: set[Key] = set()
        """What the list under way has not shown yet."""

        self.rewritten = False
        """Whether the list under way showed an older version of an object than was known before: the server's history
        is not the one that the store was filled from."""

        self._listed = 0
        self._restored = False
        self._indexes: dict[str, tuple[IndexFunction, dict[str, Key | set[Key]]]] = {}
        """A value that one object has, as UIDs and most others, is held without a set: 200 bytes an object."""

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Item]:
        return iter(self._items.values())

    def keys(self) -> Iterable[Key]:
        return self._items.keys()

    def get(self, key: Key) -> Item | None:
        return self._items.get(key)

    def apply(self, change: Change) -> Iterable[Delta]:
        """Take over one change; return the differences that it made.

        A sweep is carried out as its differences are read, so that the reader can pause: it may be the whole store.
        """
        match change:
            case Put(item, live):
                return self._put(item, live=live)
            case Gone(item):
                return self._remove(item)
            case Begin(version, restored):
                self._unlisted = set(self._items)
                self._listed = version
                self._restored = restored
                self.rewritten = False
                return []
            case Sweep():
                return self._sweep()

    # --- indexes ------------------------------------------------------------------------------------------------------

    def add_index(self, name: str, function: IndexFunction) -> None:
        """Keep an index called `name` from now on; adding it twice is harmless."""
        if name in self._indexes:
            return
        self._indexes[name] = (function, {})
        for key, item in self._items.items():
            self._index(name, key, None, item)

    def lookup(self, name: str, value: str) -> frozenset[Key]:
        """The keys whose objects have `value` in the index called `name`."""
        found = self._indexes[name][1].get(value)
        if found is None:
            return frozenset()
        return frozenset(found) if isinstance(found, set) else frozenset((found,))

    def _index(self, name: str, key: Key, old: Item | None, new: Item | None) -> None:
        function, entries = self._indexes[name]
        before = set(function(old)) if old is not None else set()
        after = set(function(new)) if new is not None else set()
        for value in before - after:
            # A user's function may say something else of the same object today than it said yesterday.
            held = entries.get(value)
            if isinstance(held, set):
                held.discard(key)
            if held in (key, set()):
                del entries[value]
        for value in after - before:
            held_or_none = entries.get(value)
            if held_or_none is None:
                entries[value] = key
            elif isinstance(held_or_none, set):
                held_or_none.add(key)
            else:
                entries[value] = {held_or_none, key}

    # --- changes ------------------------------------------------------------------------------------------------------

    def _replace(self, key: Key, new: Item | None) -> Item | None:
        old = self._items.pop(key, None) if new is None else self._items.get(key)
        if new is not None:
            self._items[key] = new
            self.bytes += len(new.raw)
        if old is not None:
            self.bytes -= len(old.raw)
        for name in self._indexes:
            self._index(name, key, old, new)
        return old

    def _put(self, item: Item, *, live: bool) -> Sequence[Delta]:
        key = item.key
        self._unlisted.discard(key)
        old = self._items.get(key)
        if old is not None and not self._restored:
            if old.meta.resource_version == item.meta.resource_version and old.meta.uid == item.meta.uid:
                return []
            if item.version < old.version and (live or self._listed < old.version):
                return []
            self.rewritten = self.rewritten or 0 < item.version < old.version
        self._replace(key, item)
        return [Delta(key, old, item, live)]

    def _remove(self, item: Item) -> Sequence[Delta]:
        """Remove `item`, unless something newer holds its place."""
        key = item.key
        held = self._items.get(key)
        if held is None or (held.meta.uid != item.meta.uid and held.version > item.version):
            return []
        self._replace(key, None)
        self._unlisted.discard(key)
        # The event's object is the last state before the deletion, newer than what we held.
        last = item if item.meta.uid == held.meta.uid else held
        return [Delta(key, last, None, live=True)]

    def _sweep(self) -> Iterator[Delta]:
        self._restored = False
        lacking, self._unlisted = self._unlisted, set()
        while lacking:
            key = lacking.pop()
            old = self._replace(key, None)
            if old is not None:
                yield Delta(key, old, None, live=False)
