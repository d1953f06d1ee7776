"""Conversion: objects pass to the hub and back by plain functions, and a helper checks that nothing is lost."""

from __future__ import annotations

from typing import Any

import pytest

from bonny.api import Field, Spec, Version
from bonny.errors import InvalidObject, OptionError
from bonny.resource import Resource
from bonny_dev.testing import round_trip
from bonny_dev.testing.conversion import convert

LOST = "example.com/v1-comment"


class OldSpec(Spec):
    """As it was."""

    width: int = Field(1, ge=1)
    comment: str | None = None


class NewSpec(Spec):
    """As it is."""

    size: int = Field(1, ge=1)


def to_new(old: Resource) -> Resource:
    spec = old.get("spec", {})
    annotations = {**old["metadata"].get("annotations", {}), **({LOST: spec["comment"]} if "comment" in spec else {})}
    metadata = {**old["metadata"], **({"annotations": annotations} if annotations else {})}
    return {**old, "metadata": metadata, "spec": {"size": spec["width"]}}


def to_old(new: Resource) -> Resource:
    annotations = dict(new["metadata"].get("annotations", {}))
    spec = {"width": new["spec"]["size"]} | ({"comment": annotations.pop(LOST)} if LOST in annotations else {})
    metadata = {key: value for key, value in new["metadata"].items() if key != "annotations"}
    return {**new, "metadata": {**metadata, **({"annotations": annotations} if annotations else {})}, "spec": spec}


class New(Version):
    """The hub."""

    kind = "Widget"
    version = "v2"
    storage = True
    hub = True
    spec: NewSpec


class Old(Version):
    """What others still use."""

    kind = "Widget"
    version = "v1"
    spec: OldSpec
    to_hub = staticmethod(to_new)
    from_hub = staticmethod(to_old)


class Same(Version):
    """Differs from the hub in nothing but its name."""

    kind = "Widget"
    version = "v2beta1"
    spec: NewSpec


def widget(version: str, **spec: Any) -> Resource:
    return {
        "apiVersion": f"example.com/{version}",
        "kind": "Widget",
        "metadata": {"name": "w", "uid": "1"},
        "spec": spec,
    }


def test_an_object_passes_by_way_of_the_hub() -> None:
    old = widget("v1", width=3)

    assert convert(old, Old, New) == widget("v2", size=3)
    assert convert(old, Old, Same) == widget("v2beta1", size=3)
    assert convert(widget("v2beta1", size=4), Same, Old) == widget("v1", width=4)
    assert old == widget("v1", width=3)


@pytest.mark.parametrize(
    "resource", [widget("v1", width=3), widget("v1", width=3, comment="kept"), widget("v2", size=4), widget("v1")]
)
def test_a_round_trip_that_loses_nothing_is_told_by_the_other_form(resource: Resource) -> None:
    other = round_trip(resource, Old, New)

    assert other["apiVersion"] == ("example.com/v2" if resource["apiVersion"].endswith("v1") else "example.com/v1")


def test_a_round_trip_that_loses_something_fails_with_what_came_back() -> None:
    class Forgetful(Old):
        """Drops the comment."""

        to_hub = staticmethod(lambda old: {**old, "spec": {"size": old["spec"]["width"]}})

    was = r"^v1 came back from v2 as .*'width': 3.*, and was .*'comment': 'lost'"
    advice = r", so an annotation has to carry spec\.comment: convert it, or set carried="
    with pytest.raises(AssertionError, match=f"{was}.*{advice}"):
        round_trip(widget("v1", width=3, comment="lost"), Forgetful, New)

    new = round_trip(widget("v1", width=3, comment="lost"), Forgetful, New, carried=["spec.comment"])
    assert new == widget("v2", size=3)


def test_every_pair_of_versions_is_tried() -> None:
    class Third(Old):
        """Has no comment, and does not say so."""

        version = "v3"
        spec: NewSpec
        to_hub = staticmethod(lambda resource: resource)
        from_hub = staticmethod(lambda new: {**new, "spec": {"size": new["spec"]["size"] % 3 + 1}})

    assert round_trip(widget("v2", size=1), New, Old)["spec"] == {"width": 1}
    with pytest.raises(AssertionError, match=r"v1 came back from v2 .* has to carry spec\.size"):
        round_trip(widget("v1", width=3), Old, New, Third)


def test_a_form_that_the_api_server_would_refuse_fails() -> None:
    class Negative(Old):
        """Turns the sign."""

        to_hub = staticmethod(lambda old: {**old, "spec": {"size": -old["spec"]["width"]}})

    with pytest.raises(InvalidObject, match=r"^spec\.size: must be at least 1"):
        round_trip(widget("v1", width=3), Negative, New)


def test_metadata_other_than_labels_and_annotations_is_not_a_conversions_own() -> None:
    class Renaming(Old):
        """Takes a new name."""

        to_hub = staticmethod(lambda old: {**old, "metadata": {"name": "other"}})

    with pytest.raises(OptionError, match="changes metadata of Widget: a conversion may change spec, status, labels"):
        convert(widget("v1", width=1), Renaming, New)


def test_versions_of_different_kinds_are_refused() -> None:
    class Gadget(Version):
        """Another kind."""

        kind = "Gadget"
        version = "v1"
        spec: NewSpec

    with pytest.raises(OptionError, match="a Widget cannot be converted from Widget to Gadget"):
        convert(widget("v1"), Old, Gadget)
