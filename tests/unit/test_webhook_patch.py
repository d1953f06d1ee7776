"""The patch of a mutating webhook: what `default` changed, and nothing else of the object."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from bonny.api import Model, Spec, Version
from bonny.core.fields import same
from bonny.errors import InvalidObject, OptionError
from bonny.resource import Resource
from bonny.webhooks import Review, User
from bonny.webhooks.patch import _fields, difference, patch
from bonny.webhooks.review import AdmissionRequest, ObjectKind
from bonny_dev.crd.schema import structural
from bonny_dev.testing.admission import _patched
from tests.support.effort import examples
from tests.support.schemas import specs_of_any_shape
from tests.support.specs import values

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.0, 1.0, 2.5]) | st.text("a/~", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("a/~0", max_size=2), inner, max_size=3),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.text("abc/~", max_size=2), JSON, max_size=4)


class Limit(Model):
    """A limit."""

    cpu: float = 1
    memory: str | None = None


class BoxSpec(Spec):
    """A box."""

    size: int | None = None
    limit: Limit = Limit()
    limits: list[Limit] = []
    by_name: dict[str, Limit] = {}


class Box(Version):
    """A box."""

    kind = "Box"
    version = "v1"
    group = "example.com"
    spec: BoxSpec


def box(**spec: Any) -> Resource:
    return {"apiVersion": "example.com/v1", "kind": "Box", "metadata": {"name": "b"}, "spec": spec}


def review_of(given: Resource, version: type[Version] | None = Box, subresource: str = "") -> Review[Any]:
    kind = ObjectKind("example.com", "v1", "Box")
    return Review(
        AdmissionRequest("1", kind, "CREATE", User(), sub_resource=subresource, object=deepcopy(given)), version
    )


def applied(review: Review[Any], given: Resource) -> Resource:
    return _patched(given, patch(review, given))


# --- any object -------------------------------------------------------------------------------------------------------


@given(OBJECTS, OBJECTS)
def test_the_operations_make_the_one_object_of_the_other(one: Resource, other: Resource) -> None:
    made = _patched(one, difference(one, other))
    assert same(made, other)
    assert list(difference(one, deepcopy(one))) == []


@given(st.data(), specs_of_any_shape())
@settings(max_examples=examples(20), suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
def test_what_a_handler_sets_is_read_from_the_patched_object(data: st.DataObject, spec: type[Spec]) -> None:
    class Thing(Version):
        """Of any shape."""

        kind = "Thing"
        version = "v1"

    Thing.__annotations__["spec"] = spec
    schema = structural(spec, where="spec")
    head = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {}}
    try:
        one = head | {"spec": data.draw(values(schema))}
        review = review_of(one, Thing)
        spec_of_one: Any = review.spec
        wanted: Any = Thing.spec_of(head | {"spec": data.draw(values(schema))})
    except InvalidObject:
        assume(False)
        return
    assert patch(review, one) == []
    review.given_spec = spec_of_one  # the patch has dropped it
    for name in spec.model_fields:
        setattr(spec_of_one, name, getattr(wanted, name))
    read: Any = Thing.spec_of(applied(review, one))
    # A typed mapping may lack a field with a default, which the API server adds.
    assert _fields(read) == _fields(wanted)


# --- what a class does not know ---------------------------------------------------------------------------------------


def test_unknown_fields_nulls_and_forms_stay_as_they_were_written() -> None:
    given = box(size=1, odd={"a": 1.0}, limit={"cpu": 2.0, "odd": None, "memory": None}, limits=[{"odd": 1.0}])
    review = review_of(given)
    review.spec.size = 2
    review.spec.limit.memory = "1Gi"
    review.spec.limits[0].cpu = 3
    made = applied(review, given)
    assert json.dumps(made["spec"]) == json.dumps(
        {
            "size": 2,
            "odd": {"a": 1.0},
            "limit": {"cpu": 2.0, "odd": None, "memory": "1Gi"},
            "limits": [{"odd": 1.0, "cpu": 3}],
        }
    )


@pytest.mark.parametrize(
    ("change", "odd"),
    [
        (lambda items: items.append(Limit(cpu=9)), [0, 1, 2, None]),
        (lambda items: items.insert(0, Limit(cpu=9)), [None, 0, 1, 2]),
        (lambda items: items.pop(0), [1, 2]),
        (lambda items: items.reverse(), [2, 1, 0]),
        (lambda items: setattr(items[1], "cpu", 9), [0, 1, 2]),
        (lambda items: (items.pop(0), setattr(items[1], "cpu", 9)), [1, None]),
        (lambda items: items.clear(), []),
    ],
)
def test_items_of_a_list_keep_their_own_unknown_fields_and_never_get_others(change: Any, odd: list[Any]) -> None:
    given = box(limits=[{"cpu": index, "odd": index} for index in range(3)])
    review = review_of(given)
    limits = review.spec.limits
    change(limits)
    made = applied(review, given)
    assert [item.get("odd") for item in made["spec"]["limits"]] == odd
    assert Box.spec_of(made).limits == limits


def test_a_field_that_was_left_out_is_added_whole_and_defaults_alone_are_not() -> None:
    given = box()
    review = review_of(given)
    assert review.spec.limit.cpu == 1
    assert patch(review, given) == []
    review.spec.limit.memory = "1Gi"
    assert patch(review, given) == [{"op": "add", "path": "/spec/limit", "value": {"cpu": 1, "memory": "1Gi"}}]


def test_a_field_that_is_set_to_none_is_removed() -> None:
    given = box(size=1)
    review = review_of(given)
    review.spec.size = None
    assert patch(review, given) == [{"op": "remove", "path": "/spec/size"}]


def test_the_object_and_its_spec_may_both_be_changed() -> None:
    given = box(odd=1)
    review = review_of(given)
    review.resource["metadata"]["labels"] = {"a/b": "~"}
    review.resource["spec"]["odd"] = 2
    review.spec.size = 1
    assert patch(review, given) == [
        {"op": "add", "path": "/metadata/labels", "value": {"a/b": "~"}},
        {"op": "replace", "path": "/spec/odd", "value": 2},
        {"op": "add", "path": "/spec/size", "value": 1},
    ]


def test_the_spec_of_a_kind_without_a_class_is_a_mapping_also_where_there_was_none() -> None:
    given = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
    review = review_of(given, None)
    assert review.spec == {}
    assert patch(review, given) == []
    review.spec["nodeName"] = "n"
    assert patch(review, given) == [{"op": "add", "path": "/spec", "value": {"nodeName": "n"}}]


# --- what a patch cannot do -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["name", "namespace", "uid"])
def test_the_identity_of_an_object_is_refused(name: str) -> None:
    given = box()
    review = review_of(given)
    review.resource["metadata"][name] = "other"
    with pytest.raises(OptionError, match=rf"default changed metadata.{name}, which identifies"):
        patch(review, given)


def test_an_object_without_metadata_is_refused() -> None:
    given = box()
    review = review_of(given)
    del review.resource["metadata"]
    with pytest.raises(OptionError, match="default changed metadata, which"):
        patch(review, given)


@pytest.mark.parametrize(("subresource", "paths"), [("", ["/spec/size"]), ("status", ["/status"])])
def test_a_write_of_the_status_changes_the_status_and_no_other_write_does(subresource: str, paths: list[str]) -> None:
    given = box(size=1)
    review = review_of(given, subresource=subresource)
    review.spec.size = 2
    review.resource["status"] = {"ready": True}
    assert [operation["path"] for operation in patch(review, given)] == paths
