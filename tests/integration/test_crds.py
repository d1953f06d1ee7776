"""CRDs and manifests on a real API server: it takes what we generate, and agrees with our models."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from enum import StrEnum
from itertools import count
from typing import Annotated, Any, Literal

import pytest

from bonny import Controller, Deploy, Operator
from bonny.api import (
    AGE,
    Column,
    Field,
    Model,
    PreserveUnknown,
    Rule,
    Scope,
    Spec,
    Status,
    Version,
    WithConditions,
    WithObservedGeneration,
)
from bonny.errors import InvalidObject
from bonny.kinds import Owned
from bonny.resource import Resource
from bonny_dev.crd.definition import crds
from bonny_dev.manifest.bundle import documents
from bonny_dev.sandbox import Sandbox
from tests.support.administrator import Administrator, Answer
from tools import builtin_schemas
from tools.asked import Server
from tools.builtin_kinds import TABLE, fetch

pytestmark = pytest.mark.server

GROUP = "crds.example.com"
_names = count(1)


class Colour(StrEnum):
    """Which colour."""

    RED = "red"
    BLUE = "blue"


class Port(Model):
    """A port."""

    number: int = Field(ge=1, le=65535)
    label: str | None = None


class ThingSpec(Spec):
    """One field of every type that a schema can have."""

    size: int = Field(1, ge=1, le=100, description="How big.")
    share: float = Field(0.5, gt=0, lt=1)
    step: Annotated[int, Field(multiple_of=5)] = 5
    on: bool = True
    code: str = Field("abc", min_length=2, max_length=4, pattern="^a")
    colour: Colour = Colour.RED
    shape: Literal["round", "flat"] = "round"
    level: Literal[1, 2] = 1
    max_age: int | None = None
    kept: int | None = 5
    paint: Colour | None = None
    since: datetime | None = None
    ports: list[Port] = Field(default_factory=list, max_length=2)
    door: Port = Port(number=80)
    window: Port | None = None
    weights: dict[str, int] = Field(default_factory=dict, max_length=2)
    holes: list[int | None] = Field(default_factory=list)
    free: Annotated[dict[str, Any], PreserveUnknown()] = Field(default_factory=dict)
    cluster_ip: str | None = Field(None, alias="clusterIP")


class ThingStatus(Status, WithConditions, WithObservedGeneration):
    """What the operator reports."""

    ready: bool | None = None


class ThingV2(Version):
    """A thing."""

    kind = "Thing"
    version = "v2alpha1"
    storage = True
    hub = True
    short_names = ("th",)
    categories = ("things",)
    spec: ThingSpec = ThingSpec()
    status: ThingStatus
    columns = (Column("Size", "integer", ".spec.size", description="How big.", priority=1), AGE)
    rules = (Rule("self.spec.size < 50 || self.spec.colour == 'red'", message="blue things are small"),)


class ThingV1(Version):
    """A thing, as it was served before."""

    kind = "Thing"
    version = "v1"
    short_names = ("th",)
    categories = ("things",)
    spec: ThingSpec = ThingSpec()
    status: ThingStatus
    rules = ThingV2.rules


class RealmSpec(Spec):
    """What the user must say."""

    owner: str


class Realm(Version):
    """Cluster-scoped, strict, without a status."""

    kind = "Realm"
    version = "v1"
    scope = Scope.CLUSTER
    storage = True
    hub = True
    spec: RealmSpec


class ThingController(Controller[Any]):
    """A controller, as far as manifests go."""

    resource = (ThingV2, Realm)
    owns = (Owned("v1", "ConfigMap"),)
    rules = ({"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]},)

    async def reconcile(self, axn: Any) -> None:
        """Never called here."""


def thing_operator(name: str, *, watch: str) -> Operator:
    return Operator(
        name=name,
        group=GROUP,
        watch=watch,
        controllers=[ThingController],
        crds=[ThingV1, ThingV2, Realm],
        deploy=Deploy(replicas=2),
    )


@pytest.fixture(scope="module")
def server(sandbox: Sandbox) -> Iterator[Administrator]:
    """The sandbox with the CRDs of this module; they are removed at the end."""
    with Administrator(sandbox) as server, server.installed(crds([ThingV1, ThingV2, Realm], GROUP)):
        yield server


def try_spec(server: Administrator, spec: Any) -> Answer:
    """Create a Thing with this spec, without storing it."""
    thing: Resource = {"apiVersion": f"{GROUP}/v2alpha1", "kind": "Thing", "metadata": {"name": "tried"}}
    if spec is not ...:
        thing["spec"] = spec
    return server.request("POST", f"/apis/{GROUP}/v2alpha1/namespaces/default/things?dryRun=All", thing)


@pytest.mark.parametrize("name", [f"things.{GROUP}", f"realms.{GROUP}"])
def test_a_generated_definition_is_established_and_structural(server: Administrator, name: str) -> None:
    status = server.request("GET", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}").body["status"]
    conditions = {condition["type"]: condition["status"] for condition in status["conditions"]}

    assert conditions["Established"] == "True"
    assert conditions["NamesAccepted"] == "True"
    assert "NonStructuralSchema" not in conditions


def test_the_api_server_fills_in_the_defaults_of_the_model(server: Administrator) -> None:
    stored = try_spec(server, ...).body["spec"]

    # What default_factory makes stays on the Python side; so does "not given".
    python_side = {"maxAge", "paint", "since", "ports", "window", "weights", "holes", "free", "clusterIP"}
    defaults = ThingSpec().model_dump(mode="json", exclude_none=True)
    assert stored == {name: value for name, value in defaults.items() if name not in python_side}
    assert ThingV2.spec_of({"spec": stored}) == ThingSpec()


NULLS = [
    {"size": None},
    {"maxAge": None},
    {"kept": None},
    {"paint": None},
    {"ports": None},
    {"window": None},
    {"door": None},
    {"weights": {"a": None, "b": 1}},
    {"free": {"a": None, "b": {"c": None}}},
    {"holes": [1, None]},
    {"door": {"number": 1, "label": None}},
]
ACCEPTED = [
    {},
    {"size": 100, "colour": "red"},
    {"share": 0.25},
    {"step": 10},
    {"on": False},
    {"code": "aöü"},
    {"colour": "blue", "shape": "flat", "level": 2},
    {"since": "2024-02-29T12:00:00Z"},
    {"since": "2024-02-29T12:00:00.123456+01:00"},
    {"ports": [{"number": 1}, {"number": 2, "label": "x"}]},
    {"weights": {"a": 1, "b": 2}},
    {"free": {"a": [1, {"b": "c"}]}},
    {"clusterIP": "10.0.0.1"},
    {"unknown": 1, "door": {"number": 1, "unknown": 2}},
]
REFUSED = [
    ({"size": 0}, "spec.size"),
    ({"size": 101}, "spec.size"),
    ({"size": "5"}, "spec.size"),
    ({"size": True}, "spec.size"),
    ({"size": 1.5}, "spec.size"),
    ({"share": 1}, "spec.share"),
    ({"share": "0.5"}, "spec.share"),
    ({"step": 7}, "spec.step"),
    ({"on": "true"}, "spec.on"),
    ({"on": 1}, "spec.on"),
    ({"code": "a"}, "spec.code"),
    ({"code": "abcde"}, "spec.code"),
    ({"code": "bcd"}, "spec.code"),
    ({"code": 12}, "spec.code"),
    ({"colour": "green"}, "spec.colour"),
    ({"shape": "square"}, "spec.shape"),
    ({"level": 3}, "spec.level"),
    ({"since": "yesterday"}, "spec.since"),
    ({"since": 1}, "spec.since"),
    ({"ports": [{}]}, "spec.ports[0].number"),
    ({"ports": [{"number": None}]}, "spec.ports[0].number"),
    ({"ports": [None]}, "spec.ports[0]"),
    ({"ports": [{"number": 1}] * 3}, "spec.ports"),
    ({"ports": {"number": 1}}, "spec.ports"),
    ({"weights": {"a": "x"}}, "spec.weights.a"),
    ({"weights": {"a": 1, "b": 2, "c": 3}}, "spec.weights"),
    ({"door": {"number": 70000}}, "spec.door.number"),
    ({"free": []}, "spec.free"),
    ([], "spec"),
]


@pytest.mark.parametrize("spec", [*ACCEPTED, *NULLS], ids=json.dumps)
def test_what_the_api_server_accepts_the_model_reads_alike(server: Administrator, spec: Resource) -> None:
    answer = try_spec(server, spec)

    assert answer.status == 201, answer.body["message"]
    assert ThingV2.spec_of({"spec": spec}) == ThingV2.spec_of(answer.body)


@pytest.mark.parametrize(("spec", "field"), REFUSED, ids=json.dumps)
def test_what_the_api_server_refuses_the_model_refuses_by_the_same_field(
    server: Administrator, spec: Resource, field: str
) -> None:
    answer = try_spec(server, spec)

    assert answer.status == 422, answer.body
    assert field in answer.body["message"]
    with pytest.raises(InvalidObject) as refused:
        ThingV2.spec_of({"spec": spec})
    assert str(refused.value).startswith(f"{field}: ")


def test_a_rule_over_several_fields_is_checked_with_our_message(server: Administrator) -> None:
    answer = try_spec(server, {"size": 60, "colour": "blue"})

    assert answer.status == 422
    assert "blue things are small" in answer.body["message"]


def test_a_spec_with_required_fields_cannot_be_left_out(server: Administrator) -> None:
    realm = {"apiVersion": f"{GROUP}/v1", "kind": "Realm", "metadata": {"name": "empty"}}

    answer = server.request("POST", f"/apis/{GROUP}/v1/realms?dryRun=All", realm)

    assert answer.status == 422
    assert "spec: Required value" in answer.body["message"]


def test_an_object_of_one_version_is_readable_as_the_other(server: Administrator) -> None:
    name = f"both-{next(_names)}"
    thing = {"apiVersion": f"{GROUP}/v1", "kind": "Thing", "metadata": {"name": name}, "spec": {"size": 7}}
    path = f"namespaces/default/things/{name}"

    server.request("POST", f"/apis/{GROUP}/v1/namespaces/default/things", thing)
    read = server.request("GET", f"/apis/{GROUP}/v2alpha1/{path}").body

    assert (read["apiVersion"], read["spec"]["size"]) == (f"{GROUP}/v2alpha1", 7)


def test_conditions_are_merged_by_type_and_checked_like_those_of_kubernetes(server: Administrator) -> None:
    name = f"conditions-{next(_names)}"
    thing = {"apiVersion": f"{GROUP}/v2alpha1", "kind": "Thing", "metadata": {"name": name}}
    path = f"/apis/{GROUP}/v2alpha1/namespaces/default/things"
    server.request("POST", path, thing)

    def report(manager: str, **condition: str) -> Answer:
        full = {"status": "True", "reason": "Because", "message": "", "lastTransitionTime": "2024-01-01T00:00:00Z"}
        body = {**thing, "status": {"conditions": [{**full, **condition}]}}
        return server.request("PATCH", f"{path}/{name}/status?fieldManager={manager}", body, media="apply-patch+yaml")

    assert report("one", type="Ready").status == 200
    both = report("two", type="Synced").body
    refused = report("one", type="Ready", reason="two words")

    assert [condition["type"] for condition in both["status"]["conditions"]] == ["Ready", "Synced"]
    read = ThingV2.status_of(both)
    assert isinstance(read, ThingStatus)
    assert [condition.reason for condition in read.conditions] == ["Because", "Because"]
    assert refused.status == 422
    assert "status.conditions[0].reason" in refused.body["message"]


@pytest.mark.parametrize("watch", ["all", "namespace"])
def test_a_whole_manifest_is_applied_in_one_pass_without_a_warning_and_twice_without_a_change(
    server: Administrator, watch: str
) -> None:
    operator = thing_operator(f"things-{watch}", watch=watch)
    objects = documents(operator, image="registry.example.com/things:1.0.0", namespace=operator.name)

    versions = []
    for _ in range(2):
        answers = [server.apply(each) for each in objects]
        for answer in answers:
            assert answer.status in (200, 201), answer.body["message"]
            assert answer.warnings == ()
        versions.append([answer.body["metadata"]["resourceVersion"] for answer in answers])
    # The API server itself may write to a namespace and a CRD in between; it does not touch the others.
    untouched = [
        index for index, each in enumerate(objects) if each["kind"] not in ("Namespace", "CustomResourceDefinition")
    ]
    assert [versions[0][index] for index in untouched] == [versions[1][index] for index in untouched]


def test_the_pod_security_of_the_namespace_would_have_warned(server: Administrator) -> None:
    """The test above means something: the same Deployment with one setting less is warned about."""
    operator = thing_operator("things-open", watch="all")
    namespace, *_, deployment = documents(operator, image="registry.example.com/things:1.0.0", namespace="things-open")
    deployment["spec"]["template"]["spec"]["securityContext"].pop("seccompProfile")
    server.apply(namespace)

    (warning,) = server.apply(deployment).warnings

    assert "seccompProfile" in warning


def test_the_table_of_built_in_kinds_is_what_the_api_server_serves(sandbox: Sandbox) -> None:
    served = fetch(Server(sandbox.url, token=sandbox.token, ca_file=sandbox.ca_file))
    table = json.loads(TABLE.read_text(encoding="utf-8"))

    assert {api_version: served.get(api_version) for api_version in table} == table


def test_the_table_of_built_in_schemas_is_that_of_the_api_server(sandbox: Sandbox) -> None:
    definitions = builtin_schemas.fetch(Server(sandbox.url, token=sandbox.token, ca_file=sandbox.ca_file))

    made = builtin_schemas.render(builtin_schemas.table(definitions))

    assert builtin_schemas.TABLE.read_text(encoding="utf-8") == made
