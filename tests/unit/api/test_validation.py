"""Validation: what is stored of an object, and what is wrong with one.

That the API server says the same is tested against a real one (tests/integration/test_crd_equivalence.py).
"""

from __future__ import annotations

import tracemalloc
from collections import OrderedDict
from collections.abc import Callable
from datetime import date, datetime
from enum import StrEnum
from functools import partial
from ipaddress import IPv4Address, IPv6Address
from typing import Annotated, Any
from uuid import UUID

import pytest
from pydantic import BaseModel, PrivateAttr, model_validator

from bonny.api import BuiltIn, Field, ListMap, Model, Quantity, Scope, Spec, Status, Version
from bonny.api.reading import read
from bonny.api.stored import as_stored
from bonny.errors import InvalidObject
from bonny.resource import Resource
from bonny_dev.crd import check_object
from bonny_dev.crd.objects import check_status
from bonny_dev.crd.validation import FORMATS


class Size(StrEnum):
    """How much."""

    LARGE = "1Gi"


class Port(Model):
    """A port."""

    name: str
    protocol: str = "TCP"


class WidgetSpec(Spec):
    """What the user wants."""

    size: int = Field(1, ge=1)
    kept: int | None = 5
    ports: Annotated[list[Port], ListMap("name", "protocol")] = Field(default_factory=list)
    container: Annotated[dict[str, Any], BuiltIn("v1", "ContainerPort")] | None = None
    memory: Quantity | None = None


class WidgetStatus(Status):
    """What is."""

    count: int | None = None


class Widget(Version):
    """A widget."""

    kind = "Widget"
    version = "v1"
    scope = Scope.CLUSTER
    storage = True
    hub = True
    spec: WidgetSpec = WidgetSpec()
    status: WidgetStatus


def widget(**parts: Any) -> Resource:
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, **parts}


def test_an_object_is_checked_and_filled_in() -> None:
    given = widget(spec={"size": None, "kept": None, "unknown": 1, "container": {"containerPort": 1, "x": 2}})

    assert check_object(Widget, given) == widget(
        spec={"size": 1, "kept": None, "container": {"containerPort": 1, "protocol": "TCP"}}
    )
    assert given["spec"]["unknown"] == 1


def test_fields_beside_spec_and_status_that_the_schema_lacks_are_dropped_as_the_api_server_does() -> None:
    assert check_object(Widget, widget(spec={"size": 1}, data={"a": "b"}, status=None)) == widget(
        spec={"size": 1, "kept": 5}
    )


def test_a_spec_that_was_left_out_is_filled_in() -> None:
    assert check_object(Widget, widget()) == widget(spec={"size": 1, "kept": 5})


def test_all_problems_of_spec_and_status_are_named() -> None:
    bad = widget(spec={"size": 0, "ports": [{"name": "a"}, {"protocol": "TCP", "name": "a"}]}, status={"count": "many"})

    with pytest.raises(InvalidObject) as refused:
        check_object(Widget, bad)

    assert str(refused.value) == (
        "spec.size: must be at least 1; spec.ports[1]: is a duplicate; status.count: must be of type integer"
    )


def test_values_of_python_count_as_what_they_are_on_the_wire() -> None:
    given = widget(spec=OrderedDict(memory=Size.LARGE, ports=({"name": "a"},)))

    assert check_object(Widget, given)["spec"]["memory"] == "1Gi"
    assert check_object(Widget, given)["spec"]["ports"] == [{"name": "a", "protocol": "TCP"}]
    with pytest.raises(InvalidObject, match=r"^spec\.size: must be of type integer"):
        check_object(Widget, widget(spec={"size": date(2024, 1, 1)}))


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (1.0, 1),
        (-0.0, 0),
        (1.5, 1.5),
        (2.0**53, 2.0**53),
        (2**63 - 1, 2**63 - 1),
        (2**63, 2.0**63),
        (True, True),
        ({"a": None, "b": [None]}, {"a": None, "b": [None]}),
    ],
)
def test_numbers_are_stored_as_go_reads_them(value: Any, stored: Any) -> None:
    result = as_stored(value, None)

    assert (result, type(result)) == (stored, type(stored))


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("date", ["2024-02-29"], ["2023-02-29", "2024-2-9", "20240229", "2024-02-29T00:00:00Z", ""]),
        (
            "date-time",
            ["2024-02-29T12:00:00Z", "2024-02-29t12:00:00.123456789z", "2024-02-29T23:59:59+01:00"],
            ["2024-02-29", "2024-02-29 12:00:00Z", "2024-02-29T12:00:00", "2024-02-29T24:00:00Z", "1704067200"],
        ),
        ("ipv4", ["10.0.0.1"], ["10.0.0", "10.0.0.256", "::1", "a"]),
        ("ipv6", ["::1", "::ffff:10.0.0.1"], ["10.0.0.1", "fe80::1%eth0", ":::"]),
        (
            "uuid",
            ["12345678-1234-1234-1234-1234567890AB", "123456781234123412341234567890ab"],
            ["urn:uuid:12345678-1234-1234-1234-1234567890ab", "12345678"],
        ),
    ],
)
def test_formats_are_the_spellings_that_everybody_reads(name: str, good: list[str], bad: list[str]) -> None:
    assert [text for text in good if not FORMATS[name](text)] == []
    assert [text for text in bad if FORMATS[name](text)] == []


SECRET = "hunter2"


class Addresses(Spec):
    four: IPv4Address | None = None
    six: IPv6Address | None = None
    uuid: UUID | None = None
    at: datetime | None = None
    sizes: list[int] = []
    labels: dict[str, dict[str, int]] = {}


class Lists(Status):
    sizes: list[int] = []
    labels: dict[str, dict[str, int]] = {}


class Holder(Version):
    kind = "Holder"
    version = "v1"
    spec: Addresses


@pytest.mark.parametrize("value", [SECRET, f"10.0.0.{SECRET}", f"::{SECRET}", [SECRET], {SECRET: SECRET}])
@pytest.mark.parametrize("field", Addresses.model_fields)
def test_no_text_about_a_field_quotes_its_value(field: str, value: object) -> None:
    """Regression: those of addresses did, because `ipaddress` quotes them."""
    with pytest.raises(InvalidObject) as refused:
        Holder.spec_of({"spec": {field: value}})
    text = str(refused.value)
    assert text.startswith(f"spec.{field}")
    assert SECRET not in text.replace(f"spec.{field}.{SECRET}", "")


def test_an_address_that_python_cannot_read_is_refused_by_its_field_and_the_kind_of_error() -> None:
    with pytest.raises(InvalidObject, match=r"^spec\.four: Input is not valid \(AddressValueError\)$"):
        Holder.spec_of({"spec": {"four": "10.0.0.300"}})


READINGS: list[Callable[[Resource], object]] = [
    Holder.spec_of,
    partial(check_object, Holder),
    lambda given: check_status(given["spec"], Lists),
]


@pytest.mark.parametrize("read", READINGS)
def test_a_hundred_fields_are_named_however_many_are_wrong(read: Callable[[Resource], object]) -> None:
    """Regression: a list of 100,000 wrong items made a text of megabytes."""
    many = 3_000 if read == Holder.spec_of else 100_000  # of a larger part, only the first is named
    with pytest.raises(InvalidObject) as refused:
        read({"spec": {"sizes": ["x"] * many}})
    assert "sizes[99]: " in str(refused.value)
    assert str(refused.value).endswith("; more fields are wrong than these 100")
    assert "sizes[100]" not in str(refused.value)


def test_in_each_list_and_mapping_of_a_large_part_the_first_wrong_value_is_named() -> None:
    wrong = {"labels": {"a": {"b": "x"}, "c": {"d": "x"}}, "sizes": [1, *["x"] * 100_000], "uuid": "x"}
    with pytest.raises(InvalidObject) as refused:
        Holder.spec_of({"spec": wrong})
    assert sorted(part.partition(": ")[0] for part in str(refused.value).split("; ")) == [
        "spec.labels.a.b",
        "spec.sizes[1]",
        "spec.uuid",
    ]


class Pair(BaseModel):
    """A model of another library, with a check and a step of its own."""

    low: int = 0
    high: int = 0
    type: str = ""
    default: list[int] = []
    _sum: int = PrivateAttr(0)

    @model_validator(mode="after")
    def in_order(self) -> Pair:
        if self.difference() < 0:
            raise ValueError("out of order")
        return self

    def difference(self) -> int:
        return self.high - self.low

    def model_post_init(self, context: Any) -> None:
        self._sum = self.low + self.difference()


class Pairs(BaseModel):
    pairs: list[Pair]
    by_name: dict[str, Pair] = {"default": Pair()}


def test_a_large_part_is_read_by_models_of_every_kind() -> None:
    pairs = [{"low": 1, "high": 2}] * 2_000
    made = read(Pairs, {"pairs": pairs}, where="object")
    assert made.pairs == [Pair(low=1, high=2)] * 2_000
    assert made.by_name == {"default": Pair()}
    for wrong in ({"low": "x"}, {"low": 2, "high": 1}, {"default": [1, "x", "y"]}):
        with pytest.raises(InvalidObject, match=r"^object.pairs\[2000\][^;]*$"):
            read(Pairs, {"pairs": [*pairs, wrong]}, where="object")


@pytest.mark.parametrize("read", READINGS)
def test_a_key_in_a_path_is_short_and_in_one_line(read: Callable[[Resource], object]) -> None:
    """Regression: the path of each field repeated the key of the map around it, whatever its length."""
    with pytest.raises(InvalidObject) as refused:
        read({"spec": {"labels": {"a\n\x1b" + "k" * 100_000: {f"b{number}": "x" for number in range(1000)}}}})
    assert str(refused.value).isprintable()
    assert "labels.a\\n\\u001bkkk" in str(refused.value)
    assert len(str(refused.value)) < 100 * 400


def test_the_errors_of_a_large_object_take_no_memory() -> None:
    """Regression: pydantic collected an error of a kilobyte for each item, and repeated the keys of its path: 1.7 GB
    for an object of 256 KiB, which a webhook sees before the API server has checked it."""
    wrong = {"k" * 100_000: {f"b{number}": "x" for number in range(10_000)}}
    tracemalloc.start()
    try:
        for fields in ({"labels": wrong}, {"sizes": ["x"] * 100_000}):
            with pytest.raises(InvalidObject, match=r"^spec.(labels|sizes)[^;]+: Input should be a valid integer"):
                Holder.spec_of({"spec": fields})
        assert tracemalloc.get_traced_memory()[1] < 20e6
    finally:
        tracemalloc.stop()
