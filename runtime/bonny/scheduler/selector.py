"""Selector: the terms of node affinity, made of the requirements of `bonny.core.selector`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from ..core.selector import Requirement

NAME_FIELD: Final = "metadata.name"


class Term(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """Requirements that must all hold; a term without any is false, and holds for no node."""

    match_expressions: tuple[Requirement, ...] = ()
    match_fields: tuple[Requirement, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.match_expressions or self.match_fields)


def required_names(terms: Iterable[Term]) -> frozenset[str] | None:
    """The only nodes that the terms allow, of which one must hold; None when a term does not name nodes."""
    names: frozenset[str] = frozenset()
    for term in terms:
        allowed = [frozenset(field.values) for field in term.match_fields if field.operator == "In"]
        if not allowed:
            return None
        names |= frozenset.intersection(*allowed)
    return names
