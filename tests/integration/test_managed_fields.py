"""Children whose managedFields another client removed, as tools that copy, restore or shorten objects do."""

from __future__ import annotations

import time
from typing import Any

import pytest

from bonny import Axn, Controller, Owned, Resource
from bonny_dev.crd.definition import crds
from bonny_dev.sandbox import Sandbox
from bonny_dev.testing.faults import FaultProxy
from tests.support.serving import serving
from tests.support.things import (
    GROUP,
    MERGE,
    THING,
    Thing,
    config_map,
    operator_of,
    path_of,
    thing,
    until_reconciled,
)


@pytest.fixture(autouse=True, scope="module")
def _served(sandbox: Sandbox) -> None:
    sandbox.apply(crds([Thing], GROUP))


class Secretive(Controller[Thing]):
    """A ConfigMap with a key that may go."""

    owns: tuple[Owned, ...] = (Owned("v1", "ConfigMap"),)

    async def reconcile(self, axn: Axn[Thing]) -> None:
        data = {"size": str(axn.spec.size)}
        if axn.spec.secret:
            data["secret"] = axn.spec.secret
        axn.register_descendant(config_map("child", **data))


class SecretiveByMetadata(Secretive):
    """The same, whose stream shows only the metadata."""

    owns = (Owned("v1", "ConfigMap", metadata_only=True),)


def path_of_child(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps/child"


def child(sandbox: Sandbox, namespace: str) -> Resource:
    return sandbox.get("v1", "ConfigMap", "child", namespace=namespace) or {}


def managers(sandbox: Sandbox, namespace: str) -> set[str]:
    return {entry["manager"] for entry in child(sandbox, namespace)["metadata"].get("managedFields") or ()}


def strip(sandbox: Sandbox, namespace: str) -> None:
    """Another client sets a label, and nobody knows any more who set what."""
    change = {"metadata": {"labels": {"theirs": "yes"}, "managedFields": [{}]}}
    answer = sandbox.request("PATCH", path_of_child(namespace), change, content_type=MERGE)
    assert (answer.status, answer.body["metadata"].get("managedFields")) == (200, None)


def want(sandbox: Sandbox, namespace: str, **spec: Any) -> None:
    answer = sandbox.request("PATCH", path_of("t1", namespace), {"spec": spec}, content_type=MERGE)
    assert answer.status == 200, answer.body


@pytest.mark.parametrize("running", [True, False], ids=["while it runs", "while no operator runs"])
@pytest.mark.parametrize("controller", [Secretive, SecretiveByMetadata])
def test_a_field_that_is_no_longer_wanted_goes_although_managed_fields_were_removed(
    sandbox: Sandbox, namespace: str, proxy: FaultProxy, controller: type[Controller[Any]], running: bool
) -> None:
    """Regression: the API server noted `before-first-apply` as an owner of all fields, so that each stayed for ever."""
    operator = operator_of(controller)

    def is_ours_again() -> bool:
        return managers(sandbox, namespace) == {f"{operator.name}/{controller.__name__}"}

    with serving(operator, proxy.kubeconfig):
        sandbox.apply(thing("t1", namespace=namespace, secret="hidden"))
        until_reconciled(sandbox, "t1", namespace)
        if running:
            strip(sandbox, namespace)
            sandbox.eventually(is_ours_again)
    if not running:
        strip(sandbox, namespace)
    with serving(operator, proxy.kubeconfig) as at_work:
        sandbox.eventually(is_ours_again)
        want(sandbox, namespace, secret="")
        sandbox.eventually(lambda: child(sandbox, namespace)["data"] == {"size": "1"})
        assert child(sandbox, namespace)["metadata"]["labels"]["theirs"] == "yes"

        # At rest nothing is written: the reconcile that the label of the owner causes comes after all that was due.
        (worker,) = at_work.process.workers
        handled, since = worker.handled, time.monotonic()
        change = {"metadata": {"labels": {"again": "yes"}}}
        sandbox.request("PATCH", path_of("t1", namespace), change, content_type=MERGE)
        sandbox.eventually(lambda: worker.handled > handled)
        assert (
            proxy.count(lambda request: request.method == "PATCH" and "/configmaps/" in request.path, since=since) == 0
        )


def test_an_object_of_another_client_keeps_its_managed_fields(sandbox: Sandbox, namespace: str) -> None:
    """Not even a name in use: what is not ours is not touched."""
    sandbox.apply({**config_map("child", namespace=namespace, theirs="1")})
    strip(sandbox, namespace)
    before = child(sandbox, namespace)

    with serving(operator_of(Secretive), sandbox.kubeconfig):
        sandbox.apply(thing("t1", namespace=namespace))
        sandbox.eventually(
            lambda: "ForeignObject" in str((sandbox.get(*THING, "t1", namespace=namespace) or {}).get("status"))
        )

    assert child(sandbox, namespace) == before
