"""CRD: what a set of version classes becomes, and which sets are refused."""

from __future__ import annotations

from itertools import permutations
from typing import Annotated, Any, Literal

import pytest
from pydantic import create_model

from bonny.api import (
    AGE,
    BuiltIn,
    Column,
    Embedded,
    Field,
    Int32,
    IntOrString,
    ListSet,
    Nullable,
    PreserveUnknown,
    Rule,
    Scale,
    Scope,
    Spec,
    Status,
    Version,
)
from bonny.api.conversion import converted
from bonny.errors import OptionError
from bonny.resource import Resource
from bonny_dev.crd.definition import crds


class WidgetSpec(Spec):
    """What the user wants."""

    size: int = Field(1, ge=1)


class WidgetStatus(Status):
    """What the operator reports."""

    ready: bool | None = None


class Widget(Version):
    """A thing of some size.

    It has a second paragraph.
    """

    kind = "Widget"
    version = "v1"
    storage = True
    hub = True
    spec: WidgetSpec = WidgetSpec()
    status: WidgetStatus
    columns = (Column("Size", "integer", ".spec.size", description="How big.", priority=1), AGE)
    rules = (Rule("self.spec.size < 50", message="too big"),)
    short_names = ("wd",)
    categories = ("all",)


def version(name: str = "v1", *, spec: type[Spec] = WidgetSpec, **attributes: Any) -> type[Version]:
    """A version class of Widget, with what is given."""
    body = {"kind": "Widget", "version": name, "__module__": __name__, "__annotations__": {"spec": spec}}
    return type(f"Widget{name}", (Version,), body | attributes)


def hub(name: str = "v1", **attributes: Any) -> type[Version]:
    """The version that is stored and watched."""
    return version(name, **{"storage": True, "hub": True} | attributes)


def test_a_version_class_becomes_a_custom_resource_definition() -> None:
    assert crds([Widget], "example.com") == [
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "widgets.example.com"},
            "spec": {
                "group": "example.com",
                "names": {
                    "kind": "Widget",
                    "listKind": "WidgetList",
                    "plural": "widgets",
                    "singular": "widget",
                    "shortNames": ["wd"],
                    "categories": ["all"],
                },
                "scope": "Namespaced",
                "versions": [
                    {
                        "name": "v1",
                        "served": True,
                        "storage": True,
                        "schema": {
                            "openAPIV3Schema": {
                                "type": "object",
                                "description": "A thing of some size.\n\nIt has a second paragraph.",
                                "x-kubernetes-validations": [{"rule": "self.spec.size < 50", "message": "too big"}],
                                "properties": {
                                    "spec": {
                                        "type": "object",
                                        "description": "What the user wants.",
                                        "default": {},
                                        "properties": {"size": {"type": "integer", "default": 1, "minimum": 1}},
                                    },
                                    "status": {
                                        "type": "object",
                                        "description": "What the operator reports.",
                                        "properties": {"ready": {"type": "boolean"}},
                                    },
                                },
                            }
                        },
                        "subresources": {"status": {}},
                        "additionalPrinterColumns": [
                            {
                                "name": "Size",
                                "type": "integer",
                                "jsonPath": ".spec.size",
                                "description": "How big.",
                                "priority": 1,
                            },
                            {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
                        ],
                    }
                ],
            },
        }
    ]


def test_a_kind_without_a_status_has_no_status_subresource() -> None:
    (definition,) = crds([hub()], "example.com")

    (described,) = definition["spec"]["versions"]
    assert "subresources" not in described
    assert list(described["schema"]["openAPIV3Schema"]["properties"]) == ["spec"]


def test_a_spec_with_required_fields_is_required_itself() -> None:
    strict = create_model("Strict", __base__=Spec, size=(int, ...))

    (definition,) = crds([hub(spec=strict)], "example.com")

    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert schema["required"] == ["spec"]
    assert "default" not in schema["properties"]["spec"]


def test_versions_stand_in_the_order_of_kubernetes_however_they_are_given() -> None:
    several = [version("v1alpha1"), hub("v1"), version("v2beta1"), version("v10"), version("v2alpha2", served=False)]
    texts = {str(crds(order, "example.com")) for order in permutations(several)}
    (definition,) = crds(several, "example.com")

    assert [each["name"] for each in definition["spec"]["versions"]] == ["v10", "v1", "v2beta1", "v2alpha2", "v1alpha1"]
    assert [each["served"] for each in definition["spec"]["versions"]] == [True, True, True, False, True]
    assert len(texts) == 1


def test_each_group_and_kind_has_a_definition_of_its_own() -> None:
    gadget = hub(kind="Gadget", scope=Scope.CLUSTER)
    elsewhere = hub(group="other.org")

    names = [each["metadata"]["name"] for each in crds([Widget, gadget, elsewhere], "example.com")]

    assert names == ["gadgets.example.com", "widgets.example.com", "widgets.other.org"]


def test_a_base_class_without_a_kind_is_no_version() -> None:
    class Shared(Version):
        """What several kinds share."""

    assert crds([Shared], "example.com") == []


@pytest.mark.parametrize(
    ("versions", "why"),
    [
        ([version("v1", hub=True)], r"Widget \(example.com\) has no version with storage = True: .* one of v1$"),
        ([version("v1", storage=True)], r"Widget \(example.com\) has no version with hub = True"),
        ([hub("v1"), hub("v2")], r"Widget \(example.com\) has 2 versions with hub = True: set it .* one of v2, v1"),
        ([hub("v1"), version("v2", storage=True)], "2 versions with storage = True"),
        ([hub("v1", served=False)], "Widgetv1 is the hub and not served, .*: set served = True"),
        ([hub("v1"), version("v1")], "a version of Widget is declared twice .*: remove one"),
        ([hub("v1"), version("v2", scope=Scope.CLUSTER)], "scope of .*Widgetv2 and .*Widgetv1 differ"),
        ([hub("v1"), version("v2", plural="others")], "plural of .*Widgetv2 and .*Widgetv1 differ"),
        ([hub("v1"), hub(kind="Gadget", plural="widgets")], "Gadget and Widget have the same plural: .*another plural"),
    ],
)
def test_versions_that_do_not_fit_together_are_refused(versions: list[type[Version]], why: str) -> None:
    with pytest.raises(OptionError, match=why):
        crds(versions, "example.com")


def identity(resource: Resource) -> Resource:
    return resource


async def waiting(resource: Resource) -> Resource:
    return resource


FUNCTIONS = {"to_hub": staticmethod(identity), "from_hub": staticmethod(identity)}
LONGER = create_model("Longer", __base__=WidgetSpec, shape=(list[str] | None, None))
TEXT = create_model("Text", __base__=WidgetSpec, size=(str, "1"))
LISTED = create_model("Listed", __base__=WidgetSpec, tags=(list[str], []))
NUMBERED = create_model("Numbered", __base__=WidgetSpec, tags=(list[int], []))
FREE = create_model("Free", __base__=WidgetSpec, tags=(Annotated[dict[str, Any], PreserveUnknown()], {}))
WHOLE = create_model("Whole", __base__=WidgetSpec, tags=(Annotated[dict[str, Any], Embedded()] | None, None))
EITHER = create_model("Either", __base__=WidgetSpec, size=(IntOrString, 1))
MAYBE = create_model("Maybe", __base__=WidgetSpec, size=(Annotated[int | None, Nullable()], None))
SUBTLE = create_model("Subtle", __base__=WidgetSpec, type=(int, 1))
TYPED = create_model("Typed", __base__=WidgetSpec, type=(str, "1"))


@pytest.mark.parametrize(
    ("first", "second", "field"),
    [
        (WidgetSpec, LONGER, r"spec\.shape"),
        (WidgetSpec, TEXT, r"spec\.size"),
        (LISTED, NUMBERED, r"spec\.tags"),
        (LISTED, FREE, r"spec\.tags"),
        (FREE, WHOLE, r"spec\.tags"),
        (WidgetSpec, EITHER, r"spec\.size"),
        (WidgetSpec, MAYBE, r"spec\.size"),
        (SUBTLE, TYPED, r"spec\.type"),
    ],
)
def test_versions_with_different_fields_and_no_functions_are_refused_by_the_first_field(
    first: type[Spec], second: type[Spec], field: str
) -> None:
    pair = [hub("v1", spec=first), version("v2", spec=second)]
    advice = rf"Widget v2 and v1 differ at {field}, .*: write to_hub and from_hub in .*Widgetv2, or"

    assert converted(pair) == (pair[0],)
    with pytest.raises(OptionError, match=advice):
        crds(pair, "example.com")
    with pytest.raises(OptionError, match=advice):
        crds([pair[0], version("v2", spec=second, to_hub=staticmethod(identity))], "example.com")
    crds([pair[0], version("v2", spec=second, **FUNCTIONS)], "example.com")


def test_a_version_that_is_not_served_may_have_any_fields() -> None:
    unserved = version("v2", spec=LONGER, served=False)
    ready = version("v2", spec=LONGER, served=False, **FUNCTIONS)

    assert converted([hub("v1"), unserved]) == ()
    assert len(converted([hub("v1"), ready])) == 1
    (definition,) = crds([hub("v1"), unserved], "example.com")
    assert [each["served"] for each in definition["spec"]["versions"]] == [False, True]
    with pytest.raises(OptionError, match="differ at"):
        crds([hub("v1", storage=False), version("v2", spec=LONGER, served=False, storage=True)], "example.com")


@pytest.mark.parametrize(
    "field",
    [
        (int, Field(1, ge=0)),
        (int, Field(2)),
        (int, ...),
        (Literal[1, 2], 1),
        (Annotated[int, Field(description="Other words.")], 1),
        (Annotated[int, Rule("self > 0", message="must be positive")], 1),
        (Int32, 1),
    ],
)
def test_versions_whose_limits_rules_defaults_or_descriptions_differ_need_no_functions(field: Any) -> None:
    pair = [hub("v1"), version("v2", spec=create_model("Wider", __base__=Spec, size=field))]

    assert converted(pair) == ()
    assert len(crds(pair, "example.com")[0]["spec"]["versions"]) == 2


def test_lists_and_mappings_that_are_merged_in_another_way_need_no_functions() -> None:
    sets = create_model("Sets", __base__=WidgetSpec, tags=(Annotated[list[str], ListSet()], []))

    assert converted([hub("v1", spec=LISTED), version("v2", spec=sets)]) == ()


def test_functions_that_wait_are_refused() -> None:
    with pytest.raises(OptionError, match="waiting is `async def`, and a conversion does not wait: write `def`"):
        crds([hub("v1"), version("v2", to_hub=staticmethod(waiting))], "example.com")


def test_versions_that_describe_the_same_fields_in_other_words_agree() -> None:
    reworded = create_model("Reworded", __base__=Spec, size=(int, Field(1, ge=1, description="Other words.")))

    (definition,) = crds([hub("v1"), version("v2", spec=reworded)], "example.com")

    assert len(definition["spec"]["versions"]) == 2


def test_a_field_without_a_schema_is_named_with_kind_and_version() -> None:
    loose = create_model("Loose", __base__=Spec, free=(Any, ...))

    with pytest.raises(OptionError, match=r"^Widget v1: spec\.free: its content has no type"):
        crds([hub(spec=loose)], "example.com")


class ScaledSpec(Spec):
    """What the user wants."""

    replicas: int = 1
    colour: str = "red"
    on: bool = True
    share: float = 1.0


class ScaledStatus(Status):
    """What is."""

    replicas: int | None = None
    selector: str | None = None


def scaled(**attributes: Any) -> type[Version]:
    """A version with replicas in spec and status."""
    annotations = {"spec": ScaledSpec, "status": ScaledStatus}
    return hub(spec=ScaledSpec, **{"__annotations__": annotations} | attributes)


def described(version: type[Version]) -> Resource:
    (definition,) = crds([version], "example.com")
    (found,) = definition["spec"]["versions"]
    result: Resource = found
    return result


def test_a_version_can_be_scaled_and_selected_by_fields() -> None:
    made = described(
        scaled(
            scale=Scale(".spec.replicas", ".status.replicas", selector=".status.selector"),
            selectable=(".spec.colour", ".spec.on", ".status.replicas"),
        )
    )

    assert made["subresources"] == {
        "status": {},
        "scale": {
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.selector",
        },
    }
    assert made["selectableFields"] == [
        {"jsonPath": ".spec.colour"},
        {"jsonPath": ".spec.on"},
        {"jsonPath": ".status.replicas"},
    ]


def test_a_deprecated_version_says_so() -> None:
    plain = described(hub(deprecated=True))
    warned = described(hub(deprecated=True, deprecation_warning="use v2"))

    assert (plain["deprecated"], "deprecationWarning" in plain) == (True, False)
    assert (warned["deprecated"], warned["deprecationWarning"]) == (True, "use v2")


def test_a_column_can_have_a_format() -> None:
    made = described(scaled(columns=(Column("Replicas", "integer", ".spec.replicas", format="int32"),)))

    assert made["additionalPrinterColumns"] == [
        {"name": "Replicas", "type": "integer", "jsonPath": ".spec.replicas", "format": "int32"}
    ]


def test_the_singular_can_be_named() -> None:
    (definition,) = crds([hub(singular="gizmo")], "example.com")

    assert definition["spec"]["names"]["singular"] == "gizmo"


@pytest.mark.parametrize(
    ("attributes", "why"),
    [
        (
            {"scale": Scale(".spec.size", ".status.replicas")},
            r"scale of .* names '\.spec\.size'",
        ),
        ({"scale": Scale(".spec.colour", ".status.replicas")}, r"names '\.spec\.colour': name a field of type integer"),
        ({"scale": Scale(".status.replicas", ".status.replicas")}, r"below \.spec\., with the names of YAML"),
        ({"scale": Scale(".spec.replicas", ".spec.replicas")}, r"below \.status\., with the names of YAML"),
        (
            {"scale": Scale(".spec.replicas", ".status.replicas", selector=".metadata.labels")},
            r"type string below \.spec\. or \.status\.",
        ),
        ({"selectable": (".spec.share",)}, r"selectable of .* names '\.spec\.share': .*string or boolean or integer"),
        ({"selectable": (".metadata.name",)}, r"selectable of .* names '\.metadata\.name'"),
        ({"selectable": (".spec.colour", ".spec.colour")}, "has 2 paths: name up to 8, each once"),
        (
            {"columns": (Column("Size", "integer", ".spec.size"),)},
            r"column 'Size' of .* names '\.spec\.size'",
        ),
        (
            {"columns": (Column("Size", "integer", "metadata.generation"),)},
            "names 'metadata.generation', and there is no such field: write for example '.spec.size'",
        ),
    ],
)
def test_a_path_that_leads_nowhere_is_refused(attributes: Resource, why: str) -> None:
    with pytest.raises(OptionError, match=why):
        crds([scaled(**attributes)], "example.com")


@pytest.mark.parametrize(
    ("attributes", "why"),
    [
        ({"short_names": ("W",)}, "'W' is not a short name"),
        ({"short_names": "wd"}, r"Bad.short_names is 'wd': write a tuple, with a comma"),
        ({"categories": ("All",)}, "'All' is not a category"),
        ({"categories": "all"}, r"Bad.categories is 'all': write a tuple"),
        ({"columns": AGE}, r"Bad.columns is Column\(.*: columns = \(AGE,\)"),
    ],
)
def test_a_bad_name_for_kubectl_is_refused(attributes: Resource, why: str) -> None:
    names = {"kind": "Widget", "version": "v1", "storage": True, "hub": True}
    bad: type[Version] = type("Bad", (Version,), {"__module__": __name__, **names, **attributes})
    with pytest.raises(OptionError, match=f"class Bad in .*: {why}"):
        crds([bad], "example.com")


def test_columns_may_search_in_lists_and_look_at_metadata() -> None:
    columns = (Column("Ready", "string", '.status.conditions[?(@.type=="Ready")].status'), AGE)
    conditions = create_model("Known", __base__=ScaledStatus, conditions=(list[str] | None, None))

    made = described(scaled(columns=columns, __annotations__={"spec": ScaledSpec, "status": conditions}))

    assert [column["name"] for column in made["additionalPrinterColumns"]] == ["Ready", "Age"]


@pytest.mark.parametrize(
    "attributes",
    [
        {"deprecation_warning": "use v2"},
        {"deprecated": True, "deprecation_warning": "two\nlines"},
        {"deprecated": True, "deprecation_warning": "ü" * 129},
    ],
)
def test_a_warning_that_the_api_server_would_refuse_is_refused(attributes: Resource) -> None:
    with pytest.raises(OptionError, match="use one line of at most 256 bytes, and only with deprecated = True"):
        described(hub(**attributes))


def test_a_definition_that_etcd_could_not_store_is_refused() -> None:
    template = Annotated[dict[str, Any], BuiltIn("v1", "PodTemplateSpec"), Field(description="Words. " * 64_000)]
    large = create_model("Large", __base__=Spec, **{f"template_{n}": (template | None, None) for n in range(3)})

    with pytest.raises(OptionError, match=r"the definition of Widget has 1,5[0-9,]* bytes, .*: embed fewer"):
        crds([hub(spec=large)], "example.com")
