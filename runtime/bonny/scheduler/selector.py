"""Selector: whether labels are what a requirement says; for nodes that a pod wants, and pods that a pod does not want.

Semantics are those of the API (apimachinery, labels/selector.go): `NotIn` and `DoesNotExist` hold without the label,
`Gt` and `Lt` compare integers, and what cannot be read does not hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

__all__ = ["NAME_FIELD", "Requirement", "Term", "hold", "label_selector", "required_names"]

NAME_FIELD: Final = "metadata.name"


class Requirement(msgspec.Struct, frozen=True, gc=False):
    """One label, or one field."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class Term(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """Requirements that hold together; without any it is false, and holds for nothing."""

    match_expressions: tuple[Requirement, ...] = ()
    match_fields: tuple[Requirement, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.match_expressions or self.match_fields)


def label_selector(selector: Mapping[str, Any]) -> tuple[Requirement, ...]:
    """The requirements of a LabelSelector as the API writes it."""
    exact = [Requirement(key, "In", (value,)) for key, value in sorted(selector.get("matchLabels", {}).items())]
    return (*exact, *msgspec.convert(selector.get("matchExpressions", ()), tuple[Requirement, ...]))


def hold(requirements: Iterable[Requirement], labels: Mapping[str, str]) -> bool:
    """Whether all requirements are met."""
    return all(_holds(requirement, labels.get(requirement.key)) for requirement in requirements)


def required_names(terms: Iterable[Term]) -> frozenset[str] | None:
    """The nodes that the terms name, of which one must hold; None when one of them leaves the name open."""
    names: frozenset[str] = frozenset()
    for term in terms:
        named = [frozenset(known.values) for known in term.match_fields if known.operator == "In"]
        if not named:
            return None
        names |= frozenset.intersection(*named)
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
            found, bound = _integer(value), _integer(requirement.values[0])
            if found is not None and bound is not None:
                return found > bound if requirement.operator == "Gt" else found < bound
    return False


def _integer(text: str) -> int | None:
    """As Go's ParseInt reads what can be the value of a label: digits, and no more than fit into 64 bits."""
    return number if text.isdecimal() and text.isascii() and (number := int(text)) < 2**63 else None
