"""Readiness: what counts as ready, kind by kind."""

from __future__ import annotations

from typing import Any

import pytest

from bonny import Resource, is_ready
from bonny.kinds import builtin_kinds
from bonny.readiness import CONDITIONS
from bonny_dev import testing

NEW: Resource = {"observedGeneration": 2}
ALL = {**NEW, "replicas": 2, "updatedReplicas": 2, "readyReplicas": 2, "availableReplicas": 2}
ON_NODES = {**NEW, "desiredNumberScheduled": 3, "updatedNumberScheduled": 3, "numberAvailable": 3}


def of(kind: str, status: Resource | None = None, *, api_version: str = "apps/v1", **metadata: Any) -> Resource:
    made: Resource = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x", "generation": 2, **metadata}}
    return {**made, "spec": {"replicas": 2}} if status is None else {**made, "spec": {"replicas": 2}, "status": status}


def says(type: str, status: str = "True", **more: Any) -> Resource:  # noqa: A002  the API's own word
    return {"conditions": [{"type": "Progressing", "status": "True"}, {"type": type, "status": status, **more}]}


@pytest.mark.parametrize(
    "resource",
    [
        of("Deployment", ALL),
        of("StatefulSet", ALL),
        of("ReplicaSet", {**NEW, "replicas": 2, "availableReplicas": 2}),
        {**of("Deployment", NEW), "spec": {"replicas": 0}},
        of("DaemonSet", ON_NODES),
        of("DaemonSet", {**NEW, "desiredNumberScheduled": 0}),
        of("Job", says("Complete"), api_version="batch/v1"),
        of("Pod", says("Ready"), api_version="v1"),
        of("PersistentVolumeClaim", {"phase": "Bound"}, api_version="v1"),
        of("Namespace", {"phase": "Active"}, api_version="v1"),
        of("CustomResourceDefinition", says("Established"), api_version="apiextensions.k8s.io/v1"),
        of("ConfigMap", api_version="v1"),
        of("Service", {"loadBalancer": {}}, api_version="v1"),
        of("Database", says("Ready"), api_version="example.com/v1"),
        of("Database", says("Ready", observedGeneration=2), api_version="example.com/v1"),
        of("Database", says("Available"), api_version="example.com/v1"),
        of("Deployment", says("Ready"), api_version="example.com/v1"),
    ],
)
def test_what_has_reached_what_its_spec_asks_for_is_ready(resource: Resource) -> None:
    assert is_ready(resource)
    resource["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert not is_ready(resource), "it will be gone"


@pytest.mark.parametrize(
    "resource",
    [
        of("Deployment"),
        of("Deployment", {}),
        of("Deployment", {**ALL, "observedGeneration": 1}),
        of("Deployment", {**ALL, "updatedReplicas": 1}),
        of("Deployment", {**ALL, "replicas": 3}),
        of("Deployment", {**ALL, "availableReplicas": 1}),
        of("Deployment", {name: value for name, value in ALL.items() if name != "observedGeneration"}),
        of("StatefulSet", {**ALL, "availableReplicas": 1}),
        of("DaemonSet"),
        of("DaemonSet", {**ON_NODES, "numberAvailable": 2}),
        of("DaemonSet", {**ON_NODES, "updatedNumberScheduled": 2}),
        of("Job", {"active": 1}, api_version="batch/v1"),
        of("Job", says("Failed"), api_version="batch/v1"),
        of("Pod", {"phase": "Running", **says("Ready", "False")}, api_version="v1"),
        of("PersistentVolumeClaim", {"phase": "Pending"}, api_version="v1"),
        of("PersistentVolumeClaim", api_version="v1"),
        of("CustomResourceDefinition", {}, api_version="apiextensions.k8s.io/v1"),
        of("Database", api_version="example.com/v1"),
        of("Database", says("Ready", "Unknown"), api_version="example.com/v1"),
        of("Database", says("Ready", observedGeneration=1), api_version="example.com/v1"),
        of("Database", {**says("Ready"), "observedGeneration": 1}, api_version="example.com/v1"),
    ],
)
def test_what_has_not_is_not(resource: Resource) -> None:
    assert not is_ready(resource)


def test_a_status_counts_without_a_generation_as_in_a_unit_test() -> None:
    status = {name: value for name, value in ALL.items() if name != "observedGeneration"}
    child = of("Deployment", status)
    del child["metadata"]["generation"]
    assert is_ready(child)
    assert not is_ready({**child, "status": {**status, "updatedReplicas": 1}})


@pytest.mark.parametrize("generation", [{}, {"generation": 2}])
@pytest.mark.parametrize(
    "kind", [*builtin_kinds(), ("example.com/v1", "Database"), ("example.com/v1", "Deployment")], ids=":".join
)
def test_a_child_that_a_test_calls_ready_is_ready(kind: tuple[str, str], generation: dict[str, int]) -> None:
    api_version, name = kind
    child = {"apiVersion": api_version, "kind": name, "metadata": {"name": "x", **generation}, "spec": {"replicas": 3}}
    failing = [{"type": each, "status": "False"} for each in ("Other", CONDITIONS.get(name, "Another"))]
    before = {"status": {"conditions": failing}}

    made = testing.ready({**child, **before})

    assert is_ready(made)
    assert {"type": "Other", "status": "False"} in made["status"]["conditions"]
    assert testing.ready(child)["metadata"] == child["metadata"]
    assert "status" not in child
    assert is_ready(testing.ready({**child, "spec": None}))


def test_a_failing_ready_is_not_outvoted_by_available() -> None:
    conditions = [{"type": "Available", "status": "True"}, {"type": "Ready", "status": "False"}]
    assert not is_ready(of("Database", {"conditions": conditions}, api_version="example.com/v1"))
