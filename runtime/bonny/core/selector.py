"""Selector: the label selectors of Kubernetes: reads them as users write them, and compares labels with them.

Semantics as in the API (apimachinery, labels/selector.go): `NotIn` and `DoesNotExist` hold without the label,
`Gt` and `Lt` compare integers, and a requirement with an invalid value does not hold.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

import msgspec

from ..errors import OptionError
from ..naming import is_label_value, is_qualified_name

Selector: TypeAlias = str | Mapping[str, Any]
"""`"app=web,tier in (a, b),!old"`; `{"app": "web"}`; or a LabelSelector with matchLabels and matchExpressions."""

# Each object of a kind is compared with each requirement, on the event loop; a user may have chosen the selector.
MOST_REQUIREMENTS: Final = 100
MOST_VALUES: Final = 1000
LONGEST: Final = 65_536
QUOTED: Final = 200

_PUNCTUATION: Final = re.compile("[(),]")
_REQUIREMENT: Final = re.compile(
    r"\s*(?P<absent>!\s*)?(?P<key>[^\s!=<>(),]+)"
    r"(?:\s*(?P<operator>==|=|!=|>|<)\s*(?P<value>[^\s!=<>(),]*)|\s+(?P<set>in|notin)\s*\((?P<values>[^()]*)\))?\s*"
)
_OPERATORS: Final = {"=": "In", "==": "In", "!=": "NotIn", ">": "Gt", "<": "Lt", "in": "In", "notin": "NotIn"}


class Requirement(msgspec.Struct, frozen=True, gc=False):
    """A requirement on one label or field."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class _LabelSelector(msgspec.Struct, rename="camel"):
    match_labels: dict[str, str] | None = None
    match_expressions: tuple[Requirement, ...] | None = None


def label_selector(selector: Mapping[str, Any]) -> tuple[Requirement, ...]:
    """The requirements in a LabelSelector of the API. Raises: `msgspec.ValidationError` for another structure."""
    read = msgspec.convert(selector, _LabelSelector)
    exact = [Requirement(key, "In", (value,)) for key, value in sorted((read.match_labels or {}).items())]
    return (*exact, *(read.match_expressions or ()))


def requirements_of(selector: Selector) -> tuple[Requirement, ...]:
    """The requirements in a selector that a user wrote; an empty one has none, and selects everything.

    Raises: `OptionError` for what the API server would refuse.
    """
    try:
        found = _parsed(selector) if isinstance(selector, str) else _converted(selector)
        values = sum(len(requirement.values) for requirement in found)
        if len(found) > MOST_REQUIREMENTS or values > MOST_VALUES:
            raise ValueError(f"it has more than {MOST_REQUIREMENTS} requirements or {MOST_VALUES} values")
        for requirement in found:
            _check(requirement)
    except (ValueError, msgspec.ValidationError) as error:
        raise OptionError(
            f"{repr(selector)[:QUOTED]} is not a label selector: {str(error)[:QUOTED]}; write for example "
            "'app=web,tier in (a,b),!old'"
        ) from None
    return found


def hold(requirements: Iterable[Requirement], labels: Mapping[str, str]) -> bool:
    """Whether all requirements are met."""
    return all(_holds(requirement, labels.get(requirement.key)) for requirement in requirements)


def _parsed(text: str) -> tuple[Requirement, ...]:
    if len(text) > LONGEST:
        raise ValueError(f"it is longer than {LONGEST} characters")
    return tuple(map(_requirement, _split(text))) if text.strip() else ()


def _split(text: str) -> list[str]:
    """The text between commas outside of parentheses."""
    parts, start, inside = list[str](), 0, False
    for match in _PUNCTUATION.finditer(text):
        if match[0] == "," and not inside:
            parts.append(text[start : match.start()])
            start = match.end()
        inside = match[0] == "(" or (inside and match[0] == ",")
    return [*parts, text[start:]]


def _requirement(text: str) -> Requirement:
    match = _REQUIREMENT.fullmatch(text)
    operator = match and (match["operator"] or match["set"])
    if match is None or (match["absent"] and operator):
        raise ValueError(f"{text.strip()!r} is not a requirement")
    if operator is None:
        return Requirement(match["key"], "DoesNotExist" if match["absent"] else "Exists")
    values = (match["value"],) if match["set"] is None else (value.strip() for value in match["values"].split(","))
    return Requirement(match["key"], _OPERATORS[operator], tuple(values))


def _converted(selector: Mapping[str, Any]) -> tuple[Requirement, ...]:
    if not isinstance(selector, Mapping):
        raise ValueError("use a text or a mapping")  # noqa: TRY004  one error for whatever is malformed
    whole = selector.keys() <= {"matchLabels", "matchExpressions"}
    found = label_selector(selector if whole else {"matchLabels": selector})
    for requirement in found:
        if requirement.operator not in ("In", "NotIn", "Exists", "DoesNotExist"):
            raise ValueError(f"the operator {requirement.operator!r} is not one of In, NotIn, Exists, DoesNotExist")
    return found


def _check(requirement: Requirement) -> None:
    key, operator, values = requirement.key, requirement.operator, requirement.values
    if not is_qualified_name(key):
        raise ValueError(f"{key!r} is not the key of a label")
    if bool(values) == (operator in ("Exists", "DoesNotExist")):
        raise ValueError(f"{operator} of {key!r} has {'values' if values else 'no values'}")
    for value in values:
        if not is_label_value(value):
            raise ValueError(f"{value!r} is not the value of a label")
        if operator in ("Gt", "Lt") and _integer(value) is None:
            raise ValueError(f"{value!r} is not an integer")


def _holds(requirement: Requirement, value: str | None) -> bool:
    match requirement.operator:
        case "In":
            return value in requirement.values
        case "NotIn":
            return value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt" if value is not None and len(requirement.values) == 1:
            number, bound = _integer(value), _integer(requirement.values[0])
            if number is not None and bound is not None:
                return number > bound if requirement.operator == "Gt" else number < bound
    return False


def _integer(text: str) -> int | None:
    """The integer that Go's ParseInt reads from the value of a label: digits, up to 64 bits."""
    return number if text.isdecimal() and text.isascii() and (number := int(text)) < 2**63 else None
