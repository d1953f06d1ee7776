"""Stored: the types of a model decide as its schema does what the API server stores."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from bonny.api import AsIs, BuiltIn, Embedded, Field, IntOrString, ListMap, ListSet, Model, Nullable, PreserveUnknown
from bonny.api.conversion import fields_of
from bonny.api.reading import read
from bonny.api.stored import as_stored, expanded, types_of
from bonny.api.version import Version, object_model
from bonny_dev.crd.builtin import table
from bonny_dev.crd.schema import structural
from tests.support.effort import examples
from tests.support.schemas import specs_of_any_shape
from tests.support.specs import values
from tests.support.yardsticks.certificate import Certificate
from tests.support.yardsticks.http_route import HTTPRoute
from tests.support.yardsticks.service_monitor import ServiceMonitor


class Port(Model):
    name: str
    protocol: str = "TCP"


class Everything(Model):
    """Fields of every shape."""

    size: int = Field(1, ge=1)
    kept: int | None = 5
    required: int | None
    null: Annotated[int | None, Nullable()] = None
    port: Port | None = None
    first: Port = Port(name="a")
    ports: Annotated[list[Port], ListMap("name")] = [Port(name="a")]
    tags: Annotated[list[str], ListSet()] = []
    by_name: dict[str, Port] = {}
    many: dict[str, list[int | None]] = {}
    either: IntOrString = 1
    anything: Annotated[Any, PreserveUnknown()] = None
    mapping: Annotated[dict[str, Any], PreserveUnknown()] = {}
    whole: Annotated[dict[str, Any], Embedded()] | None = None
    probe: Annotated[dict[str, Any], BuiltIn("v1", "Probe")] | None = None
    as_is: Annotated[dict[str, Any], AsIs({"type": "object", "properties": {"a": {"type": "integer"}}})] | None = None


def assert_alike(model: type[BaseModel], data: st.DataObject) -> None:
    schema, types = structural(model, where="spec"), expanded(types_of(model), table())
    value = data.draw(values(schema))
    for prune in (True, False):
        assert as_stored(value, types, prune=prune) == as_stored(value, schema, prune=prune)
    assert fields_of(types) == fields_of(schema)


@pytest.mark.parametrize("version", [Certificate, HTTPRoute, ServiceMonitor])
@given(data=st.data())
@settings(max_examples=examples(10), suppress_health_check=list(HealthCheck))
def test_objects_of_real_kinds_are_stored_alike(version: type[Version], data: st.DataObject) -> None:
    assert_alike(object_model(version).model, data)


@given(st.data())
@settings(max_examples=examples(100), suppress_health_check=list(HealthCheck))
def test_fields_of_every_kind_are_stored_alike(data: st.DataObject) -> None:
    assert_alike(Everything, data)


@given(st.data(), specs_of_any_shape())
@settings(max_examples=examples(100), suppress_health_check=list(HealthCheck))
def test_fields_of_any_shape_are_stored_alike(data: st.DataObject, spec: type[BaseModel]) -> None:
    assert_alike(spec, data)


# --- models of kinds that have no definition here ---------------------------------------------------------------------


class Tree(BaseModel):
    children: list[Tree] = []
    value: Any
    either: int | list[str] | None = 3
    when: type[int] | None = None
    more: dict[str, Any] = {}
    size: int = 1


def test_a_model_that_has_no_schema_reads_nulls_and_keeps_what_it_does_not_describe() -> None:
    whole = {"value": None, "either": None, "more": {"a": None}, "size": None, "children": [{"value": {"b": None}}]}
    tree = read(Tree, whole, where="object")
    assert tree == Tree(value=None, either=None, more={"a": None}, children=[Tree(value={"b": None})])
