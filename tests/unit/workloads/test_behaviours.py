"""What a test may ask simulated pods and claims to do, and which request counts."""

from __future__ import annotations

import pytest

from bonny.errors import UsageError
from bonny_dev.workloads.behaviours import (
    ANNOTATION,
    OF_CLAIMS,
    RULES_KEY,
    Behaviour,
    Rule,
    Simulate,
    asked_for,
    decode,
    encode,
    parse,
)


def test_a_behaviour_is_a_word_and_may_have_a_limit() -> None:
    assert parse("not-ready") == Behaviour(Simulate.NOT_READY)
    assert parse("crash=2") == Behaviour(Simulate.CRASH, 2)


@pytest.mark.parametrize("text", ["crashloop", "", "Crash", "crash 2", "pending", "x" * 500])
def test_another_word_is_answered_with_the_words_that_there_are(text: str) -> None:
    allowed = OF_CLAIMS if text != "pending" else (Simulate.CRASH,)

    with pytest.raises(UsageError, match=r"cannot simulate '.*': use (pending|crash); a number limits it") as refusal:
        parse(text, allowed=allowed)

    assert len(str(refusal.value)) < 160


@pytest.mark.parametrize("number", ["", "0", "-1", "2.5", "20s", "86401", "²", "9" * 5000])
def test_a_limit_is_a_whole_number(number: str) -> None:
    with pytest.raises(UsageError, match=r"write a whole number from 1 to 86400, as in not-ready=5"):
        parse(f"not-ready={number}")


def test_a_limit_ends_a_behaviour_and_without_one_it_lasts() -> None:
    assert not parse("hang").is_over(1e9)
    assert not parse("hang=20").is_over(19.9)
    assert parse("hang=20").is_over(20.0)


RULES = [
    Rule("pods", "default", "web-*", "crash"),
    Rule("pods", "default", "web-0", "hang"),
    Rule("persistentvolumeclaims", "default", "*", "pending"),
]


@pytest.mark.parametrize(
    ("namespace", "name", "expected"),
    [("default", "web-1", "crash"), ("default", "web-0", "hang"), ("default", "db", ""), ("shop", "web-1", "")],
)
def test_the_last_rule_that_fits_counts(namespace: str, name: str, expected: str) -> None:
    assert asked_for("pods", {"namespace": namespace, "name": name}, RULES) == expected


def test_the_annotation_has_priority_over_rules() -> None:
    metadata = {"namespace": "default", "name": "web-1", "annotations": {ANNOTATION: "evict"}}

    assert asked_for("pods", metadata, RULES) == "evict"


def test_rules_survive_their_config_map() -> None:
    assert decode({"data": {RULES_KEY: encode(RULES)}}) == RULES
    assert decode({}) == []
