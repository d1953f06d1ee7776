"""The examples beside controllers and simulated pods: what they make becomes ready, and goes with its owner.

What holds without controllers, too: test_examples.
"""

from __future__ import annotations

from typing import Any

import pytest

from bonny_dev.sandbox.workloads import Workloads
from bonny_dev.testing import is_ready
from tests.integration.test_examples import Stage, example, stage
from tests.support.controllers import skip_without_controllers
from tests.support.things import condition_of

__all__ = ["stage"]


@pytest.fixture(autouse=True, scope="module")
def _is_there() -> None:
    """`make test` builds no controllers, `make test-all` does."""
    skip_without_controllers()


@pytest.fixture(autouse=True)
def _controllers_run(workloads: Workloads) -> None:
    """All tests of this module have controllers."""


@example("hello")
def test_a_greeting_is_ready_while_its_pods_are_and_takes_them_along(stage: Stage, workloads: Workloads) -> None:
    (greeting,) = stage.samples

    def live() -> Any:
        return stage.get("hello.example.com/v1", "Greeting", "hello")

    with stage.running():
        workloads.simulate("hello-*", "image-pull-error")
        stage.apply(greeting)
        stage.eventually(lambda: stage.get("apps/v1", "Deployment", "hello")["status"]["unavailableReplicas"] == 2)
        assert condition_of(live(), "Ready") == ("False", "NotReady")

        workloads.reset()
        stage.eventually(lambda: condition_of(live(), "Ready") == ("True", "Ready"))
        assert live()["status"]["available"] == 2

        stage.delete(greeting)
        for api_version, kind in (("apps/v1", "Deployment"), ("v1", "Service")):
            stage.eventually(
                lambda like=(api_version, kind): stage.get(*like, "hello") is None,
                within_seconds=20.0,
            )
    stage.eventually(lambda: not stage.sandbox.items("v1", "Pod", namespace="default", label_selector="app=hello"))


@example("descendants")
def test_a_workspace_goes_with_its_namespace_its_pod_and_its_volume(stage: Stage) -> None:
    (workspace,) = stage.samples
    with stage.running():
        stage.apply({**workspace, "metadata": {"name": "ours"}})
        stage.eventually(lambda: is_ready(stage.get("v1", "Pod", "ours-pod", namespace="ours-ns") or {}))

        stage.delete({**workspace, "metadata": {"name": "ours"}})
        stage.eventually(
            lambda: stage.get("workspaces.example.com/v1", "Workspace", "ours") is None, within_seconds=40.0
        )
    for kind, name, namespace in (
        ("Namespace", "ours-ns", ""),
        ("Pod", "ours-pod", "ours-ns"),
        ("PersistentVolume", "ours-pv", ""),
    ):
        stage.eventually(
            lambda like=(kind, name), where=namespace: stage.get("v1", *like, namespace=where) is None,
            within_seconds=40.0,
        )


@example("cheap_node")
def test_a_scheduler_of_this_runtime_binds_its_pods_beside_the_simulated_one(stage: Stage) -> None:
    *nodes, pod = stage.samples
    others = {"metadata": {"name": "others"}, "spec": {**pod["spec"], "schedulerName": "default-scheduler"}}
    unfit = {"metadata": {"name": "unfit"}, "spec": {**pod["spec"], "nodeSelector": {"disk": "fast"}}}
    with stage.running():
        stage.apply(*nodes, pod, *({**pod, **each} for each in (others, unfit)))
        for name in ("thrifty", "others"):
            stage.eventually(lambda name=name: is_ready(stage.get("v1", "Pod", name)))
        assert stage.node_of("thrifty") == "cheap"

        stage.eventually(lambda: condition_of(stage.get("v1", "Pod", "unfit"), "PodScheduled")[0] == "False")
        assert stage.node_of("unfit") == ""
    bound = [request.path.split("/")[-2] for request in stage.proxy.requests if request.path.endswith("/binding")]
    assert bound == ["thrifty"]
