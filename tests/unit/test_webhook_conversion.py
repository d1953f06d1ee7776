"""Conversion: whatever the functions do, each object is converted, and comes back to the byte."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from collections.abc import Iterator
from copy import deepcopy
from http import HTTPStatus
from typing import Annotated, Any

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from bonny.api import Field, ListMap, ListSet, Model, PreserveUnknown, Spec, Status, Version
from bonny.api.stored import as_stored
from bonny.errors import InvalidObject
from bonny.resource import Resource, has_all_of
from bonny.webhooks.conversion import ANNOTATIONS_BYTES, CARRIED, Converter, fitting
from bonny.webhooks.lost import digest
from bonny_dev.crd import check_object, schema_of
from tests.support.effort import examples
from tests.support.specs import values

GROUP = "example.com"


class Port(Model):
    """An item with a key."""

    name: str
    number: int = 80
    note: str | None = None


class Job2Spec(Spec):
    """As the hub has it."""

    size: int = Field(1, ge=1)
    full_name: str = "a b"
    bytes_: int = 1
    ports: Annotated[list[Port], ListMap("name")] = []
    steps: list[Port] = []
    tags: Annotated[list[str], ListSet()] = []
    only: str | None = None
    free: Annotated[dict[str, Any], PreserveUnknown()] | None = None


class Job2Status(Status):
    """What the operator reports."""

    done: int | None = None


class Job2(Version):
    """The hub."""

    kind = "Job"
    version = "v2"
    hub = storage = True
    spec: Job2Spec
    status: Job2Status


class PlainPort(Model):
    """Without the note."""

    name: str
    number: int = 80


class Job1Spec(Spec):
    """Renamed, split, dropped, and of another unit."""

    width: int = Field(1, ge=1)
    first: str = "a"
    last: str | None = None
    amount: int = 1
    unit: str = "B"
    ports: Annotated[list[PlainPort], ListMap("name")] = []
    steps: list[PlainPort] = []
    remark: str | None = None


class Job1(Version):
    """Written with care."""

    kind = "Job"
    version = "v1"
    spec: Job1Spec
    status: Job2Status

    @staticmethod
    def to_hub(resource: Resource) -> Resource:
        spec = resource.pop("spec", {})
        factor = 1000 if spec.get("unit") == "KB" else 1
        made = {
            "size": spec.get("width"),
            "fullName": f"{spec.get('first', '')} {spec.get('last', '')}",
            "bytes": spec.get("amount", 0) * factor,
            **{name: spec[name] for name in ("ports", "steps") if name in spec},
        }
        return {**resource, "spec": made}

    @staticmethod
    def from_hub(resource: Resource) -> Resource:
        spec = resource.pop("spec", {})
        first, _, last = spec.get("fullName", "").partition(" ")
        made = {"width": spec.get("size"), "first": first, "last": last, "amount": spec.get("bytes"), "unit": "B"}
        return {**resource, "spec": made | {name: spec[name] for name in ("ports", "steps") if name in spec}}


class NarrowSpec(Spec):
    """The size is a text, and the name a number."""

    size: str = "1"
    full_name: int = 0
    status: str | None = None


class Narrow(Version):
    """Has functions that return other types than the schema says."""

    kind = "Job"
    version = "v1beta1"
    spec: NarrowSpec

    @staticmethod
    def to_hub(resource: Resource) -> Resource:
        return resource

    @staticmethod
    def from_hub(resource: Resource) -> Resource:
        return resource


class Raising(Version):
    """Fails on every other size, in both directions."""

    kind = "Job"
    version = "v1alpha1"
    spec: Job1Spec

    @staticmethod
    def to_hub(resource: Resource) -> Resource:
        if resource["spec"]["width"] % 2:
            raise ValueError("secret")
        return {**resource, "spec": {"size": resource["spec"]["width"]}}

    @staticmethod
    def from_hub(resource: Resource) -> Resource:
        if resource["spec"]["size"] % 2:
            sys.exit(resource["spec"]["size"])
        return {**resource, "spec": {"width": resource["spec"]["size"]}}


class Meddling(Version):
    """Changes metadata that is not its own, and counts up."""

    kind = "Job"
    version = "v1alpha2"
    spec: Job1Spec

    @staticmethod
    def to_hub(resource: Resource) -> Resource:
        resource["metadata"] = {"name": "other", "uid": "2", "labels": {"a/b/c": "x"}, "annotations": {"seen": "1"}}
        resource["spec"]["size"] = resource["spec"].get("width", 0) + 1
        return resource

    @staticmethod
    def from_hub(resource: Resource) -> Resource:
        resource["metadata"].pop("labels", None)
        resource["metadata"]["annotations"] = {"not a key": "x"}
        resource["spec"]["width"] = resource["spec"].get("size", 0) + 1
        return {**resource, "kind": "Other", "apiVersion": "v9"}


ANSWERS: tuple[Any, ...] = (
    None,
    [],
    {},
    {"metadata": 1},
    {"spec": 1},
    {"spec": {"size": {1}}},
    {"spec": {1: object()}},
)


class Absurd(Version):
    """Returns anything, and something else the next time that the size is another."""

    kind = "Job"
    version = "v1alpha3"
    spec: Job2Spec

    @staticmethod
    def to_hub(resource: Resource) -> Resource:
        answer: Resource = ANSWERS[len(json.dumps(resource)) % len(ANSWERS)]
        return answer

    from_hub = to_hub


class Empty(Version):
    """Has no fields of its own."""

    kind = "Job"
    version = "v3"
    spec: Spec

    @staticmethod
    def to_hub(resource: Resource) -> Resource:
        return {**resource, "spec": {}}

    from_hub = to_hub


VERSIONS: tuple[type[Version], ...] = (Job2, Job1, Narrow, Raising, Meddling, Absurd)
SCHEMAS = {f"{GROUP}/{version.version}": schema_of(version) for version in VERSIONS}
CONVERTER = Converter(VERSIONS, GROUP)
QUICK = settings(
    deadline=None,
    max_examples=examples(150),
    suppress_health_check=list(HealthCheck),
    phases=(Phase.explicit, Phase.generate),
)


@st.composite
def objects(draw: st.DrawFn, version: type[Version]) -> Resource:
    """An object as the API server has it in this version."""
    metadata: Resource = {"name": "j", "namespace": "default", "uid": "1", "finalizers": ["example.com/f"]}
    if draw(st.booleans()):
        metadata["labels"] = {"app": draw(st.sampled_from(("x", "y")))}
    if draw(st.booleans()):
        metadata["annotations"] = {"example.com/note": draw(st.sampled_from(("", "ü")))}
    head = {"apiVersion": f"{GROUP}/{version.version}", "kind": "Job", "metadata": metadata}
    schema = SCHEMAS[f"{GROUP}/{version.version}"]
    fields = fitting(as_stored(draw(values(schema)), schema), schema)
    made = {**(fields if isinstance(fields, dict) else {}), **head}
    try:
        return check_object(version, made)
    except InvalidObject:
        assume(False)
        raise


def written(resource: Resource) -> bytes:
    return msgspec.json.encode(resource, order="deterministic")


def without_data(resource: Resource) -> Resource:
    found = deepcopy(resource)
    annotations = found["metadata"].get("annotations", {})
    for key in [key for key in annotations if key.startswith(CARRIED)]:
        del annotations[key]
    if annotations == {}:
        found["metadata"].pop("annotations", None)
    return found


def is_servable(resource: Resource) -> None:
    """Assert what the API server and readers of lists ask of a converted object."""
    schema = SCHEMAS[resource["apiVersion"]]
    fields = {name: value for name, value in resource.items() if name not in ("apiVersion", "kind", "metadata")}
    assert fitting(fields, schema) == fields
    assert has_all_of(as_stored(fields, schema), fields)
    metadata = resource["metadata"]
    assert {name: metadata[name] for name in ("name", "namespace", "uid", "finalizers")} == {
        "name": "j",
        "namespace": "default",
        "uid": "1",
        "finalizers": ["example.com/f"],
    }
    assert resource["kind"] == "Job"
    for key, value in (metadata.get("labels", {}) | metadata.get("annotations", {})).items():
        assert isinstance(value, str)
        assert key in ("app", "seen", "example.com/note") or key.startswith(CARRIED)


@QUICK
@given(st.data())
def test_every_chain_of_versions_leads_back_to_the_byte(data: st.DataObject) -> None:
    first, *chain = data.draw(st.lists(st.sampled_from(VERSIONS), min_size=2, max_size=5))
    resource = data.draw(objects(first))
    before, now = written(resource), resource

    for version in (*chain, first):
        now = CONVERTER.convert(now, f"{GROUP}/{version.version}")
        is_servable(now)

    assert written(resource) == before
    assert written(now) == before


@QUICK
@given(st.data())
def test_what_a_user_writes_in_any_version_stays(data: st.DataObject) -> None:
    """The annotation stays, as it does in an edit, and belongs to other values now."""
    now = data.draw(objects(data.draw(st.sampled_from(VERSIONS))))
    for _ in range(3):
        version, other = (data.draw(st.sampled_from(VERSIONS)) for _ in range(2))
        now = CONVERTER.convert(now, f"{GROUP}/{version.version}")
        edited = data.draw(objects(version)) | {"metadata": now["metadata"]}

        there = CONVERTER.convert(edited, f"{GROUP}/{other.version}")
        now = CONVERTER.convert(there, f"{GROUP}/{version.version}")

        assert written(without_data(now)) == written(without_data(edited))


@QUICK
@given(st.data())
def test_an_edit_of_one_field_keeps_what_the_other_version_has_besides(data: st.DataObject) -> None:
    old = data.draw(objects(Job1))
    old["spec"] = {**old["spec"], "width": 3, "remark": "kept"}
    new = CONVERTER.convert(old, f"{GROUP}/v2")
    new["spec"]["size"] = 5
    new["status"] = {"done": 7}

    back = CONVERTER.convert(new, f"{GROUP}/v1")

    assert back["spec"] == {**old["spec"], "width": 5}
    assert back["status"] == {"done": 7}


def without_one(value: Any, schema: Resource) -> Iterator[Any]:
    """Copies of the value, each without one field or one item, which field managers own by itself."""
    if isinstance(value, dict):
        for name, inner in value.items():
            others = {key: item for key, item in value.items() if key != name}
            yield others
            yield from (
                others | {name: each} for each in without_one(inner, schema.get("properties", {}).get(name, {}))
            )
    elif schema.get("x-kubernetes-list-type") in ("map", "set"):
        for index, item in enumerate(value if len(value) > 1 else ()):
            yield value[:index] + value[index + 1 :]
            inside = without_one(item, schema["items"])
            yield from ([*value[:index], each, *value[index + 1 :]] for each in inside if "name" in each)


@QUICK
@given(st.data())
def test_a_field_manager_removes_any_value_that_the_other_version_lacks(data: st.DataObject) -> None:
    """The API server converts the object with the value and the object without it, and removes from the one what the
    other lacks (structured-merge-diff, `Updater.prune`): here annotations."""
    converter = Converter((Job2, Empty), GROUP)
    there = data.draw(objects(Job2))
    names = data.draw(st.lists(st.sampled_from("abc"), min_size=1, unique=True))
    there["spec"] |= {"tags": names, "ports": [{"name": name, "number": 1, "note": "n"} for name in names]}
    left = data.draw(st.sampled_from([*without_one(there["spec"], SCHEMAS[f"{GROUP}/v2"]["properties"]["spec"])]))

    merged, pruned = (converter.convert({**there, "spec": spec}, f"{GROUP}/v3") for spec in (there["spec"], left))
    kept = merged["metadata"]["annotations"].keys() & pruned["metadata"].get("annotations", {}).keys()
    merged["metadata"]["annotations"] = {key: merged["metadata"]["annotations"][key] for key in kept}

    now = check_object(Job2, without_data(converter.convert(merged, f"{GROUP}/v2")))
    assert now == check_object(Job2, {**there, "spec": left})


def test_a_carried_value_is_kept_until_the_user_changes_its_field_back() -> None:
    converter, given = (
        Converter(VERSIONS, GROUP),
        job(width=1, amount=2, unit="KB", first="a", last="b", ports=[], steps=[]),
    )
    new = converter.convert(given, f"{GROUP}/v2")
    edited = {**new, "spec": {**new["spec"], "bytes": 1500}}

    again = converter.convert(converter.convert(edited, f"{GROUP}/v1"), f"{GROUP}/v2")

    assert again == edited
    assert converter.convert({**again, "spec": new["spec"]}, f"{GROUP}/v1") == given


def job(version: str = "v1", **spec: Any) -> Resource:
    metadata = {"name": "j", "namespace": "default", "uid": "1"}
    return {"apiVersion": f"{GROUP}/{version}", "kind": "Job", "metadata": metadata, "spec": spec}


def test_values_that_belong_together_are_not_mixed_with_what_the_user_wrote() -> None:
    """1500 bytes and the lost unit KB would be another amount."""
    converter = Converter(VERSIONS, GROUP)
    given = {"width": 1, "first": "a", "last": "b", "remark": "kept", "ports": [], "steps": []}
    new = converter.convert(job(**given, amount=2, unit="KB"), f"{GROUP}/v2")
    assert new["spec"]["bytes"] == 2000
    new["spec"]["bytes"] = 1500

    back = converter.convert(new, f"{GROUP}/v1")

    assert back["spec"] == {**given, "amount": 1500, "unit": "B"}


def test_fields_of_items_stay_with_their_items() -> None:
    converter = Converter(VERSIONS, GROUP)
    steps = [{"name": "x", "number": 1, "note": "X"}, {"name": "x", "number": 2, "note": "Y"}]
    old = converter.convert(job("v2", ports=deepcopy(steps[:1]), steps=deepcopy(steps)), f"{GROUP}/v1")
    assert old["spec"]["ports"] == [{"name": "x", "number": 1}]
    old["spec"]["ports"] = [{"name": "new", "number": 9}, {"name": "x", "number": 8}]
    old["spec"]["steps"].insert(0, {"name": "new", "number": 9})

    new = converter.convert(old, f"{GROUP}/v2")

    assert new["spec"]["ports"] == [{"name": "new", "number": 9}, {"name": "x", "number": 8, "note": "X"}]
    assert new["spec"]["steps"] == [{"name": "new", "number": 9}, *steps]


def test_a_value_of_a_wrong_type_is_left_out_and_one_beyond_a_limit_is_shown() -> None:
    converter = Converter(VERSIONS, GROUP)

    narrow = converter.convert(job("v2", size=0, fullName="a b"), f"{GROUP}/v1beta1")

    assert narrow["spec"] == {}
    wide = converter.convert(job(width=-3), f"{GROUP}/v2")
    assert wide["spec"]["size"] == -3


def test_the_annotation_holds_the_difference_alone() -> None:
    new = Converter(VERSIONS, GROUP).convert(job(width=1, remark="kept", last="b"), f"{GROUP}/v2")

    carried = [json.loads(text) for text in new["metadata"]["annotations"].values()]

    assert {"v1": {"path": ["spec", "remark"], "value": "kept"}} in carried
    assert {version for each in carried for version in each} == {"v1"}


def test_a_field_of_a_later_release_is_not_lost_by_a_replica_of_this_one() -> None:
    converter = Converter(VERSIONS, GROUP)
    given = converter.convert(converter.convert(job(width=2), f"{GROUP}/v2"), f"{GROUP}/v1")
    given["spec"]["later"] = {"x": 1}

    new = converter.convert(given, f"{GROUP}/v2")

    assert "later" not in new["spec"]
    assert converter.convert(new, f"{GROUP}/v1") == given


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"v1": 1}', '{"v1": {"path": 1}}', '{"v1": {"path": []}}', '{"v9": {"path": ["a"]}}']
)
def test_an_annotation_that_somebody_else_wrote_does_no_harm(text: str) -> None:
    resource = job(width=2)
    resource["metadata"]["annotations"] = {f"{CARRIED}a": text}

    assert Converter(VERSIONS, GROUP).convert(resource, f"{GROUP}/v2")["spec"]["size"] == 2


def test_an_annotation_cannot_bring_in_a_value_of_a_wrong_type_or_change_a_name() -> None:
    resource = job("v2", size=2)
    forged = [
        {"path": ["spec", "remark"], "value": 1},
        {"path": ["metadata", "labels", "no label"], "value": "x"},
        {"path": ["metadata", "labels", "x"], "value": 1},
        {"path": ["metadata", "name"], "value": "other"},
        {"path": ["kind"], "value": "Other"},
    ]
    annotations = {f"{CARRIED}{number}": json.dumps({"v1": each}) for number, each in enumerate(forged)}
    resource["metadata"]["annotations"] = annotations

    old = Converter(VERSIONS, GROUP).convert(resource, f"{GROUP}/v1")

    assert "remark" not in old["spec"]
    assert (old["kind"], old["metadata"]["name"], old["metadata"].get("labels")) == ("Job", "j", None)


def test_what_is_too_long_for_an_annotation_is_said_to_be_lost(caplog: pytest.LogCaptureFixture) -> None:
    converter = Converter(VERSIONS, GROUP)

    new = converter.convert(job(width=2, remark="x" * ANNOTATIONS_BYTES), f"{GROUP}/v2")

    assert "annotations" not in new["metadata"]
    assert converter.objects["Job", "lost"] == 1
    (record,) = caplog.records
    assert (record.levelname, vars(record)["object"], vars(record)["conversion"]) == (
        *("WARNING", "default/j"),
        "v1 to v2",
    )


@pytest.mark.parametrize("letter", ["x", "ü"])
@pytest.mark.parametrize("beyond", [0, 1])
def test_annotations_carry_values_up_to_the_limit_of_the_api_server_in_bytes(letter: str, beyond: int) -> None:
    """One more byte, and the API server would refuse the converted object."""
    converter = Converter(VERSIONS, GROUP)

    def converted(remark: str) -> dict[str, str]:
        made = converter.convert(job(width=2, remark=remark), f"{GROUP}/v2")
        found: dict[str, str] = made["metadata"].get("annotations", {})
        return found

    around = sum(len(f"{key}{value}".encode()) for key, value in converted("").items())
    letters, rest = divmod(ANNOTATIONS_BYTES - around, len(letter.encode()))

    found = converted(letter * letters + "x" * (rest + beyond))

    assert sum(len(f"{key}{value}".encode()) for key, value in found.items()) == (0 if beyond else ANNOTATIONS_BYTES)
    assert converter.objects["Job", "lost"] == beyond


class Labelling(Version):
    """Changes labels and annotations."""

    kind = "Job"
    version = "v1beta2"
    spec: Job2Spec
    _label = "x"

    @classmethod
    def to_hub(cls, resource: Resource) -> Resource:
        metadata = resource["metadata"]
        labels = metadata.get("labels", {}) | {"app": cls._label}
        annotations = metadata.get("annotations", {}) | {"seen": "1"}
        return {**resource, "metadata": {**metadata, "labels": labels, "annotations": annotations}}

    @staticmethod
    def from_hub(resource: Resource) -> Resource:
        return resource


@pytest.mark.parametrize("label", ["not a value", "x" * 64, "-"])
def test_labels_with_a_value_that_the_api_server_refuses_stay_as_they_were(
    label: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One such object would hide all objects of its kind."""
    monkeypatch.setattr(Labelling, "_label", label)
    given = job("v1beta2", size=2)
    given["metadata"]["labels"] = {"app": "mine"}

    assert Converter((Job2, Labelling), GROUP).convert(given, f"{GROUP}/v2")["metadata"]["labels"] == {"app": "mine"}


def test_an_annotation_with_capital_letters_does_not_undo_what_a_function_changed() -> None:
    """The API server accepts such keys; only keys of labels are lower case before their slash."""
    given = job("v1beta2", size=2)
    given["metadata"]["annotations"] = {"Example.COM/Note": "x"}

    new = Converter((Job2, Labelling), GROUP).convert(given, f"{GROUP}/v2")

    assert without_carried(new["metadata"]["annotations"]) == {"Example.COM/Note": "x", "seen": "1"}


def without_carried(annotations: dict[str, str]) -> dict[str, str]:
    return {key: value for key, value in annotations.items() if not key.startswith(CARRIED)}


def test_versions_that_name_their_group_are_converted_in_it() -> None:
    class Hub(Job2):
        """In a group of its own."""

        group = "other.example.org"

    class Old(Job1):
        """In the same group."""

        group = "other.example.org"

    given = job(width=2) | {"apiVersion": "other.example.org/v1"}

    new = Converter((Hub, Old), GROUP).convert(given, "other.example.org/v2")

    assert (new["apiVersion"], new["spec"]["size"]) == ("other.example.org/v2", 2)


@pytest.mark.parametrize(("levels", "lost"), [(200, 0), (450, 1)])
def test_an_object_that_is_nested_too_deeply_is_not_compared_and_does_not_fail_the_list(levels: int, lost: int) -> None:
    """Regression: from Python 3.12 on, 900 levels were compared, which took seconds and cost the lease."""
    free: Resource = {}
    for _ in range(levels):
        free = {"x": free}
    converter = Converter(VERSIONS, GROUP)

    status, answer = answered(converter, review("v1", job("v2", size=2, free=free), job("v2", size=3)))

    assert status == 200
    assert [each["metadata"]["name"] for each in answer["response"]["convertedObjects"]] == ["j", "j"]
    assert converter.objects["Job", "lost"] == lost


@pytest.mark.parametrize("levels", [700, 1_500, 9_000])
def test_an_object_that_is_nested_deeper_than_a_decoder_follows_does_not_hide_the_other_objects(
    levels: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Regression: from 990 levels on, each list of the kind failed in the other version."""
    converter = Converter(VERSIONS, GROUP)
    body = msgspec.json.encode(review("v1", job("v2", size=2, free="deep"), job("v2", size=3)))
    deep = b'{"x":' * levels + b"1" + b"}" * levels

    status, answer = answered(converter, body.replace(b'"deep"', deep))

    assert status == 200
    first, second = answer["response"]["convertedObjects"]
    assert (first["metadata"], first["apiVersion"], first["spec"]["size"]) == (job()["metadata"], f"{GROUP}/v1", 2)
    assert second["spec"]["width"] == 3
    assert (converter.objects["Job", "lost"], converter.objects["Job", "carried"]) == (1, 1)
    assert [vars(line)["object"] for line in caplog.records if line.levelname == "WARNING"] == ["default/j"]


def test_a_function_that_fails_is_logged_once_without_values_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "bonny.webhooks")
    converter = Converter(VERSIONS, GROUP)

    for number in (1, 3):
        new = converter.convert(job("v1alpha1", width=number, remark="secret"), f"{GROUP}/v2")
        assert converter.convert(new, f"{GROUP}/v1alpha1") == job("v1alpha1", width=number, remark="secret")

    assert converter.objects["Job", "failed"] == 4
    logged = [(record.message, vars(record)["conversion"], vars(record)["error"]) for record in caplog.records]
    failed = "a conversion function failed; fields that both versions have were copied"
    assert logged[0] == (failed, "Raising.to_hub", "ValueError")
    assert len(set(logged)) == len(logged)
    assert "secret" not in caplog.text


def answered(converter: Converter, body: Any) -> tuple[HTTPStatus, Any]:
    sent = body if isinstance(body, bytes) else msgspec.json.encode(body)
    status, text = asyncio.run(converter.answer(sent))
    return status, json.loads(text) if status is HTTPStatus.OK else text


def review(version: str, *resources: Resource) -> Resource:
    request = {"uid": "u1", "desiredAPIVersion": f"{GROUP}/{version}", "objects": resources}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": request}


@pytest.mark.parametrize("count", [0, 1, 7])
def test_a_list_of_any_length_and_of_mixed_versions_is_answered_in_its_order(count: int) -> None:
    versions = [("v1", "width"), ("v2", "size"), ("v1beta1", "size")]
    given = [job(versions[index % 3][0], **{versions[index % 3][1]: index + 1}) for index in range(count)]
    given = [each | {"metadata": {"name": f"j{index}"}} for index, each in enumerate(given)]

    status, answer = answered(Converter(VERSIONS, GROUP), review("v2", *given))

    assert (status, answer["response"]["uid"], answer["response"]["result"]) == (200, "u1", {"status": "Success"})
    assert [each["metadata"]["name"] for each in answer["response"]["convertedObjects"]] == [
        f"j{n}" for n in range(count)
    ]
    assert {each["apiVersion"] for each in answer["response"]["convertedObjects"]} <= {f"{GROUP}/v2"}


def test_a_version_that_this_image_lacks_is_refused_with_its_name() -> None:
    converter = Converter(VERSIONS, GROUP)

    for body, missing in ((review("v3", job()), "v3"), (review("v2", job("v0")), "v0")):
        status, answer = answered(converter, body)
        assert (status, answer["response"]["uid"], answer["response"]["result"]["status"]) == (200, "u1", "Failure")
        message = f"this release of the operator has no Job in version {GROUP}/{missing}"
        assert answer["response"]["result"]["message"] == message


@pytest.mark.parametrize("body", [b"", b"{", b"[]", {"request": {}}, {"response": {}}, b"[" * 5000])
def test_what_is_not_a_review_is_answered_by_400(body: Any) -> None:
    assert answered(Converter(VERSIONS, GROUP), body)[0] is HTTPStatus.BAD_REQUEST


# --- an annotation that a user made up --------------------------------------------------------------------------------

NOTHING = digest({})
FORGED = (
    "[" * 5000,
    '{"v2":{"path":["spec","free","x"],"value":' + "[" * 5000 + "]" * 5000 + "}}",
    *(
        json.dumps({"v2": loss})
        for loss in (
            {"path": ["metadata"], "instead": NOTHING},
            {"path": ["metadata"], "instead": NOTHING, "value": 5},
            {"path": ["metadata"], "instead": NOTHING, "order": []},
            {"path": ["metadata", "labels"], "instead": NOTHING, "order": [["a"]]},
            {"path": ["spec"], "instead": NOTHING, "order": [["a"]]},
            {"path": [], "instead": NOTHING, "value": 5},
            {"path": [["a"]], "value": 5},
            {"path": ["metadata", "labels"], "instead": NOTHING},
            {"path": ["metadata", "labels"], "instead": NOTHING, "value": {"a": 1}},
            {"path": ["metadata", "labels", "a"], "value": {"x": []}},
            {"path": ["metadata", "annotations"], "instead": NOTHING, "value": [1]},
            {"path": ["metadata", "annotations", "a"], "value": 5},
            {"path": ["metadata", "annotations", "a"], "items": [["", None]]},
        )
    ),
)


@pytest.mark.parametrize("forged", FORGED)
def test_no_annotation_of_a_user_hides_the_objects_of_all_others(forged: str) -> None:
    """Regression: one such object failed, and with it every list and watch of its kind."""
    given = job("v1", width=3) | {
        "metadata": {"name": "j", "namespace": "default", "annotations": {f"{CARRIED}a": forged}}
    }

    converted = Converter(VERSIONS, GROUP).convert(given, f"{GROUP}/v2")

    assert converted["spec"]["size"] == 3
    assert set(converted["metadata"]) <= {"name", "namespace", "annotations"}


@pytest.mark.parametrize(("ports", "most"), [(0, 1100), (1000, 110)])
def test_an_annotation_does_not_hold_up_the_event_loop(ports: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: 4000 values that do not fit were looked at one by one, for 3 seconds. And the larger the object, the
    longer each look: in an object of 100 KiB they took 10 seconds, and the API server gives up after 30."""
    calls: list[Resource] = []

    original = Job1.from_hub

    def from_hub(resource: Resource) -> Resource:
        calls.append(resource)
        return original(resource)

    monkeypatch.setattr(Job1, "from_hub", staticmethod(from_hub))
    lost = [{"path": ["spec", "size"], "instead": digest(3), "value": 7 + number} for number in range(4000)]
    forged = {f"{CARRIED}{number}": json.dumps({"v2": loss}) for number, loss in enumerate(lost)}
    given = job("v1", width=3, steps=[{"name": "x"}] * ports)
    given["metadata"] |= {"annotations": forged}

    Converter(VERSIONS, GROUP).convert(given, f"{GROUP}/v2")

    assert len(calls) < most


def test_the_time_for_many_lost_values_is_that_for_each_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: the whole object was read for each lost value; 16,000 of them took 24 seconds."""
    read: list[Any] = []

    def noted(value: Any) -> str:
        read.append(value)
        return digest(value)

    monkeypatch.setattr("bonny.webhooks.conversion.digest", noted)

    ports = [{"name": f"p{number}", "number": 1, "note": "n"} for number in range(300)]
    converted = Converter(VERSIONS, GROUP).convert(job("v2", size=3, ports=ports), f"{GROUP}/v1")

    assert len(converted["metadata"]["annotations"]) >= 300
    assert len([value for value in read if isinstance(value, dict)]) < 10


async def test_other_tasks_have_their_turn_between_the_conversions_of_requests_that_come_at_once() -> None:
    """Regression: twenty objects of 280 KiB kept the event loop for 17 seconds, in which no lease was renewed."""
    order: list[str] = []

    class Noting(Job1):
        @staticmethod
        def to_hub(resource: Resource) -> Resource:
            if order[-1] != "conversion":  # it is called a second time, to compare
                order.append("conversion")
            return Job1.to_hub(resource)

    async def others() -> None:
        while True:
            order.append("turn")
            await asyncio.sleep(0)

    converter = Converter((Job2, Noting), GROUP)
    request = {"uid": "1", "desiredAPIVersion": f"{GROUP}/v2", "objects": [job("v1", width=3)]}
    body = json.dumps({"request": request}).encode()
    turns = asyncio.create_task(others())
    await asyncio.sleep(0)

    await asyncio.gather(*(converter.answer(body) for _ in range(20)))

    turns.cancel()
    assert order.count("conversion") == 20
