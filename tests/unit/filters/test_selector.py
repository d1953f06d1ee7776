"""Terms of node affinity: which of them name nodes."""

from __future__ import annotations

from bonny.core.selector import Requirement
from bonny.filters.demand import Term, required_names


def field(operator: str, *values: str) -> Requirement:
    return Requirement("metadata.name", operator, values)


def test_nodes_are_named_only_when_each_term_names_some() -> None:
    one, both = Term(match_fields=(field("In", "n1"),)), Term(match_fields=(field("In", "n1"), field("In", "n2")))

    assert required_names([one, Term(match_fields=(field("In", "n2"),))]) == {"n1", "n2"}
    assert required_names([both]) == frozenset()
    assert required_names([one, Term(match_fields=(field("NotIn", "n2"),))]) is None
    assert required_names([one, Term(match_expressions=(Requirement("zone", "Exists"),))]) is None
