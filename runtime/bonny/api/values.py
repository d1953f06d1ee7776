"""Values: types of fields whose wire form is Kubernetes' own.

You need it for amounts (`Quantity`), spans of time (`Duration`), ports that may have a name (`IntOrString`) and
integers of a certain width.
You do not need it for times, addresses and UUIDs: annotate with `datetime`, `date`, `IPv4Address`, `IPv6Address`,
`UUID`.

`Quantity` and `Duration` are strings that keep their spelling, so that they can be handed on to other objects as they
are; `value` and `seconds` tell what they mean.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Annotated, Any, ClassVar, Final, Self, TypeAlias

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from ..errors import OptionError
from .markers import INT_OR_STRING, Keywords

__all__ = ["Duration", "Int32", "Int64", "IntOrString", "Quantity"]

_EITHER: Final = {"anyOf": [{"type": "integer"}, {"type": "string"}], INT_OR_STRING: True}

IntOrString: TypeAlias = Annotated[int | str, Keywords(_EITHER)]
"""A number or a string, such as a port and its name, or `25%`."""

Int32: TypeAlias = Annotated[int, Keywords({"format": "int32"})]
"""An integer of 32 bits. API servers before 1.36 check it only by limits: add `Field(ge=..., le=...)`."""

Int64: TypeAlias = Annotated[int, Keywords({"format": "int64"})]
"""An integer of 64 bits, which is what a plain `int` is, too; said for those who generate code from the schema."""

# As Kubernetes reads quantities (k8s.io/apimachinery, pkg/api/resource); exponents of more than 3 digits mean nothing.
_QUANTITY: Final = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)(([KMGTPE]i)|[numkMGTPE]|([eE][+-]?[0-9]{1,3}))?$"
_QUANTITY_PARTS: Final = re.compile(r"(?P<number>[+-]?[0-9.]+)(?P<suffix>[KMGTPE]i|[numkMGTPE]?)(?P<exponent>[eE].*)?")
_MULTIPLES: Final = {
    **{suffix: Decimal(10) ** (3 * power) for power, suffix in enumerate(("n", "u", "m", "", "k", *"MGTPE"), start=-3)},
    **{f"{suffix}i": Decimal(1024) ** power for power, suffix in enumerate("KMGTPE", start=1)},
}

# The part of Go's durations that people write; the limit on digits keeps every one within a float's exact range.
_DURATION: Final = r"^([0-9]{1,9}(\.[0-9]{1,9})?(h|m|s|ms))+$"
_DURATION_PARTS: Final = re.compile(r"([0-9.]+)(ms|h|m|s)")
_SECONDS: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


class _Spelled(str):
    """A string of a certain form. Raises: `OptionError` when made from another one."""

    __slots__ = ()
    _pattern: ClassVar[str]
    _example: ClassVar[str]

    def __new__(cls, text: str | int) -> Self:
        # Not `$`, which in Python also stands before a line break at the end.
        if re.fullmatch(cls._pattern.removesuffix("$"), str(text)) is None:
            raise OptionError(f"{str(text)!r} is no {cls.__name__}: write for example {cls._example}")
        return super().__new__(cls, text)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(cls, cls._accepted())

    @classmethod
    def _accepted(cls) -> CoreSchema:
        return core_schema.str_schema(pattern=cls._pattern, strict=True)


class Quantity(_Spelled):
    """An amount as in resource requests: `500m`, `1Gi`, `2`; a number on the wire is one, too.

    Does not: compare by amount (`Quantity("1Gi") != Quantity("1024Mi")`); compare `value`.
    """

    __slots__ = ()
    _pattern = _QUANTITY
    _example = "500m or 1Gi"

    @property
    def value(self) -> Decimal:
        """The amount as a number: `Quantity("500m").value` is 0.5."""
        parts = _QUANTITY_PARTS.fullmatch(self)
        if parts is None:
            raise AssertionError(f"{self!r} was checked when it was made")
        return Decimal(parts["number"] + (parts["exponent"] or "")) * _MULTIPLES[parts["suffix"]]

    @classmethod
    def _accepted(cls) -> CoreSchema:
        return core_schema.union_schema([core_schema.int_schema(strict=True), super()._accepted()])

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {**_EITHER, "pattern": _QUANTITY}


class Duration(_Spelled):
    """A span of time as Go writes it, in hours, minutes, seconds and milliseconds: `1h30m`, `0.5s`, `10ms`."""

    __slots__ = ()
    _pattern = _DURATION
    _example = "1h30m or 10s"

    @property
    def seconds(self) -> float:
        """How long it is: `Duration("1m30s").seconds` is 90.0."""
        return sum(float(number) * _SECONDS[unit] for number, unit in _DURATION_PARTS.findall(self))
