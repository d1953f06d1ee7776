"""Writing: the change that a typed status makes to a stored one.

You need it to understand the effect of `axn.update_status(WidgetStatus(...))`.
You do not need it in handlers.
Elsewhere: typed values from stored objects (`reading`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ..resource import Resource
from .reading import read
from .status import Status
from .stored import as_stored, types_of

# `Axn.set_condition` and the runtime write them, each entry by rules of its own.
_NOT_BY_FIELD: Final = frozenset(("conditions", "observed_generation"))


def change_by(status: Status) -> Callable[[Resource], Resource]:
    """The change that sets the fields that were given to `status`; a field that was given None is removed.

    Raises: `InvalidObject` with the fields that do not fit, never their content.
    """
    given = status.model_dump(mode="json", exclude_unset=True, exclude=set(_NOT_BY_FIELD), warnings=False)
    stored = as_stored(given, types_of(type(status)), prune=False)
    read(type(status), stored, where="status")
    fields = {name: stored[name] for name in given if name in stored}
    return lambda before: {name: value for name, value in before.items() if name not in given} | fields
