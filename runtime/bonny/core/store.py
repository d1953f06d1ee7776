"""Store: the objects of one stream, as the server last showed them.

Keys are (namespace, name); entries keep their UID, so a re-created object of the same name is recognised. It is filled
by the changes of `watch`; each call returns the real differences.

Guarantees: an entry goes back to an older version only if a list that is newer than the entry shows that version: then
the server was restored from a backup. During a list the store keeps the old entries until the sweep.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from ..resource import Key
from .objects import Item
from .watch import Begin, Change, Gone, Put, Sweep

IndexFunction: TypeAlias = Callable[[Item], Iterable[str]]
"""Returns the index values of an object; a lookup finds it by each of them."""


class Delta(NamedTuple):
    """One difference: `old` is None for an addition, `new` for a removal; both differ in UID for a re-creation.

    `live`: an event of the watch, not a difference found by a list, which may hide intermediate states.
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
        """The size of all objects as JSON."""

        self._unlisted: set[Key] = set()
        """Keys that the running list has not shown yet."""

        self.rewritten = False
        """Whether the running list showed an older version of an object than the store had, as after a restore of the
        server from a backup."""

        self._listed = 0
        self._restored = False
        self.indexes: dict[Hashable, tuple[IndexFunction, dict[str, Key | set[Key]]]] = {}
        """Stores may share them. One key is held without a set."""

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Item]:
        return iter(self._items.values())

    def keys(self) -> Iterable[Key]:
        """The keys of all objects."""
        return self._items.keys()

    def get(self, key: Key) -> Item | None:
        """The object, if it is here."""
        return self._items.get(key)

    def apply(self, change: Change) -> Iterable[Delta]:
        """Apply one change; return the differences that it made.

        A sweep, which may be as large as the store, runs while its differences are read, so the reader can pause it.
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

    # --- indexes ---

    def add_index(self, name: Hashable, function: IndexFunction) -> None:
        """Maintain an index called `name` from now on; adding it twice has no effect."""
        if name in self.indexes:
            return
        self.indexes[name] = (function, {})
        for key, item in self._items.items():
            self._index(name, key, None, item)

    def lookup(self, name: Hashable, value: str) -> frozenset[Key]:
        """The keys whose objects have `value` in the index called `name`."""
        keys = self.indexes[name][1].get(value)
        if keys is None:
            return frozenset()
        return frozenset(keys) if isinstance(keys, set) else frozenset((keys,))

    def items(self, name: Hashable = None, value: str = "") -> list[Item]:
        """The objects that have `value` in the index called `name`; without a name all. From any thread."""
        if name is None:
            return list(self._items.values())  # `list(self)` would call `__len__`, where another thread may run
        return [item for item in map(self.get, self.lookup(name, value)) if item is not None]

    def _index(self, name: Hashable, key: Key, old: Item | None, new: Item | None) -> None:
        function, entries = self.indexes[name]
        before = set(function(old)) if old is not None else set()
        after = set(function(new)) if new is not None else set()
        for value in before - after:
            # A user's function may return different values for the same object at different times.
            keys = entries.get(value)
            if isinstance(keys, set):
                keys.discard(key)
            if keys in (key, set()):
                del entries[value]
        for value in after - before:
            keys = entries.setdefault(value, key)
            if isinstance(keys, set):
                keys.add(key)
            elif keys != key:
                entries[value] = {keys, key}

    # --- changes ---

    def _replace(self, key: Key, old: Item | None, new: Item | None) -> None:
        if old is not None:
            self.bytes -= len(old.raw)
        if new is None:
            del self._items[key]
        else:
            self._items[key] = new
            self.bytes += len(new.raw)
        for name in self.indexes:
            self._index(name, key, old, new)

    def _put(self, item: Item, *, live: bool) -> Sequence[Delta]:
        key = item.key
        self._unlisted.discard(key)
        old = self._items.get(key)
        if old is not None and not self._restored:
            if old.meta.resource_version == item.meta.resource_version and old.meta.uid == item.meta.uid:
                return []
            if item.version < old.version:
                if live or self._listed < old.version:
                    return []
                self.rewritten = self.rewritten or item.version > 0
        self._replace(key, old, item)
        return [Delta(key, old, item, live)]

    def _remove(self, item: Item) -> Sequence[Delta]:
        """Remove `item`, unless a newer object has its name."""
        key = item.key
        stored = self._items.get(key)
        if stored is None or (stored.meta.uid != item.meta.uid and stored.version > item.version):
            return []
        self._replace(key, stored, None)
        self._unlisted.discard(key)
        # The event has the last state before the deletion, newer than ours.
        last = item if item.meta.uid == stored.meta.uid else stored
        return [Delta(key, last, None, live=True)]

    def _sweep(self) -> Iterator[Delta]:
        self._restored = False
        while self._unlisted:
            key = self._unlisted.pop()
            old = self._items[key]
            self._replace(key, old, None)
            yield Delta(key, old, None, live=False)
