"""Census: how much stands in the mutable containers that can be reached from an object, by where they are.

A structure that forgets what is gone has the same census after any number of events.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from types import FunctionType, MethodType, ModuleType
from typing import Any

# What is shared by everything, or is nobody's state.
STRANGERS = (type, ModuleType, FunctionType, asyncio.AbstractEventLoop, logging.Logger)
PLAIN = (str, bytes, int, float, complex, bool, type(None))
GROWING = (dict, list, set, deque, bytearray)


def census(root: object) -> Counter[str]:
    """The elements in all containers of each path, taken together: `._entries` is one, `._entries[]._waiting` many."""
    counted: Counter[str] = Counter()
    seen: set[int] = set()
    # What is looked at stays alive until the end, so that no id is used twice.
    waiting: list[tuple[str, object]] = [("", root)]
    kept: list[object] = []
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, (*PLAIN, *STRANGERS)) or id(value) in seen:
            continue
        seen.add(id(value))
        kept.append(value)
        if isinstance(value, GROWING):
            counted[path] += len(value)
        waiting += [(f"{path}{step}", part) for step, part in _parts(value)]
    return counted


def _parts(value: Any) -> Iterator[tuple[str, object]]:
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield "[key]", key
            yield "[]", part
    elif isinstance(value, list | tuple | set | frozenset | deque):
        for part in value:
            yield "[]", part
    if isinstance(value, MethodType):
        yield ".self", value.__self__
    yield from ((f".{name}", part) for name, part in getattr(value, "__dict__", {}).items())
    # Of slots and of msgspec's fields, neither of which stands in a `__dict__`.
    slots = (slot for known in type(value).__mro__ for slot in _names(getattr(known, "__slots__", ())))
    for name in {*slots, *getattr(type(value), "__struct_fields__", ())} - {"__dict__", "__weakref__"}:
        if hasattr(value, name):
            yield f".{name}", getattr(value, name)


def _names(slots: Any) -> tuple[str, ...]:
    return (slots,) if isinstance(slots, str) else tuple(slots)


def grown(before: Counter[str], after: Counter[str], *, by: int) -> dict[str, tuple[int, int]]:
    """What holds more than twice as much as before, and more than `by` beyond that: the path, then and now."""
    return {path: (before[path], now) for path, now in after.items() if now > 2 * before[path] + by}
