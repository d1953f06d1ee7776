"""Schemas: a Hypothesis strategy for models with fields of any types and markers that fit together.

You need it to ask the API server whether it takes whatever schema is made.
"""

from __future__ import annotations

from datetime import date, datetime
from ipaddress import IPv4Address
from typing import Annotated, Any, Literal
from uuid import UUID

from hypothesis import strategies as st
from pydantic import ConfigDict, create_model

from bonny.api import (
    IMMUTABLE,
    Base64,
    BuiltIn,
    Duration,
    Embedded,
    Field,
    Int32,
    IntOrString,
    ListAtomic,
    ListMap,
    ListSet,
    MapAtomic,
    Model,
    PreserveUnknown,
    Quantity,
    Rule,
    Spec,
)
from bonny.errors import OptionError
from bonny_dev.crd.schema import structural
from bonny_dev.crd.schema_checks import check

__all__ = ["specs_of_any_shape"]

# True of everything: only the API server evaluates rules.
RULE = Rule("self == self", message="must be itself")
SCALARS: tuple[Any, ...] = (
    *(int, float, bool, str, datetime, date, UUID, IPv4Address, Int32, Quantity, Duration, IntOrString),
    Literal["a", "b"],
    Literal[1, 2, 3],
    Annotated[int, Field(ge=1, le=9)],
    Annotated[int, Field(multiple_of=3)],
    Annotated[float, Field(gt=0, lt=2)],
    Annotated[str, Field(min_length=1, max_length=3), RULE],
    Annotated[str, Field(pattern=r"^[a-z]([-a-z0-9]*[a-z0-9])?$", max_length=9)],
    Annotated[str, Field(pattern=r"^(?:x|\.){2,3}$")],
    Annotated[str, Field(pattern=r"^\S+\d?$")],
    Annotated[IntOrString, Field(pattern=r"^\d+%?$")],
    Base64,
)
WHOLE: tuple[Any, ...] = (
    Annotated[Any, PreserveUnknown()],
    Annotated[dict[str, Any], PreserveUnknown()],
    Annotated[dict[str, Any], Embedded()],
    Annotated[dict[str, Any], BuiltIn("v1", "SecretKeySelector")],
    Annotated[dict[str, Any], BuiltIn("v1", "Probe")],
    Annotated[dict[str, Any], BuiltIn("meta/v1", "LabelSelector")],
)
DEPTH = 3


class _ModelShape(Model):
    """Read without docstrings: looking for those of a made class takes most of the time to make it."""

    model_config = ConfigDict(use_attribute_docstrings=False)


class _SpecShape(Spec):
    """As above."""

    model_config = ConfigDict(use_attribute_docstrings=False)


def specs_of_any_shape() -> st.SearchStrategy[type[Spec]]:
    """A spec with some fields, some of them nested."""
    return _models(_SpecShape, DEPTH).filter(_can_be_expressed)


def _can_be_expressed(spec: type[Spec]) -> bool:
    """Rules cannot stand on lists of just anything."""
    try:
        schema = structural(spec, where="spec")
    except OptionError:
        return False
    try:
        check(schema, "spec")
    except OptionError as refusal:
        return "stands on a field whose content has no type" not in str(refusal)
    return True


@st.composite
def _models(draw: st.DrawFn, base: type[Model], depth: int, **fields: Any) -> Any:
    for index in range(draw(st.integers(1, 4 if depth < DEPTH else 12))):
        annotation = draw(_annotations(depth))
        match draw(st.sampled_from(("required", "optional", "immutable"))):
            case "required":
                fields[f"field_{index}"] = (annotation, ...)
            case "optional":
                fields[f"field_{index}"] = (annotation | None, None)
            case "immutable" if depth == DEPTH and annotation not in WHOLE:
                fields[f"field_{index}"] = (Annotated[annotation, IMMUTABLE], ...)
    return create_model("Shape", __base__=base, **fields)


@st.composite
def _annotations(draw: st.DrawFn, depth: int) -> Any:
    if depth == 0:
        return draw(st.sampled_from(SCALARS))
    sized = Field(min_length=draw(st.integers(0, 1)), max_length=draw(st.integers(2, 4)))
    match draw(st.sampled_from(("scalar", "scalar", "whole", "list", "set", "mapping", "model", "map"))):
        case "scalar":
            return draw(st.sampled_from(SCALARS))
        case "whole":
            return draw(st.sampled_from(WHOLE))
        case "list":
            return Annotated[list[draw(_annotations(depth - 1))], ListAtomic(), sized]
        case "set":
            return Annotated[list[draw(st.sampled_from(SCALARS))], ListSet()]
        case "mapping":
            return Annotated[dict[str, draw(_annotations(depth - 1))], sized]
        case "model":
            model = draw(_models(_ModelShape, depth - 1))
            return draw(st.sampled_from((model, Annotated[model, MapAtomic()])))
        case _:
            return Annotated[list[draw(_models(_ModelShape, depth - 1, key=(str, ...)))], ListMap("key")]
