"""Ordered children, waiting and stages on a real API server: a database, then its application; and the way back."""

from __future__ import annotations

import logging
from typing import ClassVar

import pytest

from bonny import Owned, Resource, Wait, is_ready
from bonny.stages import StagedAxn, StagedController
from bonny_dev.crd.definition import crds
from bonny_dev.sandbox import Sandbox
from tests.support.pipelined import deployment
from tests.support.serving import serving
from tests.support.things import (
    GROUP,
    MERGE,
    THING,
    Thing,
    condition_of,
    config_map,
    operator_of,
    thing,
)

DATABASE = "apps/v1", "Deployment", "database"


@pytest.fixture(autouse=True, scope="module")
def _served(sandbox: Sandbox) -> None:
    sandbox.apply(crds([Thing], GROUP))


class Ordered(StagedController[Thing]):
    """An application after its database; nothing at all before the licence is there."""

    owns = (Owned("v1", "ConfigMap"), Owned("apps/v1", "Deployment"))
    stages = ("Licensed",)
    licensed: ClassVar[bool] = False
    passes: ClassVar[int] = 0

    async def reconcile(self, axn: StagedAxn[Thing]) -> None:
        type(self).passes += 1
        if axn.spec.image != "nginx:2":
            axn.register_descendant(config_map("old"))
        database = deployment("database", label="db", image=axn.spec.image)
        axn.register_descendant(config_map("app", size=str(axn.spec.size)), after=database, when=is_ready)
        axn.register_descendant(database)
        axn.set_condition("Ready", True)
        with axn.stage("Licensed"):
            if not type(self).licensed:
                raise Wait("the licence is missing", after=0.1)

    async def finalize(self, axn: StagedAxn[Thing]) -> None:
        """Defined, so that children are deleted in the reverse order."""


def test_what_comes_after_a_database_waits_for_it_and_is_deleted_before_it(
    sandbox: Sandbox, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    Ordered.licensed, Ordered.passes = False, 0
    caplog.set_level(logging.INFO, logger="bonny.engine.worker")

    def live(api_version: str, kind: str, name: str) -> Resource | None:
        return sandbox.get(api_version, kind, name, namespace=namespace)

    def why(condition: str = "Reconciled") -> tuple[str, str]:
        return condition_of(live(*THING, "t1"), condition)

    def database_is_up() -> None:
        now = live(*DATABASE) or {}
        counts = dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), 1)
        status = {"observedGeneration": now["metadata"]["generation"], **counts}
        path = f"/apis/apps/v1/namespaces/{namespace}/deployments/database/status"
        sandbox.request("PATCH", path, {"status": status}, content_type=MERGE)

    with serving(operator_of(Ordered), sandbox.kubeconfig):
        sandbox.apply(thing("t1", namespace=namespace))
        sandbox.eventually(lambda: Ordered.passes >= 3)  # by the time of the wait, as nothing changes
        assert (why(), why("Licensed"), why("Ready")) == (("False", "Waiting"),) * 3
        assert live(*DATABASE) is not None, "what was registered so far is applied"
        assert "observedGeneration" not in (live(*THING, "t1") or {})["status"]

        Ordered.licensed = True
        sandbox.eventually(lambda: why("Licensed") == ("True", "Licensed"))
        assert (why(), live("v1", "ConfigMap", "app")) == (("False", "Waiting"), None)

        database_is_up()
        sandbox.eventually(lambda: why() == ("True", "Succeeded"))
        assert live("v1", "ConfigMap", "app") is not None
        assert why("Ready") == ("True", "Ready")

        # A new version of the database holds back that of the application, and pruning; Ready keeps its state.
        sandbox.apply(thing("t1", namespace=namespace, image="nginx:2", size=2))
        sandbox.eventually(lambda: why() == ("False", "Waiting"))
        app = live("v1", "ConfigMap", "app") or {}
        assert (app["data"], live("v1", "ConfigMap", "old") is None, why("Ready")) == (
            {"size": "1"},
            False,
            ("True", "Ready"),
        )
        database_is_up()
        sandbox.eventually(lambda: live("v1", "ConfigMap", "old") is None)
        assert (live("v1", "ConfigMap", "app") or {})["data"] == {"size": "2"}

        path = f"/api/v1/namespaces/{namespace}/configmaps/app"
        sandbox.request("PATCH", path, {"metadata": {"finalizers": ["example.com/slow"]}}, content_type=MERGE)
        sandbox.delete(*THING, "t1", namespace=namespace)
        sandbox.eventually(lambda: (live("v1", "ConfigMap", "app") or {})["metadata"].get("deletionTimestamp"))
        sandbox.eventually(lambda: why() == ("False", "Waiting"))
        assert "deletionTimestamp" not in (live(*DATABASE) or {})["metadata"]
        sandbox.request("PATCH", path, {"metadata": {"finalizers": None}}, content_type=MERGE)
        sandbox.eventually(lambda: live(*THING, "t1") is None)
        assert live("v1", "ConfigMap", "app") is None

    said = {(record.levelname, record.message) for record in caplog.records}
    assert ("INFO", "waiting") in said
    assert not said & {("WARNING", "reconcile failed"), ("INFO", "retry requested")}
