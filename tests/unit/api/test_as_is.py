"""Keywords that Python types cannot say: they are in the schema as they are, and objects are checked by them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import pytest

from bonny.api import AsIs, Field, ListMap, Model, Rule, Spec, Version, schemas_beside
from bonny.errors import InvalidObject
from bonny_dev.crd import check_object
from bonny_dev.crd.definition import crds
from bonny_dev.crd.schema import structural

VARIABLE = {"properties": {"name": {"type": "string"}, "value": {"type": "string"}}, "required": ["name"]}


class Match(Model):
    """A match of a request."""

    exact: str | None = None
    prefix: str | None = None


class RouteSpec(Spec):
    """The routes."""

    address: Annotated[str, AsIs({"format": "cidr"})] = "10.0.0.0/8"
    match: Annotated[Match | None, AsIs({"not": {"required": ["exact", "prefix"]}})] = None
    environment: Annotated[list[Annotated[dict[str, Any], AsIs(VARIABLE)]], ListMap("name")] = Field(
        default_factory=list
    )
    pattern: Annotated[str | None, AsIs({"pattern": r"\bfish\b"})] = None
    words: Annotated[list[str], Rule("self.size() < 9", message="too many"), AsIs({"anyOf": [{"minItems": 1}]})] = (
        Field(default_factory=list)
    )


class Route(Version):
    """A route."""

    kind = "Route"
    version = "v1"
    storage = True
    hub = True
    spec: RouteSpec
    columns = ()


def test_keywords_are_in_the_definition_as_they_are() -> None:
    (definition,) = crds([Route], "example.com")

    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    fields = schema["properties"]["spec"]["properties"]
    assert fields["address"] == {"type": "string", "default": "10.0.0.0/8", "format": "cidr"}
    assert fields["match"]["not"] == {"required": ["exact", "prefix"]}
    assert fields["environment"]["items"] == {"type": "object", **VARIABLE}
    assert fields["words"].keys() == {"type", "items", "x-kubernetes-validations", "anyOf"}
    assert "x-bonny-as-is" not in json.dumps(definition)


def test_a_marked_schema_has_them_apart() -> None:
    address = structural(RouteSpec, where="spec", marked=True)["properties"]["address"]

    assert address["x-bonny-as-is"] == {"format": "cidr"}
    assert "format" not in address


def test_objects_are_checked_by_combined_schemas() -> None:
    spec = {"match": {"exact": "a"}, "environment": [{"name": "A"}], "words": ["a"], "pattern": "a fish"}
    assert check_object(Route, {"spec": spec})["spec"] == {"address": "10.0.0.0/8", **spec}

    with pytest.raises(InvalidObject, match=r"spec\.match: must fit not \{'required': \['exact', 'prefix'\]\}"):
        check_object(Route, {"spec": {"match": {"exact": "a", "prefix": "b"}}})
    with pytest.raises(InvalidObject, match=r"spec\.words: must fit anyOf"):
        check_object(Route, {"spec": {"words": []}})
    with pytest.raises(InvalidObject, match=r"spec\.environment\[0\]\.name: is required"):
        check_object(Route, {"spec": {"environment": [{}]}})


def test_schemas_stand_in_a_file_beside_the_module(tmp_path: Path) -> None:
    (tmp_path / "route.json").write_text(json.dumps({"EnvVar at spec": VARIABLE}), encoding="utf-8")

    assert schemas_beside(str(tmp_path / "route.py")) == {"EnvVar at spec": VARIABLE}
