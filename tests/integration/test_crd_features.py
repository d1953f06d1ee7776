"""What version classes can say, at work in a real API server."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Annotated, Any

import pytest

from bonny.api import (
    AGE,
    IMMUTABLE,
    BuiltIn,
    Column,
    Embedded,
    Field,
    ListAtomic,
    ListMap,
    ListSet,
    MapAtomic,
    Model,
    PreserveUnknown,
    Rule,
    Scale,
    Spec,
    Status,
    Version,
    WithConditions,
    WithObservedGeneration,
)
from bonny.resource import Resource
from bonny_dev.crd import check_object
from bonny_dev.crd.definition import crds
from bonny_dev.sandbox import Sandbox
from tests.support.administrator import Administrator, Answer

pytestmark = pytest.mark.server

GROUP = "features.example.com"
_names = count(1)


class Port(Model):
    """An item of a merged list."""

    name: str
    number: Annotated[int, IMMUTABLE] = 80


class EngineSpec(
    Spec,
    rules=(
        Rule("self.least <= self.most", message="least is above most", field_path=".least"),
        Rule("has(self.model) == has(oldSelf.model)", message="model is given once", reason="FieldValueForbidden"),
    ),
):
    """What the user wants."""

    replicas: Annotated[int, Field(ge=0)] = 1
    least: int = 0
    most: int = 9
    colour: str = "red"
    model: Annotated[str, IMMUTABLE] | None = None
    level: Annotated[
        int,
        Rule(
            "!oldSelf.hasValue() ? self == 1 : self <= oldSelf.value() + 1",
            message="levels begin at 1 and go up one by one",
            message_expression="self > 9 ? 'there are 9 levels' : 'one level at a time'",
            optional_old_self=True,
        ),
    ] = 1
    ports: Annotated[list[Port], ListMap("name"), Field(max_length=4)] = Field(default_factory=list)
    tags: Annotated[list[str], ListSet()] = Field(default_factory=list)
    order: Annotated[list[str], ListAtomic()] = Field(default_factory=list)
    options: Annotated[dict[str, str], MapAtomic()] = Field(default_factory=dict)
    labels: dict[str, str] = Field(default_factory=dict)
    template: Annotated[dict[str, Any], BuiltIn("v1", "PodTemplateSpec")] | None = None
    whole: Annotated[dict[str, Any], Embedded()] | None = None
    free: Annotated[dict[str, Any], PreserveUnknown()] = Field(default_factory=dict)


class EngineStatus(Status, WithConditions, WithObservedGeneration):
    """What is."""

    replicas: int | None = None
    selector: str | None = None


class Engine(Version):
    """With every part that a version can have."""

    kind = "Engine"
    version = "v1"
    singular = "motor"
    storage = True
    hub = True
    short_names = ("eng",)
    categories = ("features",)
    spec: EngineSpec
    status: EngineStatus
    scale = Scale(".spec.replicas", ".status.replicas", selector=".status.selector")
    selectable = (".spec.colour",)
    columns = (
        Column("Replicas", "integer", ".spec.replicas", description="How many.", format="int32"),
        Column("Ready", "string", '.status.conditions[?(@.type=="Ready")].status', priority=1),
        AGE,
    )


class EngineBeta(Version):
    """The same, under the name that it had before."""

    kind = "Engine"
    version = "v1beta1"
    singular = "motor"
    short_names = ("eng",)
    categories = ("features",)
    deprecated = True
    spec: EngineSpec
    status: EngineStatus


@pytest.fixture(scope="module")
def server(sandbox: Sandbox) -> Iterator[Administrator]:
    with Administrator(sandbox) as server, server.installed(crds([Engine, EngineBeta], GROUP)):
        yield server


PATH = f"/apis/{GROUP}/v1/namespaces/default/engines"
STRICT = "fieldValidation=Strict"


def engine(name: str, *, version: str = "v1", **spec: Any) -> Resource:
    return {"apiVersion": f"{GROUP}/{version}", "kind": "Engine", "metadata": {"name": name}, "spec": spec}


def created(server: Administrator, **spec: Any) -> Resource:
    answer = server.request("POST", f"{PATH}?{STRICT}", engine(f"engine-{next(_names)}", **spec))
    assert answer.status == 201, answer.message
    return answer.body


def changed(server: Administrator, resource: Resource, **spec: Any) -> Answer:
    """Update it with these fields of its spec; None removes one."""
    name = resource["metadata"]["name"]
    return server.request("PATCH", f"{PATH}/{name}", {"spec": spec}, media="merge-patch+json")


def applied(server: Administrator, resource: Resource, *, manager: str) -> Answer:
    """Server-side apply, without force."""
    path = f"{PATH}/{resource['metadata']['name']}?fieldManager={manager}&{STRICT}"
    return server.request("PATCH", path, resource, media="apply-patch+yaml")


def test_names_and_categories_are_those_of_the_class(server: Administrator) -> None:
    server.served(f"/apis/{GROUP}/v1")
    resources = server.request("GET", f"/apis/{GROUP}/v1").body["resources"]

    found = {resource["name"]: resource for resource in resources}
    assert found.keys() == {"engines", "engines/status", "engines/scale"}
    assert found["engines"]["singularName"] == "motor"
    assert found["engines"]["shortNames"] == ["eng"]
    assert found["engines"]["categories"] == ["features"]


def test_replicas_are_read_and_written_by_the_scale_subresource(server: Administrator) -> None:
    name = created(server, replicas=2)["metadata"]["name"]
    status = {"status": {"replicas": 1, "selector": "app=x"}}
    server.request("PATCH", f"{PATH}/{name}/status", status, media="merge-patch+json")

    scale = server.request("GET", f"{PATH}/{name}/scale").body
    assert (scale["spec"], scale["status"]) == ({"replicas": 2}, {"replicas": 1, "selector": "app=x"})
    server.request("PATCH", f"{PATH}/{name}/scale", {"spec": {"replicas": 5}}, media="merge-patch+json")

    assert server.request("GET", f"{PATH}/{name}").body["spec"]["replicas"] == 5


def test_spec_and_status_are_written_apart(server: Administrator) -> None:
    made = created(server)
    name = made["metadata"]["name"]

    both = {"spec": {"replicas": 3}, "status": {"replicas": 3}}
    ordinary = server.request("PATCH", f"{PATH}/{name}", both, media="merge-patch+json").body
    reported = server.request(
        "PATCH", f"{PATH}/{name}/status", {**both, "spec": {"replicas": 4}}, media="merge-patch+json"
    )

    assert (ordinary["spec"]["replicas"], "status" in ordinary) == (3, False)
    assert (reported.body["spec"]["replicas"], reported.body["status"]) == (3, {"replicas": 3})


def test_objects_are_selected_by_their_fields(server: Administrator) -> None:
    made = created(server, colour="violet")
    created(server, colour="green")

    found = server.request("GET", f"{PATH}?fieldSelector=spec.colour%3Dviolet").body["items"]

    assert [item["metadata"]["name"] for item in found] == [made["metadata"]["name"]]


def test_columns_are_shown_as_the_class_says(server: Administrator) -> None:
    name = created(server, replicas=7)["metadata"]["name"]
    accept = "application/json;as=Table;v=v1;g=meta.k8s.io"

    table = server.request("GET", f"{PATH}/{name}", accept=accept).body

    shown = [(column["name"], column["type"], column["priority"]) for column in table["columnDefinitions"]]
    assert shown == [("Name", "string", 0), ("Replicas", "integer", 0), ("Ready", "string", 1), ("Age", "date", 0)]
    assert table["rows"][0]["cells"][1] == 7


def test_an_immutable_field_keeps_its_value(server: Administrator) -> None:
    made = created(server, model="one")

    refused = changed(server, made, model="two")
    removed = changed(server, made, model=None)

    assert (refused.status, removed.status) == (422, 422)
    assert "spec.model: Invalid value" in refused.message
    assert "cannot be changed" in refused.message
    assert "spec: Forbidden: model is given once" in removed.message
    assert changed(server, made, model="one", replicas=3).status == 200


def test_an_item_of_a_merged_list_keeps_its_immutable_field(server: Administrator) -> None:
    made = created(server, ports=[{"name": "a", "number": 1}, {"name": "b", "number": 2}])

    moved = changed(server, made, ports=[{"name": "b", "number": 2}, {"name": "a", "number": 1}])
    refused = changed(server, made, ports=[{"name": "b", "number": 3}])

    assert moved.status == 200, moved.message
    assert refused.status == 422
    assert "spec.ports[0].number: Invalid value" in refused.message


def test_a_rule_can_look_at_the_value_before_if_there_is_one(server: Administrator) -> None:
    refused = server.request("POST", PATH, engine("too-high", level=2))
    made = created(server, level=1)

    assert (refused.status, "spec.level: Invalid value" in refused.message) == (422, True)
    assert changed(server, made, level=2).status == 200
    assert "one level at a time" in changed(server, made, level=4).message
    assert "there are 9 levels" in changed(server, made, level=10).message


def test_a_rule_names_the_field_that_it_is_about(server: Administrator) -> None:
    answer = server.request("POST", PATH, engine("crossed", least=5, most=4))

    assert answer.status == 422
    assert "spec.least: Invalid value" in answer.message
    assert "least is above most" in answer.message


def test_managers_share_merged_lists_and_mappings_and_nothing_that_is_atomic(server: Administrator) -> None:
    name = f"engine-{next(_names)}"
    mine = engine(name, ports=[{"name": "a"}], tags=["a"], labels={"a": "1"})
    theirs = engine(name, ports=[{"name": "b"}], tags=["b"], labels={"b": "2"})

    assert applied(server, mine, manager="one").status == 201
    shared = applied(server, theirs, manager="two").body["spec"]

    assert [port["name"] for port in shared["ports"]] == ["a", "b"]
    assert sorted(shared["tags"]) == ["a", "b"]
    assert shared["labels"] == {"a": "1", "b": "2"}
    for whole in ({"order": ["x"]}, {"options": {"x": "1"}}):
        (field,) = whole
        other = {"order": ["y"], "options": {"y": "2"}}[field]
        first, second = (engine(f"{name}-{field}", **spec) for spec in (whole, {field: other}))
        assert applied(server, first, manager="one").status == 201
        conflict = applied(server, second, manager="two")
        assert (conflict.status, f".spec.{field}" in conflict.message) == (409, True)


def test_a_pod_template_is_checked_pruned_and_filled_in(server: Administrator) -> None:
    container = {"name": "web", "image": "web:1", "ports": [{"containerPort": 80}], "resources": {"limits": {"cpu": 1}}}
    template: Resource = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}
    made = created(server, template=template)

    stored = made["spec"]["template"]["spec"]["containers"][0]
    assert stored["ports"] == [{"containerPort": 80, "protocol": "TCP"}]
    assert check_object(Engine, engine("x", template=template))["spec"] == made["spec"]

    mistyped = {**template, "spec": {"containers": [{**container, "imgae": "x"}]}}
    strict = server.request("POST", f"{PATH}?{STRICT}", engine("mistyped", template=mistyped))
    assert 'unknown field "spec.template.spec.containers[0].imgae"' in strict.message
    nameless = server.request("POST", PATH, engine("nameless", template={"spec": {"containers": [{"image": "x"}]}}))
    assert "spec.template.spec.containers[0].name: Required value" in nameless.message


def test_an_embedded_object_is_kept_whole(server: Administrator) -> None:
    inner = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"a": "1"}}

    made = created(server, whole=inner, free={"anything": [1, {"at": "all"}]})

    assert made["spec"]["whole"] == inner
    assert made["spec"]["free"] == {"anything": [1, {"at": "all"}]}
    assert server.request("POST", PATH, engine("half", whole={"kind": "ConfigMap"})).status == 422


@pytest.mark.parametrize(("written", "read"), [("v1", "v1beta1"), ("v1beta1", "v1")])
def test_objects_of_each_version_are_readable_as_the_other(server: Administrator, written: str, read: str) -> None:
    def path(version: str) -> str:
        return f"/apis/{GROUP}/{version}/namespaces/default/engines"

    name = f"engine-{next(_names)}"
    server.request("POST", path(written), engine(name, version=written, replicas=3, tags=["x"]))
    status = {"status": {"replicas": 2, "observedGeneration": 1}}
    server.request("PATCH", f"{path(written)}/{name}/status", status, media="merge-patch+json")

    seen = server.request("GET", f"{path(read)}/{name}").body

    assert seen["apiVersion"] == f"{GROUP}/{read}"
    assert (seen["spec"]["replicas"], seen["spec"]["tags"], seen["status"]) == (3, ["x"], status["status"])
    assert Engine.spec_of(seen) == EngineBeta.spec_of(seen)


def test_a_deprecated_version_warns_and_the_other_does_not(server: Administrator) -> None:
    old = server.request("GET", f"/apis/{GROUP}/v1beta1/engines")
    new = server.request("GET", f"/apis/{GROUP}/v1/engines")

    assert old.warnings == (f'299 - "{GROUP}/v1beta1 Engine is deprecated; use {GROUP}/v1 Engine"',)
    assert new.warnings == ()
