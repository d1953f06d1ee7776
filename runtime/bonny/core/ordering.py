"""Ordering: descendants, and their levels where one comes after another."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple

from ..errors import OptionError
from ..resource import Key, Resource


class ObjectName(NamedTuple):
    """Type and key of an object."""

    gvk: tuple[str, str]
    key: Key

    def __str__(self) -> str:
        """As in messages: `ConfigMap default/w1`."""
        return f"{self.gvk[1]} {self.key}"


@dataclass(frozen=True, slots=True)
class Descendant:
    """An object that must exist as long as the handled object does."""

    name: ObjectName
    resource: Resource
    group: int = 0
    omit_owner_ref: bool = False
    adopt: bool = False
    recreate: bool = False
    after: tuple[ObjectName, ...] = ()
    when: Callable[[Resource], bool] | None = None


def ordered(descendants: Mapping[ObjectName, Descendant]) -> list[Descendant]:
    """The descendants by level; `name` is that in the mapping, `group` the level, also of those after others.

    Raises: as `levels`.
    """
    after = {name: each.after for name, each in descendants.items() if each.after}
    level = {name: each.group for name, each in descendants.items() if not each.after}
    if after:
        level = levels(level, after)
    placed = [
        each if (each.name, each.group) == (name, level[name]) else replace(each, name=name, group=level[name])
        for name, each in descendants.items()
    ]
    return sorted(placed, key=lambda each: each.group)


def levels(
    fixed: Mapping[ObjectName, int], after: Mapping[ObjectName, Collection[ObjectName]]
) -> dict[ObjectName, int]:
    """The level of each object: `fixed`, or one above the highest of the objects that it comes after.

    Raises: `OptionError` for a cycle, and for one that comes after an object that is neither in `fixed` nor in `after`.
    """
    found = dict(fixed)
    try:
        for name in TopologicalSorter(after).static_order():
            if name in after:
                found[name] = 1 + max(found[earlier] for earlier in after[name])
            elif name not in fixed:
                later = next(each for each, earlier in after.items() if name in earlier)
                raise OptionError(f"{later} comes after {name}, which is not registered: register that, too")
    except CycleError as error:
        cycle = " after ".join(map(str, reversed(error.args[1])))
        raise OptionError(f"objects cannot come after each other: {cycle}") from None
    return found
