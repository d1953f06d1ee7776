"""Changes of definitions and permissions between two releases."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from bonny.resource import Resource
from bonny_dev.release import permissions
from bonny_dev.release.definitions import compare


def version(name: str, **fields: Any) -> Resource:
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object"}}}}
    return {"name": name, "served": True, "storage": False, "schema": schema, **fields}


def crd(*versions: Resource, **spec: Any) -> Resource:
    names = {"kind": "Widget", "plural": "widgets", **spec.pop("names", {})}
    fields = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [*versions], **spec}
    return {"metadata": {"name": "widgets.example.com"}, "spec": fields}


STORED = version("v1", storage=True)
STORE = "and objects are stored in it: store them in another version in a release before"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (crd(STORED), None, "Widget is gone: nothing serves the stored objects of widgets.example.com"),
        (crd(STORED), crd(STORED, scope="Cluster"), "Widget is Cluster, and was Namespaced: that cannot be changed"),
        (crd(STORED), crd(STORED, names={"kind": "Gadget"}), "Widget is called Gadget now: clients do not find it"),
        (
            crd(STORED, version("v2")),
            crd(version("v2", storage=True)),
            f"Widget v1 is gone, {STORE}",
        ),
        (
            crd(STORED),
            crd({**STORED, "served": False}),
            f"Widget v1 is no longer served, {STORE}",
        ),
        (
            crd(STORED, version("v1beta1")),
            crd(STORED),
            "Widget v1beta1 is gone: clients use it; deprecate it in a release before",
        ),
        (
            crd({**STORED, "subresources": {"status": {}, "scale": {}}}),
            crd({**STORED, "subresources": {"status": {}}}),
            "Widget v1 no longer has the subresource scale: clients write it",
        ),
        (
            crd({**STORED, "selectableFields": [{"jsonPath": ".spec.a"}]}),
            crd(STORED),
            "Widget v1 can no longer be selected by .spec.a: clients do",
        ),
    ],
)
def test_what_breaks_objects_or_clients(old: Resource, new: Resource | None, said: str) -> None:
    (finding,) = (each for each in compare([old], [new] if new else []) if each.change.breaks)

    assert str(finding) == said


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (crd(STORED), crd(STORED, version("v2")), ["Widget v2 is new"]),
        (
            crd(STORED, version("v1beta1", deprecated=True)),
            crd(STORED),
            ["Widget v1beta1 is gone; it was deprecated"],
        ),
        (crd(STORED, version("v1beta1", served=False)), crd(STORED), []),
        (
            crd(STORED, version("v2")),
            crd({**STORED, "storage": False}, version("v2", storage=True)),
            ["Widget v1 is no longer the stored version: run `invoke migrate Widget` after the release"],
        ),
        (crd(STORED), crd({**STORED, "deprecated": True}), ["Widget v1 is deprecated"]),
        (crd(STORED, names={"shortNames": ["w"]}), crd(STORED), ["Widget no longer has the short name w"]),
        (crd(STORED), crd(STORED), []),
    ],
)
def test_what_breaks_nothing(old: Resource, new: Resource, said: list[str]) -> None:
    found = [*compare([old], [new])]

    assert [str(each) for each in found] == said
    assert not any(each.change.breaks for each in found)


def test_a_new_kind_breaks_nothing() -> None:
    (finding,) = compare([], [crd(STORED)])

    assert (str(finding), finding.change.breaks) == ("Widget is new", False)


def test_a_field_has_the_name_by_which_it_can_be_accepted() -> None:
    new = deepcopy(crd(STORED))
    new["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["type"] = "string"

    (finding,) = compare([crd(STORED)], [new])

    assert finding.name == "Widget v1 spec"


def role(name: str, **rule: Any) -> Resource:
    return {"kind": "ClusterRole", "metadata": {"name": name}, "rules": [rule] if rule else []}


def test_new_and_former_permissions_are_lines_to_read() -> None:
    pods = {"apiGroups": [""], "resources": ["pods"]}
    old = [role("a", **pods, verbs=["get", "list"]), role("b", nonResourceURLs=["/metrics"], verbs=["get"])]
    new = [role("a", **pods, verbs=["get", "delete"])]

    assert permissions.compare(old, new) == (
        ['ClusterRole a: - {apiGroups: [""], resources: ["pods"], verbs: [delete]}'],
        [
            'ClusterRole a: - {apiGroups: [""], resources: ["pods"], verbs: [list]}',
            'ClusterRole b: - {nonResourceURLs: ["/metrics"], verbs: [get]}',
        ],
    )
    assert permissions.compare(old, old) == ([], [])
