"""Client-side validation is the API server's: generated specs are refused, accepted and filled in alike by both.

Rules in CEL take no part: only the server evaluates them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import date, datetime
from enum import StrEnum
from ipaddress import IPv4Address, IPv6Address
from itertools import count
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pydantic import create_model

from bonny.api import (
    Base64,
    BuiltIn,
    Duration,
    Embedded,
    Field,
    Int32,
    Int64,
    IntOrString,
    ListAtomic,
    ListMap,
    ListSet,
    MapAtomic,
    Model,
    Nullable,
    PreserveUnknown,
    Quantity,
    Scope,
    Spec,
    Version,
)
from bonny.api.stored import as_stored
from bonny.errors import InvalidObject
from bonny.resource import Resource
from bonny_dev.crd import check_object, schema_of
from bonny_dev.crd.definition import crds
from bonny_dev.sandbox import Sandbox
from tests.support.administrator import Administrator, collection
from tests.support.schemas import specs_of_any_shape
from tests.support.specs import values

pytestmark = pytest.mark.server

GROUP = "alike.example.com"
# A server takes part: no deadline. What failed is told as it was found, because shrinking takes minutes.
ASKED = settings(
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.explicit, Phase.generate),
)
_names = count(1)


class Colour(StrEnum):
    """Which colour."""

    RED = "red"
    BLUE = "blue"


class Port(Model):
    """An item of a merged list."""

    name: Annotated[str, Field(max_length=5)]
    protocol: str = "TCP"
    number: Annotated[Int32, Field(ge=1, le=65535)] = 80
    target: IntOrString = "http"


class Everything(Spec):
    """One field of every type and keyword."""

    size: Annotated[int, Field(ge=1, le=100)] = 1
    large: Int64 | None = None
    small: Int32 | None = None
    step: Annotated[int, Field(multiple_of=5)] = 5
    share: Annotated[float, Field(gt=0, lt=1)] = 0.5
    ratio: float | None = None
    on: bool = True
    code: Annotated[str, Field(min_length=2, max_length=4, pattern="^a")] = "abc"
    name: str | None = None
    colour: Colour = Colour.RED
    shape: Literal["round", "flat"] = "round"
    level: Literal[1, 2] = 1
    kept: int | None = 5
    since: datetime | None = None
    day: date | None = None
    uid: UUID | None = None
    address: IPv4Address | None = None
    address6: IPv6Address | None = None
    memory: Quantity = "1Gi"
    every: Duration = "1m30s"
    port: IntOrString | None = None
    most: Annotated[IntOrString, Field(pattern=r"^\d+%?$")] | None = None
    certificate: Base64 | None = None
    once: Annotated[datetime | None, Nullable()] = None
    either: Annotated[Port, Field(min_length=1, max_length=2)] | None = None
    ports: Annotated[list[Port], ListMap("name", "protocol")] = Field(default_factory=list, max_length=3)
    tags: Annotated[list[str], ListSet()] = Field(default_factory=list)
    steps: Annotated[list[int], ListAtomic(), Field(min_length=1)] = Field(default_factory=lambda: [1])
    holes: list[int | None] = Field(default_factory=list)
    grid: list[list[bool]] = Field(default_factory=list)
    weights: Annotated[dict[str, int], Field(max_length=2)] = Field(default_factory=dict)
    doors: dict[str, Port] = Field(default_factory=dict)
    door: Annotated[Port, MapAtomic()] = Port(name="front", number=8080)
    free: Annotated[dict[str, Any], PreserveUnknown()] = Field(default_factory=dict)
    anything: Annotated[Any, PreserveUnknown()] = None
    widened: Annotated[Port, PreserveUnknown()] | None = None
    whole: Annotated[dict[str, Any], Embedded()] | None = None
    select: Annotated[dict[str, Any], BuiltIn("meta/v1", "LabelSelector")] | None = None
    container: Annotated[dict[str, Any], BuiltIn("v1", "ContainerPort")] | None = None
    resources: Annotated[dict[str, Any], BuiltIn("v1", "ResourceRequirements")] | None = None
    tolerations: Annotated[list[dict[str, Any]], ListAtomic()] = Field(default_factory=list)


def declared(spec: type[Spec], kind: str) -> type[Version]:
    """A version with this spec, whose objects are in no namespace."""
    body: dict[str, Any] = {"kind": kind, "version": "v1", "storage": True, "hub": True, "scope": Scope.CLUSTER}
    return type(kind, (Version,), {**body, "__module__": __name__, "__annotations__": {"spec": spec}})


Everything.model_rebuild()
THING = declared(create_model("ThingSpec", __base__=Everything, tolerations=(
    Annotated[list[Annotated[dict[str, Any], BuiltIn("v1", "Toleration")]], ListAtomic()], []
)), "Thing")  # fmt: skip


@pytest.fixture(scope="module")
def server(sandbox: Sandbox) -> Iterator[Administrator]:
    """The sandbox with the kind that has everything."""
    with Administrator(sandbox) as server, server.installed(crds([THING], GROUP)):
        yield server


def judged_alike(server: Administrator, version: type[Version], spec: Any) -> None:
    """Assert that both refuse `spec`, or both store the same."""
    plural = version.plural
    thing: Resource = {"apiVersion": f"{GROUP}/v1", "kind": version.kind, "metadata": {"name": "tried"}, "spec": spec}
    answer = server.request("POST", f"/apis/{GROUP}/v1/{plural}?dryRun=All", thing)
    assert answer.status in (201, 400, 422), answer.message
    stored, problems = checked(version, thing)
    told = f"{json.dumps(spec)}: {problems or 'accepted'} here; there {answer.message or 'accepted'}"
    assert bool(problems) == (answer.status != 201), told
    if problems:
        # It writes keys of mappings in both ways.
        message = re.sub(r"\[([a-z]\w*)\]", r".\1", answer.message)
        assert any(problem.partition(": ")[0] in message for problem in problems), told
        return
    # Numbers of more than 64 bits come back with their last digits cut off, as floats are written.
    live = as_stored(answer.body["spec"], None)
    assert stored["spec"] == live, told
    assert version.spec_of(stored) == version.spec_of({"spec": live}), told


def checked(version: type[Version], thing: Resource) -> tuple[Resource, list[str]]:
    """The object as it would be stored, or what is wrong with it."""
    try:
        return check_object(version, thing), []
    except InvalidObject as refusal:
        return {}, str(refusal).split("; ")


@settings(ASKED, max_examples=300)
@given(data=st.data())
def test_generated_specs_are_refused_accepted_and_filled_in_alike(server: Administrator, data: st.DataObject) -> None:
    judged_alike(server, THING, data.draw(values(schema_of(THING)["properties"]["spec"])))


@settings(ASKED, max_examples=100)
@given(spec=specs_of_any_shape())
def test_whatever_schema_is_made_is_accepted_by_the_api_server(server: Administrator, spec: type[Spec]) -> None:
    (definition,) = crds([declared(spec, f"Shape{next(_names)}")], GROUP)

    path = f"{collection(definition)}?dryRun=All&fieldValidation=Strict"
    answer = server.request("POST", path, definition)

    assert answer.status == 201, (answer.message, json.dumps(definition["spec"]["versions"][0]["schema"]))
    assert answer.warnings == ()


@pytest.mark.slow
@settings(ASKED, max_examples=12)
@given(data=st.data())
def test_specs_of_generated_schemas_are_judged_alike(server: Administrator, data: st.DataObject) -> None:
    version = declared(data.draw(specs_of_any_shape()), f"Form{next(_names)}")
    schema = schema_of(version)["properties"]["spec"]

    with server.installed(crds([version], GROUP)):
        for _ in range(40):
            judged_alike(server, version, data.draw(values(schema)))
