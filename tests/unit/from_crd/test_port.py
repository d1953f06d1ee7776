"""Classes from definitions: the definition made of them equals the original, or every difference is named."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path

import pytest

from bonny.api.builtin import builtin_schema
from bonny.errors import UsageError
from bonny.resource import Resource
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
    spec = ported(crd_of("aquariums")).hub_class.schema()["properties"]["spec"]

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
    spec = result.hub_class.schema()["properties"]["spec"]
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
    fields = result.hub_class.schema()["properties"]["spec"]["properties"]["template"]["properties"]
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
    assert result.hub_class.check(resource)["metadata"] == {"name": f"{resource['kind'].lower()}-sample"}


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
