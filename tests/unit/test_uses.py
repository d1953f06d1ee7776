"""Labels for the namespace of a sandbox, so that an operator that selects namespaces by labels watches it."""

from __future__ import annotations

import pytest

from bonny.core.selector import hold, requirements_of
from bonny_dev.uses import labels_for


@pytest.mark.parametrize(
    ("selector", "labels"),
    [
        ("team=a", {"team": "a"}),
        ("team in (b,a),!archived,stage", {"team": "b", "stage": "true"}),
        ("stage,stage=prod,team!=x", {"stage": "prod"}),
    ],
)
def test_labels_are_found_that_a_selector_selects(selector: str, labels: dict[str, str]) -> None:
    assert labels_for(selector) == labels
    assert hold(requirements_of(selector), labels)


@pytest.mark.parametrize("selector", ["", "!archived", "team in (a),team notin (a)", "size>5"])
def test_a_selector_without_such_labels_has_none(selector: str) -> None:
    assert labels_for(selector) == {}
