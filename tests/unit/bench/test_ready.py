"""Ready: when an object counts as done for those who watch it."""

from __future__ import annotations

from typing import Any

import pytest

from bench.harness.ready import Awaited, is_ready
from bonny.resource import Resource


def widget(name: str = "w0", *, generation: int = 1, **ready: Any) -> Resource:
    """A Widget whose condition Ready holds, but for what is said otherwise."""
    condition = {"type": "Ready", "status": "True", "observedGeneration": generation, **ready}
    metadata = {"name": name, "generation": generation}
    return {"metadata": metadata, "status": {"conditions": [{"type": "Other", "status": "True"}, condition]}}


def test_an_object_is_ready_when_its_condition_says_so() -> None:
    assert is_ready(widget())


@pytest.mark.parametrize(
    "resource",
    [
        {"metadata": {"name": "w0", "generation": 1}},
        {"metadata": {"name": "w0", "generation": 1}, "status": {}},
        widget(status="False"),
        widget(type="Reconciled"),
        widget(generation=2, observedGeneration=1),
    ],
    ids=["without-status", "without-conditions", "false", "another-condition", "of-an-older-generation"],
)
def test_an_object_is_not_ready_before(resource: Resource) -> None:
    assert not is_ready(resource)


def test_a_watch_is_over_when_the_last_awaited_object_is_ready() -> None:
    awaited = Awaited(["w0", "w1"])

    over = [
        awaited("MODIFIED", widget("w0")),
        awaited("MODIFIED", widget("stranger")),
        awaited("DELETED", widget("w1")),
        awaited("MODIFIED", widget("w1", status="False")),
        awaited("MODIFIED", widget("w1")),
    ]

    assert over == [False, False, False, False, True]
    assert awaited.at.keys() == {"w0", "w1"}


def test_the_first_time_counts_when_an_object_is_seen_to_be_ready_again() -> None:
    awaited = Awaited(["w0", "w1"])
    awaited("MODIFIED", widget("w0"))
    first = awaited.at["w0"]

    awaited("MODIFIED", widget("w0"))

    assert awaited.at["w0"] == first
