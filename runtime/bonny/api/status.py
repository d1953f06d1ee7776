"""Spec and Status: the two halves of an object, and the parts of a status that all kinds share.

Nested objects are derived from `bonny.api.model.Model`.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal

from pydantic import Field

from ..errors import InvalidObject, OptionError
from ..resource import Resource
from .markers import ListMap
from .model import Model
from .reading import read, unknown
from .stored import as_stored, types_of
from .values import Int64

# A qualified name, as meta/v1 Condition has it.
_CONDITION_TYPE: Final = (
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
)

# `Axn.set_condition` and the runtime write them, each entry by rules of its own.
_NOT_BY_FIELD: Final = frozenset(("conditions", "observed_generation"))


class Spec(Model):
    """The desired state, written by users. Fields without a default are required."""


class Status(Model):
    """The observed state, written by the operator. Every field needs a default: objects start without a status.

    `class RouteStatus(Status, required=("parents",))` lets the API server refuse a status without these fields (wire
    names). Every write needs them then, also a write of the runtime: give them with `axn.update_status` each time.
    """

    __required__: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, *, required: tuple[str, ...] = (), **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        cls.__required__ = tuple(dict.fromkeys((*cls.__required__, *required)))

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        for name, field in cls.model_fields.items():
            if field.is_required():
                raise OptionError(
                    f"class {cls.__qualname__} in {cls.__module__}: {name} has no default, and an object starts "
                    f"without a status: write for example `{name}: int | None = None`"
                )

    if not TYPE_CHECKING:  # type checkers find an unknown field themselves

        def __new__(cls, **fields: Any) -> Status:
            """Raises: `InvalidObject` for an unknown field. Only code names fields here; reading passes none."""
            names = {name for field, info in cls.model_fields.items() for name in (field, info.alias)}
            if misspelt := sorted(fields.keys() - names):
                raise InvalidObject(f"{cls.__name__}.{misspelt[0]}: {unknown(misspelt[0], cls.model_fields)}")
            return super().__new__(cls)


class Condition(Model):
    """One aspect of the current state, in the form that all of Kubernetes shares (meta/v1 Condition)."""

    type: Annotated[str, Field(max_length=316, pattern=_CONDITION_TYPE)]
    """The aspect, in CamelCase: `Ready`."""

    status: Literal["True", "False", "Unknown"]
    """Whether it holds."""

    observed_generation: Annotated[Int64, Field(ge=0)] | None = None
    """The metadata.generation that the condition was set for."""

    last_transition_time: datetime
    """When the status last changed."""

    reason: Annotated[str, Field(min_length=1, max_length=1024, pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$")]
    """The reason for the last change, as one word in CamelCase."""

    message: Annotated[str, Field(max_length=32768)]
    """The details, for people; may be empty."""


class WithConditions(Model):
    """Mixin of a status that holds conditions, such as Ready."""

    conditions: Annotated[list[Condition], ListMap("type")] = Field(default_factory=list)
    """Latest observations of the state, one of each type."""


class WithObservedGeneration(Model):
    """Mixin of a status that holds the last reconciled generation."""

    observed_generation: Annotated[Int64, Field(ge=0)] | None = None
    """The last reconciled metadata.generation."""


def change_by(status: Status) -> Callable[[Resource], Resource]:
    """The change that sets the fields that were given to `status`; a field that was given None is removed.

    Raises: `InvalidObject` with the fields that do not fit, never their content.
    """
    given = status.model_dump(mode="json", exclude_unset=True, exclude=set(_NOT_BY_FIELD), warnings=False)
    stored = as_stored(given, types_of(type(status)), prune=False)
    read(type(status), stored, where="status")
    fields = {name: stored[name] for name in given if name in stored}
    return lambda before: {name: value for name, value in before.items() if name not in given} | fields
