"""Values: what is a quantity, a duration, a number or a string; and what they mean."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import msgspec
import pytest

from bonny.api import Duration, Field, Int32, Int64, IntOrString, Quantity, Spec, duration_seconds, quantity_value
from bonny.api.reading import read
from bonny.errors import InvalidObject, OptionError
from bonny_dev.crd.schema import structural


class Values(Spec):
    """One of each."""

    memory: Quantity = "1Gi"
    every: Duration = "1m30s"
    port: IntOrString = "http"
    small: Int32 = Field(1, ge=0)
    large: Int64 | None = None


def test_each_has_the_schema_that_kubernetes_uses() -> None:
    fields = structural(Values, where="spec")["properties"]
    either = {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]}

    assert fields["memory"].items() >= {**either, "default": "1Gi"}.items()
    assert fields["memory"]["pattern"].startswith("^[+-]?")
    assert fields["every"].items() >= {"type": "string", "default": "1m30s"}.items()
    assert fields["port"] == {**either, "default": "http"}
    assert fields["small"] == {"type": "integer", "format": "int32", "default": 1, "minimum": 0}
    assert fields["large"] == {"type": "integer", "format": "int64"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2", "2"),
        ("500m", "0.5"),
        ("0.5", "0.5"),
        ("1Ki", "1024"),
        ("1.5Gi", "1610612736"),
        ("-1k", "-1000"),
        ("3e2", "300"),
        ("1E", "1000000000000000000"),
        ("1Ei", "1152921504606846976"),
        ("7u", "0.000007"),
        (".5", "0.5"),
        ("5.", "5"),
    ],
)
def test_a_quantity_keeps_its_spelling_and_has_a_value(text: str, value: str) -> None:
    assert read(Values, {"memory": text}, where="spec").memory == text
    assert quantity_value(text) == Decimal(value)


@pytest.mark.parametrize(
    ("text", "seconds"), [("10s", 10.0), ("1m30s", 90.0), ("1h30m", 5400.0), ("1.5h", 5400.0), ("250ms", 0.25)]
)
def test_a_duration_keeps_its_spelling_and_has_seconds(text: str, seconds: float) -> None:
    assert read(Values, {"every": text}, where="spec").every == text
    assert duration_seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "G", "1 Gi", "1gi", "1GiB", "0x1", "1e1.5", "1e1000", "1\n", "--1"])
def test_other_texts_are_no_quantity(text: str) -> None:
    with pytest.raises(OptionError, match="is not a quantity: write for example 500m or 1Gi"):
        quantity_value(text)
    with pytest.raises(InvalidObject, match=r"^spec\.memory"):
        read(Values, {"memory": text}, where="spec")


@pytest.mark.parametrize("text", ["", "10", "s", "1d", "-1s", "1 h", "1h 5m", "1us", "1h\n"])
def test_other_texts_are_no_duration(text: str) -> None:
    with pytest.raises(OptionError, match="is not a duration: write for example 1h30m or 10s"):
        duration_seconds(text)
    with pytest.raises(InvalidObject, match=r"^spec\.every"):
        read(Values, {"every": text}, where="spec")


def test_they_are_plain_values_that_can_be_handed_on() -> None:
    """Regression: a subclass of str cannot be encoded, so a quantity could not be put into a child."""
    spec = read(Values, {"memory": 5, "every": "2h", "port": 80}, where="spec")

    assert [type(value) for value in (spec.memory, spec.every, spec.port)] == [str, str, int]
    assert msgspec.json.encode({"limits": {"memory": spec.memory}}) == b'{"limits":{"memory":"5"}}'
    assert spec.model_dump(mode="json", exclude_defaults=True) == {"memory": "5", "every": "2h", "port": 80}


@pytest.mark.parametrize("value", [1.5, True, [], {}])
def test_a_fraction_is_neither_an_integer_nor_a_string(value: Any) -> None:
    for name in ("memory", "port"):
        with pytest.raises(InvalidObject, match=rf"^spec\.{name}"):
            read(Values, {name: value}, where="spec")


def test_a_whole_number_with_a_point_is_an_integer_as_for_the_api_server() -> None:
    assert read(Values, {"port": 80.0, "memory": 2.0, "small": 3.0}, where="spec") == Values(
        port=80, memory="2", small=3
    )
