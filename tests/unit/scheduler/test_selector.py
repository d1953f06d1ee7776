"""Requirements on labels, as the API reads them."""

from __future__ import annotations

import pytest

from bonny.scheduler.selector import Requirement, Term, hold, label_selector, required_names

LABELS = {"zone": "a", "size": "10", "empty": "", "word": "ten"}


@pytest.mark.parametrize(
    ("key", "operator", "values", "expected"),
    [
        ("zone", "In", ("a", "b"), True),
        ("zone", "In", ("b",), False),
        ("none", "In", ("a",), False),
        ("empty", "In", ("",), True),
        ("zone", "NotIn", ("b",), True),
        ("zone", "NotIn", ("a",), False),
        ("none", "NotIn", ("a",), True),
        ("empty", "Exists", (), True),
        ("none", "Exists", (), False),
        ("none", "DoesNotExist", (), True),
        ("empty", "DoesNotExist", (), False),
        ("size", "Gt", ("9",), True),
        ("size", "Gt", ("10",), False),
        ("size", "Lt", ("11",), True),
        ("size", "Lt", ("10",), False),
        ("size", "Gt", ("nine",), False),
        ("size", "Gt", ("1", "2"), False),
        ("size", "Lt", (str(2**63),), False),
        ("word", "Gt", ("1",), False),
        ("none", "Lt", ("1",), False),
        ("size", "Sideways", ("1",), False),
    ],
)
def test_each_operator(key: str, operator: str, values: tuple[str, ...], expected: bool) -> None:
    assert hold([Requirement(key, operator, values)], LABELS) is expected


def test_requirements_hold_together() -> None:
    both = [Requirement("zone", "In", ("a",)), Requirement("size", "Exists")]

    assert hold(both, LABELS)
    assert not hold([*both, Requirement("none", "Exists")], LABELS)


def test_a_label_selector_is_its_labels_and_its_expressions() -> None:
    expression = {"key": "size", "operator": "NotIn", "values": ["1"]}

    found = label_selector({"matchLabels": {"zone": "a"}, "matchExpressions": [expression]})

    assert found == (Requirement("zone", "In", ("a",)), Requirement("size", "NotIn", ("1",)))
    assert hold(label_selector({}), LABELS), "an empty selector means everybody"


def field(operator: str, *values: str) -> Requirement:
    return Requirement("metadata.name", operator, values)


def test_nodes_are_named_only_when_each_term_names_some() -> None:
    one, both = Term(match_fields=(field("In", "n1"),)), Term(match_fields=(field("In", "n1"), field("In", "n2")))

    assert required_names([one, Term(match_fields=(field("In", "n2"),))]) == {"n1", "n2"}
    assert required_names([both]) == frozenset()
    assert required_names([one, Term(match_fields=(field("NotIn", "n2"),))]) is None
    assert required_names([one, Term(match_expressions=(Requirement("zone", "Exists"),))]) is None
