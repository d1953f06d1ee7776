"""Version: how a kind is declared, and how its objects are read."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Literal

import pytest

from bonny.api import Field, Model, Spec, Status, Version, WithConditions, WithObservedGeneration
from bonny.api.version import object_model
from bonny.errors import InvalidObject, OptionError
from bonny.kinds import Kind, Scope
from bonny_dev.crd import check_object
from bonny_dev.crd.definition import crds

if TYPE_CHECKING:
    from somewhere import Unknown  # type: ignore[import-not-found]


class Colour(StrEnum):
    """Which colour."""

    RED = "red"


class Port(Model):
    """A port."""

    number: int = Field(ge=1)


class WidgetSpec(Spec):
    """What the user wants."""

    size: int = Field(1, ge=1, le=100)
    colour: Colour = Colour.RED
    max_age: int | None = None
    kept: int | None = 5
    ports: list[Port] = Field(default_factory=list)
    weights: dict[str, int] = Field(default_factory=dict)


class WidgetStatus(Status, WithConditions, WithObservedGeneration):
    """What the operator reports."""

    ready: bool | None = None


class Widget(Version):
    """A thing of some size."""

    kind = "Widget"
    version = "v1"
    storage = True
    hub = True
    spec: WidgetSpec
    status: WidgetStatus


class PlainStatus(Status):
    """Without the mixins."""


class Plain(Version):
    """Cluster-scoped, in a group of its own, with a plural of its own."""

    kind = "Plain"
    plural = "plainer"
    version = "v1beta1"
    group = "other.example.com"
    scope = Scope.CLUSTER
    spec: WidgetSpec
    status: PlainStatus


class Statusless(Version):
    """Without a status."""

    kind = "Statusless"
    version = "v1"
    spec: WidgetSpec


def test_a_version_is_served_in_the_group_of_the_operator() -> None:
    assert Widget.as_kind("example.com") == Kind("example.com/v1", "Widget", plural="widgets", scope=Scope.NAMESPACED)


def test_group_plural_and_scope_of_the_class_come_first() -> None:
    assert Plain.as_kind("example.com") == Kind(
        "other.example.com/v1beta1", "Plain", plural="plainer", scope=Scope.CLUSTER
    )


def test_the_models_are_those_of_the_annotations() -> None:
    assert object_model(Widget).spec is WidgetSpec
    assert Widget.status_model() is WidgetStatus
    assert Statusless.status_model() is None


def test_a_version_tells_what_its_status_can_hold() -> None:
    assert (Widget.has_conditions(), Widget.has_observed_generation()) == (True, True)
    assert (Plain.has_conditions(), Plain.has_observed_generation()) == (False, False)
    assert (Statusless.has_conditions(), Statusless.has_observed_generation()) == (False, False)


def test_the_spec_of_an_object_is_typed() -> None:
    spec = Widget.spec_of({"spec": {"size": 3, "colour": "red", "maxAge": 7, "ports": [{"number": 1}], "other": 1}})

    assert spec == WidgetSpec(size=3, colour=Colour.RED, max_age=7, ports=[Port(number=1)])


@pytest.mark.parametrize("resource", [{}, {"spec": None}, {"spec": {}}])
def test_an_object_without_a_spec_has_the_defaults(resource: dict[str, object]) -> None:
    assert Widget.spec_of(resource) == WidgetSpec()


def test_null_counts_as_left_out_unless_the_field_is_nullable() -> None:
    spec = {"size": None, "maxAge": None, "kept": None, "ports": None, "weights": {"a": None, "b": 1}}

    assert Widget.spec_of({"spec": spec}) == WidgetSpec(kept=None, weights={"b": 1})


def test_the_status_of_a_new_object_is_empty() -> None:
    assert Widget.status_of({}) == WidgetStatus()
    assert Statusless.status_of({}) is None


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"size": 0}, "spec.size: Input should be greater than or equal to 1"),
        ({"size": "3"}, "spec.size: Input should be a valid integer"),
        ({"size": True}, "spec.size: Input should be a valid integer"),
        ({"colour": "green"}, "spec.colour: Input should be 'red'"),
        ({"maxAge": "x"}, "spec.maxAge: Input should be a valid integer"),
        ({"ports": [{"number": 1}, {}]}, "spec.ports[1].number: Field required"),
        ({"weights": {"a": "x"}}, "spec.weights.a: Input should be a valid integer"),
        ([], "spec: Input should be an object"),
    ],
)
def test_a_spec_that_does_not_fit_is_refused_by_the_name_of_the_field(spec: object, text: str) -> None:
    with pytest.raises(InvalidObject) as refused:
        Widget.spec_of({"spec": spec})
    assert str(refused.value) == text


def test_a_refusal_never_tells_the_content() -> None:
    with pytest.raises(InvalidObject) as refused:
        Widget.spec_of({"spec": {"size": "hunter2", "colour": "hunter2", "ports": "hunter2"}})
    assert "hunter2" not in str(refused.value)


def test_several_refusals_are_told_at_once() -> None:
    with pytest.raises(InvalidObject, match=r"spec\.size: .*; spec\.colour: "):
        Widget.spec_of({"spec": {"size": 0, "colour": "green"}})


def test_a_status_field_without_a_default_is_refused_when_its_class_is_made() -> None:
    with pytest.raises(OptionError, match=r"class .*Early in .*: ready has no default, .*`ready: int \| None = None`"):

        class Early(Status):
            ready: bool


@pytest.mark.parametrize(
    ("attributes", "why"),
    [
        ({"kind": "widget", "version": "v1"}, "'widget' is not a kind"),
        ({"kind": "Widget"}, "'' is not an API version"),
        ({"kind": "Widget", "version": "one"}, "'one' is not an API version"),
        ({"kind": "Widget", "version": "v1", "plural": "Widgets"}, "'Widgets' is not a plural"),
        ({"kind": "Widget", "version": "v1", "group": "nodots"}, "'nodots' is not an API group"),
        ({"kind": "Widget", "version": "v1", "storge": True}, "versions have no 'storge': did you mean 'storage'?"),
        (
            {"kind": "Widget", "version": "v1", "__annotations__": {"stattus": Status}},
            "versions have no 'stattus': did you mean 'status'?",
        ),
        ({"kind": "Widget", "version": "v1", "limit": 3}, "versions have no 'limit': .*a constant in capitals"),
    ],
)
def test_a_bad_name_is_refused_when_a_definition_is_written(attributes: dict[str, object], why: str) -> None:
    marked = {"__module__": __name__, "storage": True, "hub": True, **attributes}
    bad = type("Bad", (Version,), marked)
    for use in (lambda: crds([bad], "example.com"), lambda: check_object(bad, {})):
        with pytest.raises(OptionError, match=f"class Bad in .*: {why}"):
            use()


def test_what_is_the_users_own_in_a_version_is_taken() -> None:
    class Own(Version):
        kind = "Own"
        version = "v1"
        LIMIT = 3
        _limit = 3

        class Spec(Spec):
            """Nested."""

        @staticmethod
        def helper() -> int:
            return 3

        @property
        def other(self) -> int:
            return 3

    assert Own.helper() == Own.LIMIT


def test_a_base_class_that_several_kinds_share_needs_no_names() -> None:
    class Shared(Version):
        group = "shared.example.com"

    class Gadget(Shared):
        kind = "Gadget"
        version = "v1"

    assert Gadget.as_kind("example.com").group == "shared.example.com"


def test_an_annotation_that_does_not_exist_is_named() -> None:
    class Lost(Version):
        kind = "Lost"
        version = "v1"
        spec: Unknown

    with pytest.raises(OptionError, match=r"its annotations name 'Unknown', which is not defined there: import it"):
        object_model(Lost)


def test_spec_and_status_must_be_models_of_the_right_half() -> None:
    class Swapped(Version):
        kind = "Swapped"
        version = "v1"
        spec: WidgetStatus

    class Missing(Version):
        kind = "Missing"
        version = "v1"

    class Wrong(Version):
        kind = "Wrong"
        version = "v1"
        spec: WidgetSpec
        status: Literal["x"]

    for version in (Swapped, Missing):
        with pytest.raises(OptionError, match=r"annotate spec with a class derived from Spec, for example `spec: "):
            object_model(version)
    with pytest.raises(OptionError, match=r"annotate status with a class derived from Status"):
        Wrong.status_model()


def test_a_model_is_written_with_its_wire_names() -> None:
    assert WidgetSpec(max_age=3).model_dump(exclude_defaults=True) == {"maxAge": 3}
