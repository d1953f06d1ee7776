"""Strict: fields that the API server would drop without a word are refused where people write them."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bonny.api import BuiltIn, Embedded, Model, PreserveUnknown, Spec, Status, Version
from bonny.api.stored import as_stored
from bonny.errors import InvalidObject
from bonny.resource import Resource
from bonny_dev import testing
from bonny_dev.crd import check_object
from bonny_dev.crd.schema import structural
from bonny_dev.crd.validation import problems


class Disk(Model):
    """A disk."""

    size: int = 1
    class_: str | None = None


class Box(Spec):
    """Fields of every shape."""

    replicas: int = 1
    disks: list[Disk] = []
    by_name: dict[str, Disk] = {}
    labels: dict[str, str] = {}
    anything: Annotated[dict[str, Any], PreserveUnknown()] | None = None
    whole: Annotated[dict[str, Any], Embedded()] | None = None
    probe: Annotated[dict[str, Any], BuiltIn("v1", "Probe")] | None = None


class BoxStatus(Status):
    """The observed state."""

    phase: str | None = None


class Boxes(Version):
    """A kind with fields of every shape."""

    kind = "Box"
    version = "v1"
    spec: Box = Box()
    status: BoxStatus


SCHEMA = structural(Box, where="spec")


def box(**fields: Any) -> Resource:
    return {"apiVersion": "example.com/v1", "kind": "Box", "metadata": {"name": "b1"}, **fields}


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"spec": {"replica": 3}}, "spec.replica: unknown field: did you mean replicas?"),
        ({"spec": {"by_name": {}}}, "spec.by_name: unknown field: did you mean byName?"),
        ({"spec": {"disks": [{}, {"sise": 1}]}}, r"spec.disks\[1\].sise: unknown field: did you mean size?"),
        ({"spec": {"byName": {"a": {"x": 1}}}}, "spec.byName.a.x: unknown field$"),
        ({"spec": {"probe": {"exec": {"comand": []}}}}, "spec.probe.exec.comand: .* did you mean command?"),
        ({"spec": {"replica": None}}, "spec.replica: unknown field"),
        ({"status": {"pahse": "x"}}, "status.pahse: unknown field: did you mean phase?"),
        ({"specs": {}}, "^specs: unknown field: did you mean spec?"),
    ],
)
def test_a_misspelt_field_of_a_test_object_is_refused_with_its_path(fields: Resource, sentence: str) -> None:
    with pytest.raises(InvalidObject, match=sentence):
        testing.axn(box(**fields), version=Boxes)
    assert check_object(Boxes, box(**fields))["spec"]["replicas"] == 1, "the API server drops it"


def test_content_without_a_schema_may_have_any_fields() -> None:
    free = {"anything": {"x": {"y": 1}}, "labels": {"x": "y"}, "whole": {"apiVersion": "v1", "kind": "X", "x": {}}}
    assert check_object(Boxes, box(spec=free), strict=True)["spec"] == {
        "replicas": 1,
        "disks": [],
        "byName": {},
        **free,
    }


VALUES = st.recursive(
    st.integers(0, 3),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["replicas", "disks", "byName", "labels", "size", "class", "whole", "x"]), inner
        )
    ),
    max_leaves=8,
)


@given(VALUES)
def test_a_field_is_unknown_exactly_where_the_api_server_drops_it(value: Any) -> None:
    schema = without_defaults(SCHEMA)
    dropped = as_stored(value, schema) != value
    errors = list(problems(as_stored(value, schema, prune=False), schema, "spec", strict=True))
    unknown = any("unknown field" in error for error in errors)
    assert dropped == unknown or list(problems(value, schema, "spec")), "or it has another type"


def without_defaults(schema: Any) -> Any:
    if isinstance(schema, list):
        return [without_defaults(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {name: without_defaults(value) for name, value in schema.items() if name != "default"}
