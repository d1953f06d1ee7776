"""Selector: compares labels with requirements, for node affinity and for anti-affinity between pods.

Semantics as in the API (apimachinery, labels/selector.go): `NotIn` and `DoesNotExist` hold without the label,
`Gt` and `Lt` compare integers, and a requirement with an invalid value does not hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

NAME_FIELD: Final = "metadata.name"


class Requirement(msgspec.Struct, frozen=True, gc=False):
    """A requirement on one label or field."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class Term(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """Requirements that must all hold; a term without any is false, and holds for no node."""

    match_expressions: tuple[Requirement, ...] = ()
    match_fields: tuple[Requirement, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.match_expressions or self.match_fields)


def label_selector(selector: Mapping[str, Any]) -> tuple[Requirement, ...]:
    """The requirements in a LabelSelector of the API."""
    exact = [Requirement(key, "In", (value,)) for key, value in sorted(selector.get("matchLabels", {}).items())]
    return (*exact, *msgspec.convert(selector.get("matchExpressions", ()), tuple[Requirement, ...]))


def hold(requirements: Iterable[Requirement], labels: Mapping[str, str]) -> bool:
    """Whether all requirements are met."""
    return all(_holds(requirement, labels.get(requirement.key)) for requirement in requirements)


def required_names(terms: Iterable[Term]) -> frozenset[str] | None:
    """The only nodes that the terms allow, of which one must hold; None when a term does not name nodes."""
    names: frozenset[str] = frozenset()
    for term in terms:
        allowed = [frozenset(field.values) for field in term.match_fields if field.operator == "In"]
        if not allowed:
            return None
        names |= frozenset.intersection(*allowed)
    return names


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
