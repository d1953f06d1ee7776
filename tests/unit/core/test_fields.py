"""What a manager owns of an object, read from managedFields as API servers really write them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bonny.core.fields import digest, merged, overridden, owned_fields, project, same, unowned
from bonny.resource import Resource

OURS = "widgets-operator/WidgetController"

# A Deployment after server-side apply, as a v1.36 API server returns it; the replicas are an autoscaler's, the
# annotation and condition the deployment controller's, one finalizer somebody else's.
DEPLOYMENT: Resource = {
    "metadata": {
        "name": "w1",
        "annotations": {"deployment.kubernetes.io/revision": "1"},
        "labels": {"app": "w1", "team": "blue"},
        "finalizers": ["example.com/theirs", "example.com/ours"],
        "managedFields": [
            {
                "manager": OURS,
                "operation": "Apply",
                "apiVersion": "apps/v1",
                "fieldsType": "FieldsV1",
                "fieldsV1": {
                    "f:metadata": {
                        "f:labels": {"f:app": {}},
                        "f:finalizers": {'v:"example.com/ours"': {}},
                    },
                    "f:spec": {
                        "f:selector": {},
                        "f:template": {
                            "f:metadata": {"f:labels": {"f:app": {}}},
                            "f:spec": {
                                "f:containers": {
                                    'k:{"name":"main"}': {
                                        ".": {},
                                        "f:args": {},
                                        "f:image": {},
                                        "f:name": {},
                                        "f:ports": {
                                            'k:{"containerPort":80,"protocol":"TCP"}': {
                                                ".": {},
                                                "f:containerPort": {},
                                                "f:name": {},
                                            }
                                        },
                                    }
                                },
                                "f:volumes": {'k:{"name":"tmp"}': {".": {}, "f:emptyDir": {}, "f:name": {}}},
                            },
                        },
                    },
                },
            },
            {
                "manager": OURS,
                "operation": "Apply",
                "subresource": "status",
                "fieldsV1": {"f:status": {"f:x": {}}},
            },
            {"manager": OURS, "operation": "Update", "fieldsV1": {"f:spec": {"f:paused": {}}}},
            {"manager": "hpa", "operation": "Update", "fieldsV1": {"f:spec": {"f:replicas": {}}}},
        ],
    },
    "spec": {
        "replicas": 3,
        "paused": False,
        "selector": {"matchLabels": {"app": "w1"}},
        "template": {
            "metadata": {"labels": {"app": "w1", "injected": "yes"}},
            "spec": {
                "containers": [
                    {"name": "sidecar", "image": "mesh:1", "ports": [{"containerPort": 80, "protocol": "TCP"}]},
                    {
                        "name": "main",
                        "image": "nginx:1",
                        "args": ["-a", "-b"],
                        "terminationMessagePath": "/dev/termination-log",
                        "ports": [
                            {"containerPort": 80, "protocol": "UDP"},
                            {"containerPort": 80, "protocol": "TCP", "name": "http"},
                        ],
                    },
                ],
                "volumes": [{"name": "tmp", "emptyDir": {}}, {"name": "token", "projected": {"sources": []}}],
            },
        },
    },
}


def test_the_fields_of_a_manager_are_those_that_it_applied() -> None:
    fields = owned_fields(DEPLOYMENT, OURS)

    assert fields is not None
    assert set(fields) == {"f:metadata", "f:spec"}
    assert owned_fields(DEPLOYMENT, OURS, subresource="status") == {"f:status": {"f:x": {}}}


@pytest.mark.parametrize(("manager", "subresource"), [("hpa", ""), ("nobody", ""), (OURS, "scale")])
def test_who_applied_nothing_owns_nothing(manager: str, subresource: str) -> None:
    assert owned_fields(DEPLOYMENT, manager, subresource=subresource) is None


@pytest.mark.parametrize("metadata", [{}, {"managedFields": None}, {"managedFields": []}])
def test_an_object_without_bookkeeping_is_owned_by_nobody(metadata: Resource) -> None:
    assert owned_fields({"metadata": metadata}, OURS) is None


def test_a_deployment_is_cut_down_to_what_was_applied() -> None:
    fields = owned_fields(DEPLOYMENT, OURS)
    assert fields is not None

    assert project(DEPLOYMENT, fields) == {
        "metadata": {"labels": {"app": "w1"}, "finalizers": ["example.com/ours"]},
        "spec": {
            "selector": {"matchLabels": {"app": "w1"}},
            "template": {
                "metadata": {"labels": {"app": "w1"}},
                "spec": {
                    "containers": [
                        {
                            "name": "main",
                            "image": "nginx:1",
                            "args": ["-a", "-b"],
                            "ports": [{"containerPort": 80, "name": "http"}],
                        }
                    ],
                    "volumes": [{"name": "tmp", "emptyDir": {}}],
                },
            },
        },
    }


def test_the_conditions_of_others_are_left_out_of_a_status() -> None:
    fields = {"f:status": {"f:conditions": {'k:{"type":"Ready"}': {".": {}, "f:type": {}, "f:status": {}}}}}
    status = {"conditions": [{"type": "Reconciled", "status": "True"}, {"type": "Ready", "status": "False"}]}

    assert project({"status": status}, fields) == {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}


def test_items_keep_the_order_of_the_list() -> None:
    fields = {'k:{"name":"b"}': {"f:name": {}}, 'k:{"name":"a"}': {"f:name": {}}}

    assert project([{"name": "a"}, {"name": "x"}, {"name": "b"}], fields) == [{"name": "a"}, {"name": "b"}]


@pytest.mark.parametrize(
    ("value", "fields", "expected"),
    [
        ({"a": {}}, {"f:a": {}}, {"a": {}}),
        ({"a": []}, {"f:a": {}}, {"a": []}),
        ({"a": None}, {"f:a": {}}, {"a": None}),
        ({"a": {"b": 1}}, {"f:a": {".": {}}}, {"a": {"b": 1}}),
        ({"a": {"b": 1, "c": 2}}, {"f:a": {".": {}, "f:b": {}}}, {"a": {"b": 1}}),
        ({"f:a": 1}, {"f:f:a": {}}, {"f:a": 1}),
        (["x", "y"], {'v:"y"': {}}, ["y"]),
        ([1, 2, 3], {"v:2": {}}, [2]),
        (["x", "y"], {"i:1": {}}, ["y"]),
    ],
    ids=["empty map", "empty list", "null", "map as a whole", "part", "colon", "set", "numbers", "index"],
)
def test_leaves_and_markers(value: Any, fields: Resource, expected: Any) -> None:
    assert project(value, fields) == expected


@pytest.mark.parametrize(
    ("value", "fields", "expected"),
    [
        ({}, {"f:gone": {"f:x": {}}}, {}),
        ([], {'k:{"name":"a"}': {}}, []),
        ({"a": "text"}, {"f:a": {"f:b": {}}}, {"a": "text"}),
        ({"a": [1]}, {"f:a": {"f:b": {}}}, {"a": []}),
        ({"a": {"b": 1}}, {"f:a": {'k:{"name":"x"}': {}}}, {"a": {}}),
        (["text"], {'k:{"name":"a"}': {}}, []),
    ],
    ids=["path", "item", "scalar", "list where a map was", "map where a list was", "scalar item"],
)
def test_paths_that_do_not_fit_the_object_are_left_out(value: Any, fields: Resource, expected: Any) -> None:
    """Regression: a list where the recorded paths speak of a map (the schema was changed) was an error each time."""
    assert project(value, fields) == expected


PORTS = [{"port": 80, "protocol": "TCP"}, {"port": 80, "protocol": "UDP"}, {"port": 81}]


@pytest.mark.parametrize(
    ("value", "fields", "expected"),
    [
        (PORTS, {'k:{"port":80,"protocol":"UDP"}': {}, 'k:{"port":81}': {}}, PORTS[1:]),
        (PORTS, {'k:{"protocol":"TCP","port":80}': {}}, PORTS[:1]),
        ([{"on": True}, {"on": 1}], {'k:{"on":1}': {}}, [{"on": 1}]),
        ([True, 1, "1"], {"v:1": {}}, [1]),
        ([{"name": "a", "x": 1}, {"name": "a", "x": 2}], {'k:{"name":"a"}': {"f:x": {}}}, [{"x": 1}, {"x": 2}]),
        ([{"name": "<&>"}], {r'k:{"name":"\u003c\u0026\u003e"}': {}}, [{"name": "<&>"}]),
    ],
    ids=["two keys, one missing", "order of keys", "key of another type", "value of another type", "twice", "escaped"],
)
def test_items_are_found_by_all_their_key_fields(value: Any, fields: Resource, expected: Any) -> None:
    assert [repr(found) for found in project(value, fields)] == [repr(wanted) for wanted in expected]


def calls_of(work: Callable[[], object]) -> int:
    """How many functions `work` calls, built-in ones included."""
    calls = 0

    def counting(_: object, event: str, __: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(counting)
    try:
        work()
    finally:
        sys.setprofile(None)
    return calls


LONG_LISTS = pytest.mark.parametrize(
    ("element", "item"),
    [
        (lambda number: f'k:{{"name":"node-{number}"}}', lambda number: {"name": f"node-{number}", "phase": "ok"}),
        (lambda number: f"v:{number}", lambda number: number),
        (lambda number: f"i:{number}", lambda number: number),
    ],
    ids=["keys", "values", "indices"],
)


@LONG_LISTS
def test_a_list_of_ten_times_the_items_costs_ten_times_as_much(
    element: Callable[[int], str], item: Callable[[int], Any]
) -> None:
    """Regression: each item was tried against each path, so some thousand items blocked the loop past the lease."""

    def calls(count: int) -> int:
        items, fields = [item(number) for number in range(count)], {element(number): {} for number in range(count)}
        projected: list[Resource] = []
        made = calls_of(lambda: projected.append(project({"list": items}, {"f:list": fields})))
        assert projected == [{"list": items}]
        return made

    small, large = calls(100), calls(1_000)

    assert large <= 10 * small
    assert large < 30 * 1_000


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        ({"a": [1, {"b": "x"}]}, {"a": [1, {"b": "x"}]}, True),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        (1, 1.0, True),
        ({"a": [10**16]}, {"a": [1e16]}, True),
        (True, 1, False),
        (0, False, False),
        ({"a": [{"b": 1}]}, {"a": [{"b": True}]}, False),
        ([1.0], [True], False),
        ("1", 1, False),
        (None, {}, False),
        ([1, 2], [2, 1], False),
    ],
)
def test_values_are_the_same_when_the_api_server_stores_the_same(one: Any, other: Any, equal: bool) -> None:
    assert same(one, other) is same(other, one) is equal


def fields_of(value: Any) -> Resource:
    """The fieldsV1 of applying `value`: lists of named things are keyed, other lists atomic."""
    if isinstance(value, dict):
        return {f"f:{name}": fields_of(item) for name, item in value.items()}
    if isinstance(value, list) and value and all(isinstance(item, dict) and "name" in item for item in value):
        return {f'k:{{"name":"{item["name"]}"}}': {".": {}, **fields_of(item)} for item in value}
    return {}


NAMES = st.text("abc", min_size=1, max_size=3)
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-5, 5), st.text(max_size=3))


def containers(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    maps = st.dictionaries(NAMES, values, max_size=4)
    named = st.lists(NAMES, unique=True, max_size=3).flatmap(
        lambda names: st.tuples(*(maps.map(lambda rest, name=name: {**rest, "name": name}) for name in names)).map(list)
    )
    return st.one_of(maps, named, st.lists(SCALARS, max_size=3))


VALUES = st.dictionaries(NAMES, st.recursive(SCALARS, containers, max_leaves=20), max_size=4)


@given(value=VALUES)
def test_what_was_applied_alone_is_all_ours(value: Resource) -> None:
    assert project(value, fields_of(value)) == value


@given(ours=VALUES, theirs=VALUES)
def test_cutting_down_twice_changes_nothing(ours: Resource, theirs: Resource) -> None:
    fields = fields_of(ours)
    once = project({**theirs, **ours}, fields)

    assert project(once, fields) == once


@given(ours=VALUES, theirs=VALUES)
def test_what_others_set_beside_ours_never_shows(ours: Resource, theirs: Resource) -> None:
    beside = {f"x{name}": value for name, value in theirs.items()}

    assert project({"spec": {**beside, **ours}}, {"f:spec": {"f:o": {}, **fields_of(ours)}}) == {"spec": ours}


@given(value=VALUES)
def test_a_digest_depends_on_the_content_and_not_on_the_order(value: Resource) -> None:
    assert digest(dict(reversed(value.items()))) == digest(value)
    assert digest({**value, "more": 1}) != digest(value)


# --- what a rival has set ---------------------------------------------------------------------------------------------


RIVALS: Resource = {
    "f:spec": {
        "f:replicas": {},
        "f:template": {"f:spec": {"f:containers": {'k:{"name":"main"}': {".": {}, "f:image": {}, "f:args": {}}}}},
    },
    "f:status": {"f:replicas": {}},
}


def deployment(*, image: str = "a", replicas: int = 1, **more: Any) -> Resource:
    containers = [{"name": "side", "image": "x"}, {"name": "main", "image": image}]
    return {"spec": {"replicas": replicas, "template": {"spec": {"containers": containers}}}, **more}


def test_the_paths_that_a_rival_set_to_something_else_are_named_without_values() -> None:
    wanted, live = deployment(), deployment(image="hunter2", replicas=2, status={"replicas": 2})
    assert [*overridden(wanted, live, RIVALS)] == [".spec.replicas", ".spec.template.spec.containers[].image"]


def test_what_a_rival_owns_but_has_not_changed_or_nobody_else_wants_is_not_named() -> None:
    assert [*overridden(deployment(), deployment(status={"replicas": 2}), RIVALS)] == []
    assert [*overridden({"spec": {}}, deployment(replicas=7), RIVALS)] == []
    assert [*overridden(deployment(), {"spec": None}, {"f:spec": {"f:template": {}}})] == [".spec.template"]
    assert [*overridden({"list": [1, 2]}, {"list": [2]}, {"f:list": {"v:1": {}, "v:2": {}, "f:old": {}}})] == []


@LONG_LISTS
def test_what_a_rival_set_in_a_list_of_ten_times_the_items_costs_ten_times_as_much(
    element: Callable[[int], str], item: Callable[[int], Any]
) -> None:
    """Regression: each list was read once for each item that a rival owns, 3.4 s on the loop for 2,000 of them."""

    def calls(count: int) -> int:
        items = [item(number) for number in range(count)]
        fields: Resource = {"f:list": {element(number): {"f:phase": {}} for number in range(count)}}
        changed = [{**known, "phase": "gone"} if isinstance(known, dict) else known for known in items]
        paths: list[str] = []
        made = calls_of(lambda: paths.extend(overridden({"list": items}, {"list": changed}, fields)))
        assert paths == [".list[].phase"] * (count if isinstance(items[0], dict) else 0)
        return made

    small, large = calls(100), calls(1_000)

    assert large <= 10 * small
    assert large < 60 * 1_000


def test_what_no_field_manager_names_is_unowned() -> None:
    value = {"a": 1, "b": {"c": 2, "d": 3}, "list": [{"k": 1}], "whole": {"x": 1}, "empty": {}}
    owned = [{"f:a": {}, "f:b": {".": {}, "f:c": {}}}, {"f:list": {'k:{"k":2}': {}}, "f:whole": {}, "f:gone": {}}]

    assert unowned(value, owned) == {"b": {"d": 3}, "empty": {}}
    assert unowned(value, []) == value
    assert merged({"a": 1, "b": {"c": 2}}, unowned(value, owned)) == {"a": 1, "b": {"c": 2, "d": 3}, "empty": {}}
    assert merged({"a": {"x": 1}, "b": 1}, {"a": 2, "b": {}}) == {"a": 2, "b": {}}
