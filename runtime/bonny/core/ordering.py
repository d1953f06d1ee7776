"""Ordering: the levels of objects of which one comes after another.

You need it to apply level by level, and to delete in the reverse order.
You do not need it to know whether an object is ready: `bonny.steps.apply_order`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import TypeAlias

from ..errors import OptionError
from ..resource import Key

ObjectName: TypeAlias = tuple[str, str, Key]
"""apiVersion, kind and key of an object."""


def text(name: ObjectName) -> str:
    """The name as in messages: `ConfigMap default/w1`."""
    return f"{name[1]} {name[2]}"


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
                later = next(text(each) for each, earlier in after.items() if name in earlier)
                raise OptionError(f"{later} comes after {text(name)}, which is not registered: register that, too")
    except CycleError as error:
        cycle = " after ".join(map(text, reversed(error.args[1])))
        raise OptionError(f"objects cannot come after each other: {cycle}") from None
    return found
