"""Orphans: the children that `invoke doctor` reports as left behind, and the ones that it does not."""

from __future__ import annotations

from bonny.resource import Resource
from bonny_dev.tasks.orphans import Orphan, orphaned
from tests.support.core import thing

HANDLED = {("example.com", "Widget")}


def child(owner: str, *, reference: bool = True, kind: str = "Widget", version: str = "v1") -> Resource:
    named = [{"apiVersion": f"example.com/{version}", "kind": kind, "name": "w", "uid": owner}] if reference else []
    return {"kind": "ConfigMap", **thing("c", labels={"bonny.dev/owner-uid": owner}, owners=named)}


def found(*children: Resource, owners: tuple[Resource, ...] = ()) -> list[Orphan]:
    return list(orphaned(children, owners, HANDLED))


def test_a_child_whose_owner_exists_is_not_reported() -> None:
    assert found(child("u1"), owners=(thing("w", uid="u1"),)) == []
    assert found(child("u1", reference=False), owners=(thing("w", uid="u1"),)) == []


def test_a_child_whose_owner_is_gone_is_reported() -> None:
    assert found(child("u1"), owners=(thing("w", uid="u2"),)) == [Orphan("ConfigMap default/c", "u1", collected=True)]


def test_a_child_that_names_its_owner_by_the_label_alone_is_not_collected() -> None:
    assert [orphan.collected for orphan in found(child("u1", reference=False))] == [False]


def test_the_version_of_an_owner_reference_does_not_matter() -> None:
    assert len(found(child("u1", version="v1beta1"))) == 1


def test_a_child_of_a_kind_that_this_operator_does_not_handle_is_not_reported() -> None:
    assert found(child("u1", kind="Sprocket")) == []


def test_a_reference_to_another_owner_does_not_save_a_child() -> None:
    other = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d", "uid": "u9"}
    shared = child("u1")
    shared["metadata"]["ownerReferences"] = [*shared["metadata"]["ownerReferences"], other]
    assert [orphan.owner_uid for orphan in found(shared)] == ["u1"]


def test_an_object_without_the_label_is_not_a_child() -> None:
    assert found({"kind": "ConfigMap", **thing("c")}) == []
