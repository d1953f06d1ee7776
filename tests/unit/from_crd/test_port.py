"""Classes from definitions: the definition made of them equals the original, or every difference is named."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path

import pytest

from bonny.api.version import object_model
from bonny.errors import InvalidObject, UsageError
from bonny.resource import Resource
from bonny_dev.crd import check_object, schema_of
from bonny_dev.crd.builtin import builtin_schema
from bonny_dev.from_crd.canonical import canonical
from bonny_dev.from_crd.compare import differences
from bonny_dev.from_crd.port import Port, port
from bonny_dev.from_crd.reading import read_crd
from bonny_dev.from_crd.sample import sample

CORPUS = Path(__file__).parents[2] / "corpus"


def crd_of(name: str) -> Resource:
    return read_crd(str(CORPUS / f"{name}.yaml"))[0]


def ported(crd: Resource, *, version: str = "") -> Port:
    return port(crd, group="example.com", version=version)


def with_spec(**fields: Resource) -> Resource:
    """A definition whose spec has some fields."""
    crd = crd_of("tickets")
    crd["spec"] |= {"names": {"kind": "Ticket", "plural": "tickets"}, "conversion": {"strategy": "None"}}
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}}
    crd["spec"]["versions"][0]["schema"] = {"openAPIV3Schema": schema}
    return crd


@pytest.mark.parametrize("name", ["aquariums", "labels", "boxes"])
def test_a_definition_of_everything_that_can_be_said_comes_back_equal(name: str) -> None:
    assert ported(crd_of(name)).differences == []


def test_descriptions_become_docstrings_whatever_is_in_them() -> None:
    spec = schema_of(ported(crd_of("aquariums")).hub_class)["properties"]["spec"]

    assert spec["description"] == 'What is wanted:\n- clean "water"\n- C:\\fish'
    assert spec["properties"]["spareFilter"]["description"] == "Another one."
    assert spec["properties"]["filter"]["description"] == "Cleans the water."


WEBHOOK = (
    '{"strategy": "Webhook", "webhook": {"clientConfig": {"url": "https://example.org"}, '
    '"conversionReviewVersions": ["v1"]}}'
)


def test_what_no_class_can_say_is_kept_and_what_no_definition_of_ours_has_is_named() -> None:
    result = ported(crd_of("tickets"))

    assert result.differences == [
        'definition: listKind is "TicketList", not "Tickets"',
        f"definition: conversion is missing (it was {WEBHOOK})",
        "v1: lacks metadata",
    ]
    spec = schema_of(result.hub_class)["properties"]["spec"]
    assert spec["oneOf"] == [{"required": ["cash"]}, {"required": ["card"]}]
    assert spec["properties"]["code"]["pattern"] == r"\bfish\b"
    assert spec["properties"]["open"] == {"type": "object", "additionalProperties": True}
    assert "AsIs({'format': 'creditcard'})" in result.modules["v1"]


def test_objects_of_one_shape_share_a_class_and_others_of_the_name_are_named_by_their_path() -> None:
    source = ported(crd_of("aquariums")).modules["v1"]

    assert source.count("class Filter(Model") == 1
    assert "spare_filter: Filter = Filter.model_validate({'size': 3}, strict=False)" in source
    assert "class PlantFilter(Model" in source


def test_versions_that_differ_are_refused_together_and_taken_one_by_one() -> None:
    crd = crd_of("aquariums")
    changed = deepcopy(crd["spec"]["versions"][1])
    changed["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["volume"] = {"type": "string"}
    changed["served"] = True
    crd["spec"]["versions"][1] = changed

    with pytest.raises(UsageError, match=r"cannot be declared together \(.*spec\.volume.*take one .* --version v1"):
        ported(crd)
    assert ported(crd, version="v1").differences == ["v1beta1: is missing"]
    assert ported(crd, version="v1beta1").differences == ["v1: is missing", "v1beta1: storage is true, not false"]


def test_a_version_that_is_not_there_is_refused_with_those_that_are() -> None:
    with pytest.raises(UsageError, match=r"aquaria\.sea\.example\.org has no version v9: name one of v1, v1beta1"):
        ported(crd_of("aquariums"), version="v9")


TEXT: Resource = {"type": "string"}
KEEP = "x-kubernetes-preserve-unknown-fields"


def test_a_built_in_type_is_taken_only_where_no_field_and_no_limit_is_lost() -> None:
    probe = deepcopy(builtin_schema("v1", "Container")["properties"]["livenessProbe"])
    assert "BuiltIn('v1', 'Probe')" in ported(with_spec(probe=probe)).modules["v1"]

    fewer = deepcopy(probe)
    del fewer["properties"]["grpc"]  # newer Kubernetes has more fields: still covered when it is large
    more = {**probe, "properties": {**probe["properties"], "retries": {"type": "integer"}}}
    deeper = deepcopy(probe)
    deeper["properties"]["httpGet"]["properties"]["proxy"] = TEXT
    limited = deepcopy(probe)
    limited["properties"]["periodSeconds"]["minimum"] = 5
    looser = deepcopy(probe)
    looser["properties"]["httpGet"].pop("required")
    for each in (fewer, more, deeper, limited, looser):
        result = ported(with_spec(probe=each))
        assert "BuiltIn('v1', 'Probe')" not in result.modules["v1"]
        assert result.differences == []


def test_a_large_type_of_an_older_kubernetes_is_a_mapping_with_the_schema_of_the_original() -> None:
    template = deepcopy(builtin_schema("v1", "PodTemplateSpec"))
    del template["properties"]["spec"]["properties"]["hostUsers"]

    result = ported(with_spec(template=template))

    assert "AsIs(SCHEMAS['PodTemplateSpec at spec.template'])" in result.modules["v1"]
    fields = schema_of(result.hub_class)["properties"]["spec"]["properties"]["template"]["properties"]
    assert "hostUsers" not in fields["spec"]["properties"]
    assert result.differences == []


def test_an_argument_with_a_field_of_its_own_is_no_environment_variable() -> None:
    argument = {
        "type": "object",
        "required": ["name"],
        "properties": {
            "name": TEXT,
            "value": TEXT,
            "valueFrom": {"type": "object", "properties": {"podTemplateHashValue": TEXT}},
        },
    }
    result = ported(with_spec(arguments={"type": "array", "items": argument}))

    assert "class Argument(Model)" in result.modules["v1"]
    assert result.differences == []


@pytest.mark.parametrize("name", ["aquariums", "labels", "boxes", "tickets"])
def test_the_sample_has_the_required_fields_and_is_accepted(name: str) -> None:
    result = ported(crd_of(name))

    resource, problem = sample(result.hub_class, "example.com")

    assert problem == ""
    assert check_object(result.hub_class, resource)["metadata"] == {"name": f"{resource['kind'].lower()}-sample"}


def test_a_sample_that_would_be_refused_says_why() -> None:
    crd = with_spec(code={"type": "string", "pattern": "^fish-[0-9]{7}$"})
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["required"] = ["code"]

    _, problem = sample(ported(crd).hub_class, "example.com")

    assert problem == "spec.code: must match ^fish-[0-9]{7}$"


def test_an_attack_in_texts_of_a_definition_stays_text() -> None:
    hostile = '"""\n    import os; os.abort()\n\\'
    field = {"type": "string", "description": hostile, "pattern": "^[\"'\\\\]{3}$", "default": '"""'}
    result = ported(with_spec(**{"a'b\"c\n": field, "x": {**TEXT, "enum": [hostile]}}))

    assert result.differences == []


@pytest.mark.parametrize("name", ["aquariums", "labels", "boxes", "tickets"])
def test_a_definition_does_not_differ_from_itself(name: str) -> None:
    assert differences(crd_of(name), crd_of(name)) == []


def test_fields_too_deep_for_classes_are_refused_in_a_sentence() -> None:
    schema = TEXT
    for _ in range(45):
        schema = {"type": "object", "properties": {"inner": schema}}

    with pytest.raises(UsageError, match="Ticket cannot be declared: its fields are nested too deep for classes"):
        ported(with_spec(deep=schema))


def test_a_version_without_fields_is_left_out_and_named() -> None:
    crd = with_spec(size=TEXT)
    crd["spec"]["versions"].append({"name": "v1alpha1", "served": False, "storage": False, "schema": {}})

    assert ported(crd).differences == ["v1alpha1: is missing"]


def test_fields_beside_spec_whose_names_resemble_options_become_attributes() -> None:
    crd = with_spec(size=TEXT)
    names = (
        "specs",
        "groups",
        "kinds",
        "scopes",
        "versions",
        "statuses",
        "plurals",
        "storages",
        "rule",
        "serve",
        "hubs",
    )
    properties = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    properties |= {name: {**TEXT, "description": f"The {name}."} for name in (*names, "scope", "scope_", "value")}

    result = ported(crd)

    assert result.differences == []
    assert "    specs_: " in result.modules["v1"]
    assert "    value: " in result.modules["v1"]
    assert schema_of(result.hub_class)["properties"]["specs"]["description"] == "The specs."


def test_a_status_without_a_spec_becomes_classes() -> None:
    crd = with_spec()
    status = {"type": "object", "properties": {"size": TEXT}}
    version = crd["spec"]["versions"][0]
    version["schema"]["openAPIV3Schema"]["properties"] = {"status": status}
    version["subresources"] = {"status": {}}

    result = ported(crd)

    assert result.differences == []
    assert object_model(result.hub_class).spec is None


def test_a_column_of_a_field_that_is_gone_is_left_out_and_named() -> None:
    crd = with_spec(size=TEXT)
    paths = (".spec.size", ".spec.gone")
    columns = [{"name": path[6:], "type": "string", "jsonPath": path} for path in paths]
    crd["spec"]["versions"][0]["additionalPrinterColumns"] = columns

    (difference,) = ported(crd).differences

    assert difference.startswith("v1: columns is [")


def test_unknown_fields_of_the_items_of_a_list_that_keeps_them_are_kept() -> None:
    item = {"type": "object", "properties": {"name": TEXT}}
    lists = {"type": "array", KEEP: True, "items": {"type": "array", "items": item}}

    result = ported(with_spec(pipelines=lists))

    spec = {"pipelines": [[{"name": "a", "queue": 1}]]}
    assert result.differences == []
    assert check_object(result.hub_class, {"spec": spec})["spec"] == spec


def test_keywords_that_the_server_ignores_are_no_difference_and_not_in_the_classes() -> None:
    fields: dict[str, Resource] = {
        "ratio": {"type": "number", "format": "double", "example": 1},
        "text": {"type": "string", "format": "int64", "title": "Text", "minimum": 1},
        "list": {"type": "array", "items": TEXT, "maxLength": 5, "pattern": "^a$"},
        "map": {
            "type": "object",
            "additionalProperties": TEXT,
            "items": TEXT,
            "x-kubernetes-preserve-unknown-fields": True,
        },
    }
    result = ported(with_spec(**fields))

    assert result.differences == []
    assert "AsIs" not in result.modules["v1"]


def test_limits_on_the_number_of_fields_stay_wherever_the_object_is() -> None:
    sized = {"type": "object", "minProperties": 1, "maxProperties": 2, "properties": {"a": TEXT}}
    crd = with_spec(inner=sized, items={"type": "array", "items": sized})
    properties = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    properties["spec"] |= {"minProperties": 1}
    properties["status"] = sized
    crd["spec"]["versions"][0]["subresources"] = {"status": {}}

    assert ported(crd).differences == []


ALTERNATIVES: Resource = {
    "oneOf": [{"required": ["a"]}, {"required": ["b"]}, {"not": {"anyOf": [{"required": ["a"]}]}}]
}


@pytest.mark.parametrize(
    ("schema", "accepted", "refused"),
    [
        ({"type": "object", "properties": {"a": TEXT, "b": TEXT}, **ALTERNATIVES}, {"a": "x"}, {"a": "x", "b": "x"}),
        ({**TEXT, "allOf": [{"minLength": 2}, {"maxLength": 3}]}, "abc", "a"),
        ({**TEXT, "not": {"enum": ["x"]}}, "y", "x"),
        ({"x-kubernetes-int-or-string": True, "enum": ["4Ki", 4]}, 4, "3Ki"),
        ({"type": "number", "minimum": 0.5}, 0.5, 0.25),
    ],
)
def test_keywords_without_a_type_in_python_are_kept_and_checked(
    schema: Resource, accepted: object, refused: object
) -> None:
    result = ported(with_spec(field=schema))

    assert result.differences == []
    check_object(result.hub_class, {"spec": {"field": accepted}})
    with pytest.raises(InvalidObject):
        check_object(result.hub_class, {"spec": {"field": refused}})


@pytest.mark.parametrize(
    "schema",
    [
        *({**TEXT, "format": name} for name in ("cidr", "duration", "hostname", "uri", "mac", "email")),
        {**TEXT, "enum": ["a", "b"], "nullable": True},
        {**TEXT, "pattern": r"^\Qa.b\E$"},
        {"type": "array", "items": {**TEXT, "format": "cidr"}},
        {"type": "object", "additionalProperties": {**TEXT, "format": "cidr"}},
    ],
)
def test_formats_and_nulls_that_no_type_has_are_kept(schema: Resource) -> None:
    result = ported(with_spec(field=schema))

    assert result.differences == []
    assert schema_of(result.hub_class)["properties"]["spec"]["properties"]["field"] == schema


@pytest.mark.parametrize("required", [[], ["spec"]])
def test_a_spec_and_a_status_that_may_be_null_stay_so(required: list[str]) -> None:
    crd = with_spec(size=TEXT)
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["required"] = required
    schema["properties"]["spec"]["nullable"] = True
    schema["properties"]["status"] = {"type": "object", "nullable": True, "properties": {"size": TEXT}}
    crd["spec"]["versions"][0]["subresources"] = {"status": {}}

    result = ported(crd)

    assert result.differences == []
    assert check_object(result.hub_class, {"spec": None, "status": None}) == {"spec": None, "status": None}


def test_each_field_has_its_own_description_where_objects_share_a_class() -> None:
    def switch(description: str, of_field: str = "Whether it is on.") -> Resource:
        field = {"type": "boolean", "description": of_field}
        return (
            {"type": "object", "description": description, "properties": {"enabled": field}}
            if description
            else {"type": "object", "properties": {"enabled": field}}
        )

    fields = {
        "compression": switch("Compression of data."),
        "encryption": switch("Encryption of data."),
        "other": switch("Another one.", "Whether it is off."),
        "none": switch(""),
        "list": {"type": "array", "items": switch("One of several.")},
        "map": {"type": "object", "additionalProperties": switch("A value.")},
    }
    result = ported(with_spec(**fields))

    described = schema_of(result.hub_class)["properties"]["spec"]["properties"]
    assert described == fields | {"list": {**fields["list"]}, "map": {**fields["map"]}}
    assert result.modules["v1"].count("(Model)") == 2


def test_descriptions_in_a_type_of_kubernetes_stay_in_the_definition() -> None:
    probe = deepcopy(builtin_schema("v1", "Container")["properties"]["livenessProbe"])
    probe["properties"]["periodSeconds"]["description"] = "How often."
    second = {**deepcopy(probe), "description": "Another probe."}

    result = ported(with_spec(one=probe, two=second, list={"type": "array", "items": second}))

    described = schema_of(result.hub_class)["properties"]["spec"]["properties"]
    found = [canonical(each) for each in (described["one"], described["two"], described["list"]["items"])]
    assert found == [canonical(each) for each in (probe, second, second)]
    assert [*result.schemas["v1"]] == ["Probe at spec.one"]


def test_versions_of_equal_fields_share_the_models_of_the_hub() -> None:
    crd = crd_of("aquariums")
    template = deepcopy(builtin_schema("v1", "PodTemplateSpec"))
    template["description"], template["properties"]["spec"]["description"] = "A pod.", "Its spec."
    for version in crd["spec"]["versions"]:
        version["schema"] = deepcopy(crd["spec"]["versions"][0]["schema"])
        version["schema"]["openAPIV3Schema"]["properties"]["template"] = template

    result = ported(crd)

    assert result.differences == []
    assert "from ..v1.aquarium import AquariumSpec, AquariumStatus, SCHEMAS" in result.modules["v1beta1"]
    assert result.modules["v1beta1"].count("class ") == 1
    assert [*result.schemas] == ["v1"]
