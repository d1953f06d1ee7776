"""What CustomResourceDefinitions of other projects say can be said, and what a model cannot read alike is refused."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal

import pytest
from pydantic import (
    AfterValidator,
    BaseModel,
    HttpUrl,
    NaiveDatetime,
    SecretStr,
    StringConstraints,
    create_model,
    field_validator,
)

from bonny.api import (
    BuiltIn,
    Duration,
    Field,
    IntOrString,
    Model,
    Nullable,
    Quantity,
    Rule,
    Spec,
    Status,
    Version,
    base64_value,
)
from bonny.api.version import object_model
from bonny.errors import InvalidObject, OptionError
from bonny.resource import Resource
from bonny_dev.crd import check_object, schema_of
from bonny_dev.crd.definition import crds
from tests.support.constructs import CONSTRUCTS, Beside, Construct, Optional, Untyped, every_construct

EVERY = every_construct()
NAMES = [each.name for each in CONSTRUCTS]


def definition(annotation: Any, default: Any = ...) -> Resource:
    """The schema of a kind whose spec has one field."""
    spec = create_model("ThingSpec", __base__=Spec, field=(annotation, default))
    return kind(spec=spec)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]


def kind(attributes: dict[str, Any] | None = None, **annotations: Any) -> Resource:
    body: dict[str, Any] = {"kind": "Thing", "version": "v1", "storage": True, "hub": True, **(attributes or {})}
    version = type("Thing", (Version,), {**body, "__module__": __name__, "__annotations__": annotations})
    (made,) = crds([version], "example.com")
    return made


@pytest.mark.parametrize("construct", CONSTRUCTS, ids=NAMES)
def test_a_construct_has_the_schema_of_the_original(construct: Construct) -> None:
    (made,) = crds([EVERY], "example.com")

    spec = made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    assert spec["properties"][construct.name] == construct.schema


@pytest.mark.parametrize("construct", CONSTRUCTS, ids=NAMES)
def test_accepted_values_are_read_and_others_refused(construct: Construct) -> None:
    for value in construct.accepted:
        stored = check_object(EVERY, {"spec": {construct.name: value}})
        assert {*EVERY.spec_of(stored).model_dump(exclude_unset=True)} == {construct.name, "emptyDefault", "weight"}
    with pytest.raises(InvalidObject, match=rf"^spec\.{construct.name}"):
        check_object(EVERY, {"spec": {construct.name: construct.refused}})


def test_fields_beside_spec_are_read_by_the_class() -> None:
    thing = Beside.read({"value": 3, "rules": ["a"], "data": {"a": 1}})

    assert (thing.value, thing.rules_, thing.data) == (3, ["a"], {"a": 1})
    assert thing.status.observed_generation == -1
    assert Beside.spec_of({"value": 3}) is None
    with pytest.raises(InvalidObject, match=r"^Beside\.value: Input should be a valid integer"):
        Beside.read({"value": "3"})
    with pytest.raises(InvalidObject, match=r"^value: must be at most 9"):
        check_object(Beside, {"value": 10})


def test_a_definition_has_its_labels_annotations_and_a_status_from_the_start() -> None:
    (made,) = crds([Beside], "example.com")

    assert made["metadata"]["labels"] == {"part-of": "tests"}
    assert made["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
    schema = made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert (schema["required"], list(schema["properties"])) == (["value"], ["status", "value", "rules", "data"])
    assert schema["properties"]["status"]["required"] == ["conditions"]
    default = schema["properties"]["status"]["default"]
    assert (default["observedGeneration"], default["conditions"][0]["type"]) == (-1, "Accepted")
    assert "minimum" not in schema["properties"]["status"]["properties"]["observedGeneration"]


def test_a_spec_that_may_be_left_out_is_none_then_and_has_no_default() -> None:
    schema = schema_of(Optional)

    assert "required" not in schema
    assert "default" not in schema["properties"]["spec"]
    assert check_object(Optional, {"kind": "Optional"}) == {"kind": "Optional"}
    assert Optional.spec_of({}) is None
    assert Optional.spec_of({"spec": {}}).size == 1


def test_a_status_without_the_subresource_is_not_written_by_the_operator() -> None:
    (made,) = crds([Optional], "example.com")

    assert "subresources" not in made["spec"]["versions"][0]
    assert Optional.status_model() is None
    assert Optional.status_of({"status": {"a": 1}}).model_dump() == {"a": 1}  # type: ignore[union-attr]


def test_a_spec_without_a_schema_stays_a_plain_mapping() -> None:
    assert schema_of(Untyped)["properties"]["spec"] == {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    assert Untyped.spec_of({"spec": {"a": [1]}}) == {"a": [1]}
    assert object_model(Untyped).spec is None


class Size(Spec):
    least: int = 1
    most: int = 9


def test_a_spec_can_have_a_default_of_its_own() -> None:
    class Sized(Version):
        kind = "Sized"
        version = "v1"
        spec: Size = Size(most=3)

    assert schema_of(Sized)["properties"]["spec"]["default"] == {"most": 3}
    assert check_object(Sized, {})["spec"] == {"least": 1, "most": 3}
    assert Sized.spec_of({}) == Size(least=1, most=3)
    assert Sized.spec_of({"spec": {}}) == Size()


@pytest.mark.parametrize(
    ("annotations", "attributes", "why"),
    [
        ({"spec": Spec | None}, {}, r"write `spec: \.\.\. \| None = None` if it may be left out"),
        ({"spec": Spec, "stattus": Status}, {}, "versions have no 'stattus': did you mean 'status'"),
        ({"spec": Spec, "stauts": Status}, {}, "stauts is annotated with a Spec or a Status: call it spec or status"),
        ({"spec": Spec, "rules": list[str]}, {}, "'rules' is an option of versions: declare a field"),
        ({"spec": Spec, "api_version": str}, {}, "api_version is apiVersion on the wire, which every object has"),
        ({"spec": Spec, "metadata": str}, {}, "metadata is metadata on the wire, which every object has"),
        ({}, {}, "annotate spec with a class derived from Spec"),
        ({"spec": Spec, "status": dict[str, Any]}, {}, "annotate status with a class derived from Status"),
        ({"spec": Spec}, {"group": "x.k8s.io"}, "reserved for the Kubernetes project.*in crd_annotations"),
    ],
)
def test_a_version_that_cannot_be_meant_is_refused(
    annotations: dict[str, Any], attributes: dict[str, Any], why: str
) -> None:
    with pytest.raises(OptionError, match=why):
        kind(attributes, **annotations)


class Plain(BaseModel):
    host_name: str


@dataclass
class Data:
    host_name: str


class Validated(Model):
    size: int

    @field_validator("size")
    @classmethod
    def even(cls, value: int) -> int:
        return value


@pytest.mark.parametrize(
    ("annotation", "why"),
    [
        (Plain, "field: Plain has no wire names and no strict types: derive it from Model"),
        (list[Data | None], r"field\[\]: Data has no wire names"),
        (Validated, "field: the validator even of Validated would refuse objects that the API server has stored"),
        (Annotated[str, AfterValidator(str.upper)], "field: the validator upper would refuse"),
        (Annotated[str, StringConstraints(to_lower=True)], "field: its text is changed when it is read"),
        (NaiveDatetime | None, "NaiveDatetime has another form .* use datetime; times in Kubernetes have a zone"),
        (dict[int, str], "the keys of a mapping are strings on the wire"),
        (SecretStr, "SecretStr has another form .* use the name of a Secret"),
        (dict[str, HttpUrl], r"field\.\*: HttpUrl has another form .* use str with a pattern"),
        (timedelta, "timedelta has another form .* use Duration"),
        (Decimal, "Decimal has another form .* use Quantity or IntOrString"),
        (bytes, "bytes has another form .* use Base64"),
        (
            Annotated[int | Plain, Field(json_schema_extra={"x-kubernetes-int-or-string": True})],
            "Plain has no wire names",
        ),
        (Annotated[int | bool, Field(json_schema_extra={"x-kubernetes-int-or-string": True})], "cannot have a union"),
        (Annotated[int, Field(deprecated=True)], "has no deprecated fields: write it in the description"),
    ],
)
def test_a_type_that_a_model_reads_otherwise_is_refused_with_what_to_write(annotation: Any, why: str) -> None:
    with pytest.raises(OptionError, match=rf"^Thing v1: spec\..*{why}"):
        definition(annotation)


@pytest.mark.parametrize(
    ("annotation", "limit"),
    [
        (Annotated[IntOrString, Field(ge=0)], "ge"),
        (Annotated[IntOrString, Field(min_length=1)], "minLength"),
        (Annotated[Quantity, Field(max_length=9)], "maxLength"),
        (Annotated[datetime, Field(max_length=30)], "maxLength"),
        (Annotated[dict[str, str], Field(pattern="x")], "pattern"),
        (Annotated[list[str], Field(pattern="x")], "pattern"),
        (Annotated[list[str], Field(ge=1)], "ge"),
        (Annotated[bool, Field(ge=1)], "ge"),
        (Annotated[Model, Field(pattern="x")], "pattern"),
        (Annotated[int, Field(json_schema_extra={"maxItems": 1})], "maxItems"),
    ],
)
def test_a_limit_of_another_type_is_refused_by_its_name(annotation: Any, limit: str) -> None:
    with pytest.raises(OptionError, match=rf"^Thing v1: spec\.field: .*\b{limit}\b"):
        definition(annotation)


def test_limits_beside_a_built_in_type_and_a_duration_are_kept() -> None:
    built_in = definition(Annotated[dict[str, Any], BuiltIn("v1", "EnvVar"), Field(max_length=3)])["properties"][
        "field"
    ]
    duration = definition(Annotated[Duration, Field(max_length=9)])["properties"]["field"]

    assert (built_in["maxProperties"], built_in["required"]) == (3, ["name"])
    assert (duration["maxLength"], duration["pattern"][:2]) == (9, "^(")


@pytest.mark.parametrize("pattern", ["(?=x)", "(?<!x)y", r"(x)\1", "x("])
def test_a_pattern_that_no_engine_has_is_refused_in_one_sentence(pattern: str) -> None:
    with pytest.raises(OptionError, match=r"^class Probe in .*: the pattern .* cannot be matched by the API server"):
        create_model("Probe", __base__=Spec, __module__=__name__, field=(Annotated[str, Field(pattern=pattern)], ...))


@pytest.mark.parametrize("name", ["register", "schema", "copy", "json", "validate", "dict", "model_config", "mro"])
def test_a_field_named_like_a_method_is_refused_and_frees_its_name_by_an_underscore(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(OptionError, match=f"every model has '{name}' already: call the field {name}_, which is"):
            type("Probe", (Spec,), {"__module__": __name__, "__annotations__": {name: str}})
        probe = type("Probe", (Spec,), {"__module__": __name__, "__annotations__": {f"{name}_": str}})

    assert issubclass(probe, Spec)


def test_the_number_of_fields_of_a_model_is_that_of_the_given_ones() -> None:
    assert (len(Spec()), bool(Spec())) == (0, True)


def test_enumerations_cannot_be_null_in_any_spelling() -> None:
    for annotation, default in ((Annotated[Literal["a"] | None, Nullable()], None), (Literal["a"] | None, ...)):
        with pytest.raises(OptionError, match="the API server refuses null for an enumeration"):
            definition(annotation, default)


def test_rules_see_a_default_that_is_complete() -> None:
    class Range(Model, rules=(Rule("self.low <= self.high", message="low is above high"),)):
        low: int = 0
        high: int = 9

    assert definition(Range, Range(low=1))["properties"]["field"]["default"] == {"low": 1, "high": 9}


def test_base64_is_decoded_and_other_text_refused_without_its_content() -> None:
    assert base64_value("aGk=") == b"hi"
    with pytest.raises(OptionError, match="the text is not base64") as refused:
        base64_value("hunter2")
    assert "hunter2" not in str(refused.value)
