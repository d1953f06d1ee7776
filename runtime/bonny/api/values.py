"""Values: types of fields that have a wire form of their own in Kubernetes.

You need it for amounts (`Quantity`), durations (`Duration`), ports that may have a name (`IntOrString`), bytes
(`Base64`) and integers of 32 or 64 bits.
You do not need it for times, addresses and UUIDs: annotate with `datetime`, `date`, `IPv4Address`, `IPv6Address`,
`UUID`.

Quantities, durations and bytes stay strings, so that they can be copied into other objects as they were written;
`quantity_value`, `duration_seconds` and `base64_value` convert them.
"""

from __future__ import annotations

import re
from base64 import b64decode
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, Context, Decimal
from typing import Annotated, Any, Final, TypeAlias

from pydantic import BeforeValidator, Field, Strict

from ..errors import OptionError
from .markers import EITHER, INT_OR_STRING, Keywords

# With the limits of the field.
_EITHER: Final = Keywords({"anyOf": EITHER, INT_OR_STRING: True}, but="type")

# As Kubernetes reads quantities (k8s.io/apimachinery, pkg/api/resource). Exponents of more than 3 digits are useless.
_QUANTITY: Final = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)(([KMGTPE]i)|[numkMGTPE]|([eE][+-]?[0-9]{1,3}))?$"
_QUANTITY_PARTS: Final = re.compile(
    r"(?P<number>[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+))((?P<suffix>[KMGTPE]i|[numkMGTPE])|(?P<exponent>[eE][+-]?[0-9]{1,9}))?"
)
_MULTIPLES: Final = {
    **{suffix: Decimal(10) ** (3 * power) for power, suffix in enumerate(("n", "u", "m", "", "k", *"MGTPE"), start=-3)},
    **{f"{suffix}i": Decimal(1024) ** power for power, suffix in enumerate("KMGTPE", start=1)},
}
# Kubernetes rounds quantities up. 28 digits hold the largest one, 2**63 - 1, in billionths.
QUANTITIES: Final = Context(prec=28, rounding=ROUND_CEILING, Emin=MIN_EMIN, Emax=MAX_EMAX)
# The part of Go's durations that people write.
_DURATION: Final = r"^([0-9]{1,9}(\.[0-9]{1,9})?(h|m|s|ms))+$"
_DURATION_PARTS: Final = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)(ms|h|m|s)")
_SECONDS: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


def _text_of_number(value: Any) -> Any:
    return str(value) if type(value) is int else value


Quantity: TypeAlias = Annotated[str, Strict(), Field(pattern=_QUANTITY), BeforeValidator(_text_of_number), _EITHER]
"""An amount as in resource requests: `500m`, `1Gi`. A number on the wire is read as its text.

`Field(pattern=...)` replaces the pattern of the schema.
"""

Duration: TypeAlias = Annotated[str, Field(pattern=_DURATION)]
"""A duration in Go's format, in hours, minutes, seconds and milliseconds: `1h30m`, `0.5s`, `10ms`."""

IntOrString: TypeAlias = Annotated[int | str, _EITHER]
"""A number or a string, such as a port and its name, or `25%`. `Field(pattern=...)` checks strings alone."""

Base64: TypeAlias = Annotated[str, Keywords({"format": "byte"})]
"""Bytes in base64, never empty, as in a caBundle; `base64_value` decodes them."""

Int32: TypeAlias = Annotated[int, Keywords({"format": "int32"})]
"""An integer of 32 bits. API servers before 1.36 check it only by limits: add `Field(ge=..., le=...)`."""

Int64: TypeAlias = Annotated[int, Keywords({"format": "int64"})]
"""An integer of 64 bits, like a plain `int`; written out for code generators that read the schema."""


def parse_quantity(text: str) -> Decimal | None:
    """The amount in units, rounded up to 28 digits; None when `text` is not a quantity."""
    parts = _QUANTITY_PARTS.fullmatch(text)
    if parts is None:
        return None
    return QUANTITIES.multiply(Decimal(parts["number"] + (parts["exponent"] or "")), _MULTIPLES[parts["suffix"] or ""])


def quantity_value(text: str) -> Decimal:
    """The amount of a `Quantity`: `quantity_value("500m")` is 0.5. Raises: `OptionError` when it is not a quantity."""
    amount = parse_quantity(text) if re.fullmatch(_QUANTITY, text) else None
    if amount is None:
        raise OptionError(f"{text!r} is not a quantity: write for example 500m or 1Gi")
    return amount


def duration_seconds(text: str) -> float:
    """The length of a `Duration`: `duration_seconds("1m30s")` is 90.0. Raises: `OptionError` when it is not one."""
    parts = _DURATION_PARTS.findall(text)
    if not parts or "".join(map("".join, parts)) != text:
        raise OptionError(f"{text!r} is not a duration: write for example 1h30m or 10s")
    return sum(float(number) * _SECONDS[unit] for number, unit in parts)


def base64_value(text: str) -> bytes:
    """The bytes of a `Base64`: `base64_value("aGk=")` is b"hi". Raises: `OptionError` when it is not base64."""
    try:
        return b64decode(text, validate=True)
    except ValueError:
        raise OptionError("the text is not base64: write for example aGk=") from None
