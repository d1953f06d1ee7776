"""Nodes, claims and kinds: what the simulated scheduler and provisioner decide, without a server."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import islice
from typing import Any

import pytest

from bonny.resource import Resource
from bonny_dev.workloads import node_choice, volumes
from bonny_dev.workloads.behaviours import parse
from bonny_dev.workloads.cluster import free_addresses, pending_seconds
from bonny_dev.workloads.controllers import CONTROLLERS, command_of, served

NOW = datetime(2026, 3, 1, 12, 0, 20, tzinfo=UTC)


def node(name: str, *, unschedulable: bool = False, **labels: str) -> Resource:
    return {"metadata": {"name": name, "labels": labels}, "spec": {"unschedulable": unschedulable}}


def pod(**spec: Any) -> Resource:
    return {"metadata": {"name": "web-0", "namespace": "default"}, "spec": {"containers": [], **spec}}


def on(name: str) -> Resource:
    """As the DaemonSet controller names a node."""
    fields = [{"key": "metadata.name", "operator": "In", "values": [name]}]
    required = {"nodeSelectorTerms": [{"matchFields": fields}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, "n2"),
        ({"nodeSelector": {"disk": "fast"}}, "n3"),
        ({"nodeSelector": {"disk": "none"}}, None),
        ({"affinity": on("n1")}, "n1"),  # a DaemonSet tolerates a node that is cordoned
        ({"affinity": on("n4")}, None),
    ],
)
def test_the_first_node_that_may_take_the_pod_is_chosen(spec: Resource, expected: str | None) -> None:
    nodes = [node("n1", unschedulable=True), node("n2"), node("n3", disk="fast")]

    assert node_choice.choose(pod(**spec), nodes) == expected


@pytest.mark.parametrize(
    ("spec", "waits"),
    [
        ({}, True),
        ({"schedulerName": "default-scheduler"}, True),
        ({"schedulerName": "cheap"}, False),
        ({"nodeName": "n1"}, False),
        ({"schedulingGates": [{"name": "example.com/later"}]}, False),
    ],
)
def test_only_pods_of_the_default_scheduler_are_bound(spec: Resource, waits: bool) -> None:
    assert node_choice.waits_for_a_node(pod(**spec)) is waits


def test_the_claims_of_a_pod_are_those_that_it_names_and_those_made_for_it() -> None:
    mounted = [
        {"name": "data", "persistentVolumeClaim": {"claimName": "shared"}},
        {"name": "scratch", "ephemeral": {}},
        {"name": "settings", "configMap": {"name": "settings"}},
    ]

    assert node_choice.claims_of(pod(volumes=mounted)) == ["shared", "web-0-scratch"]


def claim(**spec: Any) -> Resource:
    metadata = {"name": "data", "namespace": "shop", "uid": "f00d", "annotations": {volumes.ASKED: "csi.example.com"}}
    requested = {"resources": {"requests": {"storage": "2Gi"}}, "accessModes": ["ReadWriteOnce"]}
    return {"metadata": metadata, "spec": {**requested, "storageClassName": "fast", **spec}}


def test_a_claim_gets_the_volume_that_the_binder_waits_for() -> None:
    volume = volumes.volume_for(claim())

    assert volume is not None
    assert volume["metadata"]["annotations"] == {volumes.PROVISIONED_BY: "csi.example.com"}
    spec = volume["spec"]
    assert (spec["capacity"], spec["storageClassName"]) == ({"storage": "2Gi"}, "fast")
    assert (spec["claimRef"]["namespace"], spec["claimRef"]["uid"]) == ("shop", "f00d")
    # The volume plugins of kube-controller-manager would touch the disk of this machine for a hostPath.
    assert "hostPath" not in spec


def test_a_claim_that_has_a_volume_or_waits_for_none_gets_none() -> None:
    assert volumes.volume_for(claim(volumeName="pv1")) is None
    manual = claim()
    manual["metadata"]["annotations"] = None
    assert volumes.volume_for(manual) is None


@pytest.mark.parametrize(
    ("driver", "policy", "phase", "expected"),
    [
        (volumes.DRIVER, "Delete", "Released", True),
        (volumes.DRIVER, "Delete", "Bound", False),
        (volumes.DRIVER, "Retain", "Released", False),
        ("csi.example.com", "Delete", "Released", False),
    ],
)
def test_only_released_volumes_of_the_sandbox_are_deleted(driver: str, policy: str, phase: str, expected: bool) -> None:
    spec = {"csi": {"driver": driver}, "persistentVolumeReclaimPolicy": policy}

    assert volumes.is_released({"metadata": {}, "spec": spec, "status": {"phase": phase}}) is expected


@pytest.mark.parametrize(
    ("behaviour", "expected"),
    [("", 0.0), ("crash", 0.0), ("pending", None), ("pending=30", 11.0), ("pending=19", 0.0), ("pending=5", 0.0)],
)
def test_an_object_is_pending_for_so_many_seconds_from_its_creation(behaviour: str, expected: float | None) -> None:
    made = {"metadata": {"creationTimestamp": "2026-03-01T12:00:00Z"}}

    assert pending_seconds(made, parse(behaviour) if behaviour else None, NOW) == expected


def test_an_address_is_never_given_twice() -> None:
    assert list(islice(free_addresses({"10.244.0.3"}), 2)) == ["10.244.0.2", "10.244.0.4"]
    assert next(free_addresses(f"10.244.0.{last}" for last in range(256))) == "10.244.1.0"


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({}, False),
        ({"conditions": None}, False),  # as the API server writes it at first
        ({"conditions": [{"type": "Established", "status": "False"}]}, False),
        ({"conditions": [{"type": "Established", "status": "True"}]}, True),
    ],
)
def test_a_definition_is_served_once_it_is_established(status: Resource, expected: bool) -> None:
    assert served({"status": status}) is expected


def test_the_controller_manager_runs_named_controllers_and_opens_no_port(tmp_path: Any) -> None:
    command = command_of(tmp_path / "kube-controller-manager", tmp_path / "kubeconfig")

    assert "--secure-port=0" in command
    assert f"--controllers={','.join(CONTROLLERS)}" in command
    assert len(set(CONTROLLERS)) == len(CONTROLLERS)
