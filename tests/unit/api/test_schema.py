"""Schema: what becomes of Python types, and which are refused with the path of the field."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from datetime import date, datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any, Literal

import pytest
from pydantic import create_model

from bonny.api import Field, Model, PreserveUnknown, Spec, Status, WithConditions
from bonny.api.conversion import fields_of
from bonny.errors import OptionError
from bonny.resource import Resource
from bonny_dev.crd.schema import structural


class Colour(StrEnum):
    """Which colour."""

    RED = "red"
    BLUE = "blue"


class Port(Model):
    """A port of a service."""

    number: int = Field(ge=1, le=65535)
    """As TCP counts them."""
    label: str | None = None


def schema_of(annotation: Any, default: Any = ...) -> Resource:
    """The schema of one field of this type."""
    model = create_model("Probe", __base__=Spec, field=(annotation, default))
    schema: Resource = structural(model, where="Probe.spec")["properties"]["field"]
    return schema


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        (int, {"type": "integer"}),
        (float, {"type": "number"}),
        (bool, {"type": "boolean"}),
        (str, {"type": "string"}),
        (datetime, {"type": "string", "format": "date-time"}),
        (date, {"type": "string", "format": "date"}),
        (list[str], {"type": "array", "items": {"type": "string"}}),
        (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
        (list[list[int]], {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}}),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
        (Literal["a"], {"type": "string", "enum": ["a"]}),
        (Literal[1, 2], {"type": "integer", "enum": [1, 2]}),
        (Colour, {"type": "string", "description": "Which colour.", "enum": ["red", "blue"]}),
        (Annotated[int, Field(ge=1, le=9)], {"type": "integer", "minimum": 1, "maximum": 9}),
        (
            Annotated[float, Field(gt=0, lt=1)],
            {"type": "number", "minimum": 0, "exclusiveMinimum": True, "maximum": 1, "exclusiveMaximum": True},
        ),
        (Annotated[int, Field(multiple_of=5)], {"type": "integer", "multipleOf": 5}),
        (
            Annotated[str, Field(min_length=1, max_length=3, pattern="^a")],
            {"type": "string", "minLength": 1, "maxLength": 3, "pattern": "^a"},
        ),
        (
            Annotated[list[int], Field(min_length=1, max_length=3)],
            {"type": "array", "minItems": 1, "maxItems": 3, "items": {"type": "integer"}},
        ),
        (
            Annotated[dict[str, str], Field(max_length=3)],
            {"type": "object", "maxProperties": 3, "additionalProperties": {"type": "string"}},
        ),
        (
            Annotated[dict[str, Any], PreserveUnknown()],
            {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        ),
        (Annotated[Any, PreserveUnknown()], {"x-kubernetes-preserve-unknown-fields": True}),
        (list[int | None], {"type": "array", "items": {"type": "integer", "nullable": True}}),
    ],
)
def test_a_type_becomes_the_schema_that_means_the_same(annotation: Any, schema: Resource) -> None:
    assert schema_of(annotation) == schema


def test_a_nested_model_is_written_in_its_place() -> None:
    port = {
        "type": "object",
        "description": "A port of a service.",
        "required": ["number"],
        "properties": {
            "number": {"type": "integer", "description": "As TCP counts them.", "minimum": 1, "maximum": 65535},
            "label": {"type": "string"},
        },
    }

    assert schema_of(Port) == port
    assert schema_of(list[Port]) == {"type": "array", "items": port}
    assert schema_of(Port | None, None) == port


@pytest.mark.parametrize(
    ("annotation", "default", "schema"),
    [
        (int, 5, {"type": "integer", "default": 5}),
        (list[int], [], {"type": "array", "default": [], "items": {"type": "integer"}}),
        (Colour, Colour.RED, {"type": "string", "description": "Which colour.", "default": "red"}),
        (int | None, None, {"type": "integer"}),
        (int | None, ..., {"type": "integer", "nullable": True}),
        (int | None, 5, {"type": "integer", "nullable": True, "default": 5}),
        (Literal["a"] | None, None, {"type": "string", "enum": ["a"]}),
    ],
)
def test_defaults_and_null_follow_what_the_api_server_does(annotation: Any, default: Any, schema: Resource) -> None:
    assert schema_of(annotation, default).items() >= schema.items()


def test_null_in_the_default_of_a_nested_model_is_left_out() -> None:
    """Regression: the API server refuses a default with a null that the field cannot hold."""
    assert schema_of(Port, Port(number=1))["default"] == {"number": 1}


def test_only_fields_without_a_default_are_required() -> None:
    class Probe(Spec):
        needed: int
        defaulted: int = 1
        made: list[int] = Field(default_factory=list)
        optional: int | None = None

    assert structural(Probe, where="Probe")["required"] == ["needed"]


def test_wire_names_are_camel_case_unless_an_alias_says_otherwise() -> None:
    class Probe(Spec):
        max_size: int
        cluster_ip: int = Field(alias="clusterIP")
        class_: int

    assert list(structural(Probe, where="Probe")["properties"]) == ["maxSize", "clusterIP", "class"]


def test_an_alias_inside_a_type_is_refused_where_it_would_be_lost() -> None:
    """Regression: the field was `clusterIp` on the wire."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of pydantic, from 2.12 on

        class Probe(Spec):
            cluster_ip: Annotated[str, Field(alias="clusterIP")] | None = None

    with pytest.raises(OptionError, match="cluster_ip has its alias inside its type: write Annotated"):
        structural(Probe, where="Probe")


def test_descriptions_come_from_docstrings_and_from_fields() -> None:
    class Probe(Spec):
        """What the user wants."""

        one: int
        """From a docstring."""
        two: int = Field(description="From the field.")

    schema = structural(Probe, where="Probe")

    assert schema["description"] == "What the user wants."
    assert [field["description"] for field in schema["properties"].values()] == ["From a docstring.", "From the field."]


def test_a_class_without_a_docstring_does_not_inherit_that_of_the_runtime() -> None:
    class Probe(Spec):
        one: int

    assert "description" not in structural(Probe, where="Probe")


@pytest.mark.parametrize(
    ("annotation", "path", "why"),
    [
        (Any, "field", "has no type.*PreserveUnknown"),
        (dict[str, Any], "field", "has no type.*PreserveUnknown"),
        (dict, "field", "has no type.*PreserveUnknown"),
        (list, r"field\[\]", "has no type.*PreserveUnknown"),
        (list[Any], r"field\[\]", "has no type.*PreserveUnknown"),
        (dict[str, list[Any]], r"field\.\*\[\]", "has no type.*PreserveUnknown"),
        (int | str, "field", "a union of types"),
        (set[int], "field", "unique items: use a list"),
        (tuple[int, str], "field", "cannot have a tuple"),
        (bytes, "field", "no format 'binary'"),
        (timedelta, "field", "no format 'duration'"),
        (Literal["a", 1], "field", "must be of one type"),
        (Literal["a"] | None, "field", "the API server refuses null for an enumeration: give it the default None"),
        (list[Colour | None], r"field\[\]", "the API server refuses null for an enumeration"),
        (None, "field", "null alone is not a type"),
    ],
)
def test_what_a_schema_cannot_express_is_refused_with_the_path_of_the_field(
    annotation: Any, path: str, why: str
) -> None:
    with pytest.raises(OptionError, match=rf"^Probe\.spec\.{path}: .*{why}"):
        schema_of(annotation)


class Tree(Model):
    """A node."""

    children: list[Tree] = Field(default_factory=list)


def test_a_recursive_model_is_refused_with_the_path_where_it_begins_again() -> None:
    with pytest.raises(OptionError, match=r"Probe\.spec\.field\.children\[\]: Tree contains itself"):
        schema_of(Tree)


class Loop(Spec):
    """A node that is the whole spec."""

    next: Loop | None = None


def test_a_recursive_root_is_refused() -> None:
    with pytest.raises(OptionError, match=r"Loop\.spec\.next: Loop contains itself"):
        structural(Loop, where="Loop.spec")


def test_a_type_without_any_schema_is_refused_in_one_line() -> None:
    with pytest.raises(OptionError, match=r"^Probe\.spec \(Probe\) cannot become a schema: .*Callable.*$"):
        schema_of(Callable[[], int])


def test_a_default_that_json_cannot_hold_is_refused() -> None:
    with pytest.raises(OptionError, match=r"^Probe\.spec \(Probe\) cannot become a schema: .*object object"):
        schema_of(Annotated[Any, PreserveUnknown()], object())


def test_the_conditions_are_those_of_kubernetes() -> None:
    class Probe(Status, WithConditions):
        """What is."""

    conditions = structural(Probe, where="Probe")["properties"]["conditions"]

    assert conditions["x-kubernetes-list-type"] == "map"
    assert conditions["x-kubernetes-list-map-keys"] == ["type"]
    item = conditions["items"]
    assert item["required"] == ["type", "status", "lastTransitionTime", "reason", "message"]
    assert item["properties"]["status"]["enum"] == ["True", "False", "Unknown"]
    assert item["properties"]["reason"].items() >= {"minLength": 1, "maxLength": 1024}.items()
    assert item["properties"]["message"]["maxLength"] == 32768
    assert item["properties"]["type"]["maxLength"] == 316
    assert item["properties"]["observedGeneration"].items() >= {"type": "integer", "minimum": 0}.items()


def test_changing_a_schema_does_not_change_the_next_one() -> None:
    structural(Port, where="Port")["properties"].clear()

    assert structural(Port, where="Port")["properties"]


def test_schemas_that_differ_in_descriptions_only_do_not_differ() -> None:
    one = {"type": "object", "description": "a", "properties": {"x": {"type": "string", "description": "a"}}}
    other = {"properties": {"x": {"description": "b", "type": "string"}}, "type": "object"}

    assert fields_of(one) == fields_of(other)


def test_a_field_called_description_counts() -> None:
    one = {"properties": {"description": {"type": "string"}}}
    other = {"properties": {"description": {"type": "integer"}}}

    assert fields_of(one) != fields_of(other)
    assert fields_of(one) != fields_of({"properties": {}})
