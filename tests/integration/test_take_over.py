"""`invoke migrate-from` on a real API server: traces of another framework are replaced or removed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bonny import Axn, Controller, Operator, Owned, Resource
from bonny.client.config import Kubeconfig
from bonny.errors import UsageError
from bonny_dev.crd.definition import crds
from bonny_dev.sandbox import Sandbox
from bonny_dev.tasks.take_over import take_over
from bonny_dev.ways_in.sources import Traces, traces_of
from tests.support.serving import serving
from tests.support.things import GROUP, MERGE, THING, Thing, config_map, operator_of, path_of, thing, until_reconciled

KOPF = "kopf.zalando.org/KopfFinalizerMarker"
LAST = "kopf.zalando.org/last-handled-configuration"


@pytest.fixture(autouse=True, scope="module")
def _served(sandbox: Sandbox) -> None:
    sandbox.apply(crds([Thing], GROUP))


class Things(Controller[Thing]):
    """A ConfigMap with the size, and a finalizer."""

    owns = (Owned("v1", "ConfigMap"),)

    async def reconcile(self, axn: Axn[Thing]) -> None:
        axn.register_descendant(config_map("child", size=str(axn.spec.size)))

    async def finalize(self, axn: Axn[Thing]) -> None: ...


class Watched(Controller[Thing]):
    """Has no finalizer."""

    async def reconcile(self, axn: Axn[Thing]) -> None: ...


def leave(sandbox: Sandbox, namespace: str, *, finalizers: tuple[str, ...] = (KOPF, "example.com/other")) -> Resource:
    """A Thing and its child as an operator of kopf leaves them: the child was made by a POST of the Python client."""
    made = thing("t1", namespace=namespace)
    made["metadata"] |= {"finalizers": [*finalizers], "annotations": {LAST: "{}", "example.com/note": "stays"}}
    sandbox.apply(made)
    live = sandbox.get(*THING, "t1", namespace=namespace) or {}
    child = config_map("child", namespace=namespace, size="1", left="over")
    reference = {"apiVersion": made["apiVersion"], "kind": "Thing", "name": "t1", "uid": live["metadata"]["uid"]}
    child["metadata"]["ownerReferences"] = [{**reference, "controller": True, "blockOwnerDeletion": True}]
    path = f"/api/v1/namespaces/{namespace}/configmaps?fieldManager=OpenAPI-Generator"
    assert sandbox.request("POST", path, child).status == 201
    return live


def child(sandbox: Sandbox, namespace: str) -> Resource:
    return sandbox.get("v1", "ConfigMap", "child", namespace=namespace) or {}


def metadata(sandbox: Sandbox, namespace: str) -> Resource:
    found: Resource = (sandbox.get(*THING, "t1", namespace=namespace) or {})["metadata"]
    return found


def managers(resource: Resource) -> list[str]:
    return [each["manager"] for each in resource["metadata"]["managedFields"]]


def taken(sandbox: Sandbox, operator: Operator, *, traces: Traces | None = None, **options: Any) -> bool:
    flags = {"back": False, "dry_run": False, **options}
    return asyncio.run(take_over(Kubeconfig(str(sandbox.kubeconfig)), operator, traces or traces_of("kopf"), **flags))


def test_objects_of_kopf_go_to_the_operator_and_their_children_lose_unwanted_fields(
    sandbox: Sandbox, namespace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    leave(sandbox, namespace)
    operator = operator_of(Things)
    ours, manager = operator.finalizers(Things)[0], f"{operator.name}/Things"
    with serving(operator, sandbox.kubeconfig):
        until_reconciled(sandbox, "t1", namespace)
        before, uid = metadata(sandbox, namespace), child(sandbox, namespace)["metadata"]["uid"]
        assert managers(child(sandbox, namespace)) == [manager, "OpenAPI-Generator"]
        assert before["finalizers"] == [KOPF, "example.com/other", ours]

        assert taken(sandbox, operator, dry_run=True)
        assert metadata(sandbox, namespace) == before
        told = capsys.readouterr().out
        assert taken(sandbox, operator)

        assert metadata(sandbox, namespace)["finalizers"] == ["example.com/other", ours]
        assert metadata(sandbox, namespace)["annotations"] == {"example.com/note": "stays"}
        sandbox.eventually(lambda: child(sandbox, namespace)["data"] == {"size": "1"})
        assert (managers(child(sandbox, namespace)), child(sandbox, namespace)["metadata"]["uid"]) == ([manager], uid)
    fields = f"fields of OpenAPI-Generator go to {manager}"
    lines = told.splitlines()
    assert lines[1:] == [
        f"ConfigMap: {fields}; unless the handler registers them, its next reconcile removes .data.left (1)",
        f"Thing: annotation {LAST} is removed (1)",
        f"Thing: finalizer {KOPF} is removed (1)",
        "dry run: nothing was changed",
    ]
    capsys.readouterr()
    assert taken(sandbox, operator)
    assert capsys.readouterr().out.splitlines()[1:] == ["nothing to do"]


def test_without_a_take_over_a_field_of_the_former_operator_stays(sandbox: Sandbox, namespace: str) -> None:
    """The reason why field managers are taken over."""
    leave(sandbox, namespace)
    operator = operator_of(Things)
    with serving(operator, sandbox.kubeconfig):
        until_reconciled(sandbox, "t1", namespace)

        assert child(sandbox, namespace)["data"] == {"size": "1", "left": "over"}


def test_a_finalizer_is_replaced_in_its_place_where_the_operator_never_ran(sandbox: Sandbox, namespace: str) -> None:
    leave(sandbox, namespace)
    operator = operator_of(Things)

    assert taken(sandbox, operator)

    assert metadata(sandbox, namespace)["finalizers"] == [*operator.finalizers(Things), "example.com/other"]


def test_the_way_back_gives_the_finalizer_to_the_former_operator(
    sandbox: Sandbox, namespace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    leave(sandbox, namespace)
    operator = operator_of(Things)
    assert taken(sandbox, operator)

    assert taken(sandbox, operator, back=True)

    assert metadata(sandbox, namespace)["finalizers"] == [KOPF, "example.com/other"]
    assert f"Thing: finalizer {operator.finalizers(Things)[0]} becomes {KOPF} (1)" in capsys.readouterr().out


def test_an_object_under_deletion_that_waits_for_the_former_operator_is_left_and_named(
    sandbox: Sandbox, namespace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    leave(sandbox, namespace)
    sandbox.request("DELETE", path_of("t1", namespace))

    assert not taken(sandbox, operator_of(Things))

    assert metadata(sandbox, namespace)["finalizers"] == [KOPF, "example.com/other"]
    left = [line for line in capsys.readouterr().out.splitlines() if line.startswith("left: ")]
    assert len(left) == 1
    assert f"left: Thing {namespace}/t1 is being deleted, and waits for {KOPF}" in left[0]


def test_an_operator_without_a_finalizer_removes_that_of_the_former_one(sandbox: Sandbox, namespace: str) -> None:
    leave(sandbox, namespace, finalizers=("example.com/cleanup",))
    named = traces_of("kubebuilder").with_names(["example.com/cleanup"], ["example.com/note"], [])

    assert taken(sandbox, operator_of(Watched), traces=named)

    assert "finalizers" not in metadata(sandbox, namespace)
    assert metadata(sandbox, namespace)["annotations"] == {LAST: "{}"}


def test_another_client_that_writes_meanwhile_is_not_overwritten(
    sandbox: Sandbox, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The object changes after it was read: the write is refused, and decided again."""
    from bonny.client import Client  # noqa: PLC0415  only this test changes it

    leave(sandbox, namespace)
    operator, sent = operator_of(Things), Client.merge_patch
    meddled = []

    async def merge_patch(self: Client, kind: Any, key: Any, patch: Any, **options: Any) -> Any:
        if not meddled:
            change = {"metadata": {"finalizers": [KOPF, "example.com/other", "example.com/new"]}}
            meddled.append(sandbox.request("PATCH", path_of("t1", namespace), change, content_type=MERGE).status)
        return await sent(self, kind, key, patch, **options)

    monkeypatch.setattr(Client, "merge_patch", merge_patch)

    assert taken(sandbox, operator)

    assert meddled == [200]
    assert metadata(sandbox, namespace)["finalizers"] == [
        *operator.finalizers(Things),
        "example.com/other",
        "example.com/new",
    ]


def test_an_operator_without_controllers_takes_nothing_over(sandbox: Sandbox) -> None:
    with pytest.raises(UsageError, match="has no controller yet"):
        taken(sandbox, Operator(name="empty", group=GROUP, controllers=[]))
