"""Checking: schemas that the API server would refuse, or would check otherwise than it reads, are refused here."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, create_model

from bonny.api import BuiltIn, Embedded, Field, ListAtomic, ListMap, ListSet, MapAtomic, Model, PreserveUnknown, Spec
from bonny.errors import OptionError
from bonny.resource import Resource
from bonny_dev.crd.schema import structural as unchecked
from bonny_dev.crd.schema_checks import check, field_at


class Item(Model):
    """An item of a list."""

    name: str
    protocol: str = "TCP"
    label: str | None = None
    nullable: str | None = "x"
    inner: dict[str, str] = Field(default_factory=dict)


def structural(model: type[BaseModel], *, where: str) -> Resource:
    """The schema of a model, checked as `crds` checks it."""
    schema = unchecked(model, where=where)
    check(schema, where)
    return schema


def schema_of(annotation: Any, default: Any = ...) -> Resource:
    model = create_model("Probe", __base__=Spec, field=(annotation, default))
    schema: Resource = structural(model, where="spec")["properties"]["field"]
    return schema


@pytest.mark.parametrize(
    ("annotation", "keywords"),
    [
        (
            Annotated[list[Item], ListMap("name", "protocol")],
            {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name", "protocol"]},
        ),
        (Annotated[list[str], ListSet()], {"x-kubernetes-list-type": "set"}),
        (Annotated[list[Annotated[Item, MapAtomic()]], ListSet()], {"x-kubernetes-list-type": "set"}),
        (Annotated[list[Annotated[list[int], ListAtomic()]], ListSet()], {"x-kubernetes-list-type": "set"}),
        (Annotated[list[Item], ListAtomic()], {"x-kubernetes-list-type": "atomic"}),
        (Annotated[Item, MapAtomic()], {"x-kubernetes-map-type": "atomic"}),
        (Annotated[dict[str, str], MapAtomic()], {"x-kubernetes-map-type": "atomic"}),
        (
            Annotated[dict[str, Any], Embedded()],
            {"x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True, "type": "object"},
        ),
        (Annotated[Item, PreserveUnknown()], {"x-kubernetes-preserve-unknown-fields": True, "required": ["name"]}),
    ],
)
def test_markers_become_the_keywords_of_kubernetes(annotation: Any, keywords: Resource) -> None:
    assert schema_of(annotation).items() >= keywords.items()


@pytest.mark.parametrize(
    ("annotation", "path", "why"),
    [
        (Annotated[dict[str, str], ListSet()], "", "it is not a list, and cannot have the list type set"),
        (Annotated[list[str], MapAtomic()], "", "MapAtomic is for objects and mappings"),
        (Annotated[list[int | None], ListSet()], r"\[\]", "items of a list of type set cannot be null"),
        (Annotated[list[Item], ListSet()], r"\[\]", "kept whole: mark them with MapAtomic or ListAtomic"),
        (
            Annotated[list[Annotated[list[str], ListSet()]], ListSet()],
            r"\[\]",
            "kept whole: mark them with MapAtomic or ListAtomic",
        ),
        (Annotated[list[str], ListMap("name")], "", "a ListMap is a list of objects"),
        (Annotated[list[Item], ListMap()], "", "names one or several different fields"),
        (Annotated[list[Item], ListMap("name", "name")], "", "names one or several different fields"),
        (Annotated[list[Item], ListMap("nmae")], "", "the key nmae of the ListMap must be a scalar field"),
        (Annotated[list[Item], ListMap("inner")], "", "the key inner of the ListMap must be a scalar field"),
        (Annotated[list[Item], ListMap("nullable")], "", "that cannot be null"),
        (Annotated[list[Item], ListMap("label")], r"\[\]\.label", "make it required or give it a default"),
        (Annotated[float, Field(ge=0.5)], "", r"the limit 0\.5 is not a whole number of up to 53 bits"),
        (Annotated[float, Field(ge=0, gt=1)], "", "two limits at one end, minimum and exclusiveMinimum: keep one"),
        (Annotated[float, Field(multiple_of=0.1)], "", r"the limit 0\.1 is not a whole number"),
        (Annotated[int, Field(le=2**63 - 1)], "", "is not a whole number of up to 53 bits"),
        (Annotated[str, Field(pattern=r"^\bx$")], "", r"'\\\\b' in the pattern .* means something else"),
        (Annotated[str, Field(pattern=r"^(a{1000}){2}$")], "", r"'\{2\}' in the pattern"),
    ],
)
def test_what_the_api_server_would_refuse_or_misjudge_is_refused(annotation: Any, path: str, why: str) -> None:
    with pytest.raises(OptionError, match=rf"^spec\.field{path}: .*{why}"):
        schema_of(annotation)


@pytest.mark.parametrize(
    ("annotation", "default", "why"),
    [
        (Annotated[int, Field(ge=1)], 0, r"its default does not fit it \(spec\.field: must be at least 1\)"),
        (Literal["a"], "b", r"must be one of a"),
        (Annotated[list[str], ListSet()], ["x", "x"], r"spec\.field\[1\]: is a duplicate"),
        (Annotated[str, Field(pattern="^a$")], "a\n", r"must match \^a\$"),
        (
            Annotated[dict[str, Any], BuiltIn("v1", "SecretKeySelector")],
            {"kye": "x"},
            "its default has fields that the API server would drop",
        ),
        (Annotated[dict[str, Any], BuiltIn("v1", "SecretKeySelector")], {}, r"spec\.field\.key: is required"),
    ],
)
def test_a_default_that_the_api_server_would_refuse_is_refused(annotation: Any, default: Any, why: str) -> None:
    with pytest.raises(OptionError, match=rf"^spec\.field: .*{why}"):
        schema_of(annotation, default)


def test_an_enumeration_of_fractions_is_refused() -> None:
    with pytest.raises(OptionError, match=r"takes 1\.5 for 1 in an enumeration of fractions"):
        schema_of(Annotated[float, Field(json_schema_extra={"enum": [1, 2]})])


@pytest.mark.parametrize(
    "pattern",
    [
        r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
        r"^(?:a|b){2,3}$",
        r"(?i)^abc$",
        r"^[[:alpha:]]+$",
        r"^\p{L}\x41\x{e9}\.\-\/$",
        r"^[]a]$",
        r"^[^]a]$",
        r"^[#-%]$",
        "^a{1000}$",
        r"^(?P<name>a)(?<other>b)$",
        "&&--~~",
    ],
)
def test_a_pattern_that_means_the_same_to_both_engines_is_kept(pattern: str) -> None:
    assert schema_of(Annotated[str, Field(pattern=pattern)])["pattern"] == pattern


@pytest.mark.parametrize("pattern", [r"\b", "[a&&b]", "[[a]b]", "[a--b]", r"\p{Greek}", "a{1001}"])
def test_a_pattern_that_means_two_things_is_refused(pattern: str) -> None:
    with pytest.raises(OptionError, match="means something else to the API server, or nothing"):
        schema_of(Annotated[str, Field(pattern=pattern)])


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".spec.size", True),
        (".spec.sise", False),
        (".spec.size.more", False),
        (".spec.labels.anything", True),
        (".spec.free.any.thing", True),
        (".spec.items[0].whatever", True),
        ("['spec'].size", True),
    ],
)
def test_a_path_leads_to_a_field_or_not(path: str, found: bool) -> None:
    schema = {
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    "size": {"type": "integer"},
                    "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                    "free": {"x-kubernetes-preserve-unknown-fields": True},
                    "items": {"type": "array", "items": {"type": "string"}},
                },
            }
        }
    }

    assert (field_at(schema, path) is not None) is found


def test_two_fields_with_one_name_on_the_wire_are_refused() -> None:
    class Twice(Spec):
        max_size: int = 1
        largest: int = Field(2, alias="maxSize")

    with pytest.raises(OptionError, match=r"class .*Twice in .*: largest and max_size are both maxSize on the wire"):
        structural(Twice, where="spec")


def test_a_field_with_two_names_is_refused() -> None:
    class Two(Spec):
        size: int = Field(1, validation_alias="length")

    with pytest.raises(OptionError, match=r"class .*Two in .*: size is read and written by different names"):
        structural(Two, where="spec")
