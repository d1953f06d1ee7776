"""Writing: the change that a typed status makes to a stored one.

You need it to know what `axn.update_status(WidgetStatus(...))` does.
You do not need it in handlers.
Elsewhere: typed values from stored objects (`reading`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Final

from ..errors import InvalidObject
from ..resource import Resource
from .schema import structural
from .status import Status
from .validation import as_stored, problems, sentence

# `Axn.set_condition` and the runtime write them, each entry by rules of its own.
_NOT_BY_FIELD: Final = frozenset(("conditions", "observed_generation"))


def change_by(status: Status) -> Callable[[Resource], Resource]:
    """The change that sets the fields that were given to `status`; a field that was given None is removed.

    Raises: `InvalidObject` with the fields that do not fit, never their content.
    """
    schema = _schema(type(status))
    given = status.model_dump(mode="json", exclude_unset=True, exclude=set(_NOT_BY_FIELD), warnings=False)
    stored = as_stored(given, schema, prune=False)
    _check(stored, schema)
    fields = {name: stored[name] for name in given if name in stored}
    return lambda before: {name: value for name, value in before.items() if name not in given} | fields


def check_status(status: Resource, model: type[Status]) -> None:
    """Check a status in the form in which it is sent: there, null is not the same as absent.

    Raises: `InvalidObject` with the fields that are unknown or do not fit, never their content.
    """
    _check(status, _schema(model))


def _check(status: Resource, schema: Resource) -> None:
    if errors := sentence(problems(status, schema, "status", strict=True)):
        raise InvalidObject(errors)


@cache
def _schema(model: type[Status]) -> Resource:
    return structural(model, where=model.__name__)
