"""What a pod asks of a node."""

from __future__ import annotations

from typing import Any

import pytest

from bonny.filters import requests
from bonny.filters.demand import demand
from bonny.resource import Resource
from tests.support.scheduling import pod_view, requesting


def container(cpu: str, memory: str = "", **fields: Any) -> Resource:
    return requesting({"cpu": cpu} | ({"memory": memory} if memory else {}), **fields)


def sidecar(cpu: str, **fields: Any) -> Resource:
    return container(cpu, restartPolicy="Always", **fields)


def test_containers_run_together() -> None:
    pod = pod_view(containers=[container("100m", "1Gi"), container("1.5", "64Mi")])

    assert requests(pod) == {"cpu": 1600, "memory": 2**30 + 2**26}


def test_init_containers_run_one_after_the_other_and_the_larger_counts() -> None:
    pod = pod_view(initContainers=[container("2"), container("3")], containers=[container("1", "1Gi")])

    assert requests(pod) == {"cpu": 3000, "memory": 2**30}


def test_sidecars_run_with_what_comes_after_them() -> None:
    pod = pod_view(initContainers=[container("5"), sidecar("1"), container("5")], containers=[container("2")])

    assert requests(pod) == {"cpu": 6000}


def test_sidecars_run_with_the_containers() -> None:
    pod = pod_view(initContainers=[sidecar("1"), sidecar("2")], containers=[container("2")])

    assert requests(pod) == {"cpu": 5000}


def test_overhead_comes_on_top() -> None:
    pod = pod_view(cpu="1", overhead={"cpu": "250m", "memory": "120Mi"})

    assert requests(pod) == {"cpu": 1250, "memory": 120 * 2**20}


def test_requests_of_the_pod_take_the_place_of_its_containers() -> None:
    pod = pod_view(
        containers=[container("1", "1Gi"), requesting({"example.com/gpu": "1"})],
        resources={"requests": {"cpu": "500m", "hugepages-2Mi": "4Mi"}},
        overhead={"cpu": "100m"},
    )

    assert requests(pod) == {"cpu": 600, "memory": 2**30, "example.com/gpu": 1, "hugepages-2Mi": 2**22}


def test_requests_are_in_the_order_in_which_kube_scheduler_names_them() -> None:
    asked = {"b.example.com/x": "1", "a.example.com/x": "1", "ephemeral-storage": "1", "memory": "1", "cpu": "1"}
    pod = pod_view(containers=[requesting(asked)])

    names = [name for name, _ in demand(pod).requests]
    assert names == ["cpu", "memory", "ephemeral-storage", "a.example.com/x", "b.example.com/x"]


def test_a_container_without_requests_counts_as_a_small_one_for_scores_only() -> None:
    pod = pod_view(containers=[requesting({}), requesting({"cpu": "0"}), container("1", "1Gi")])

    assert requests(pod) == {"cpu": 1000, "memory": 2**30}
    assert demand(pod).scored == (1100, 2 * 200 * 2**20 + 2**30)


def resized(*, infeasible: bool = False) -> dict[str, Any]:
    found = {"name": "main", "resources": {"requests": {"cpu": "3"}}, "allocatedResources": {"cpu": "2"}}
    pending = {"type": "PodResizePending", "status": "True", "reason": "Infeasible" if infeasible else "Deferred"}
    return {"containerStatuses": [found], "conditions": [pending]}


def test_while_a_resize_is_under_way_the_largest_amount_counts() -> None:
    assert requests(pod_view(cpu="1", status=resized())) == {"cpu": 3000}
    assert requests(pod_view(cpu="4", status=resized())) == {"cpu": 4000}


def test_what_an_infeasible_resize_wants_does_not_count() -> None:
    assert requests(pod_view(cpu="4", status=resized(infeasible=True))) == {"cpu": 3000}


def test_host_ports_are_those_of_containers_and_sidecars() -> None:
    pod = pod_view(
        initContainers=[
            container("1", ports=[{"containerPort": 1, "hostPort": 1}]),
            sidecar("1", ports=[{"containerPort": 2, "hostPort": 2, "protocol": "UDP", "hostIP": "10.0.0.1"}]),
        ],
        containers=[
            container("1", ports=[{"containerPort": 3, "hostPort": 3, "protocol": "TCP"}, {"containerPort": 4}])
        ],
    )

    assert demand(pod).ports == (("10.0.0.1", "UDP", 2), ("0.0.0.0", "TCP", 3))


def test_pods_of_one_template_have_one_demand() -> None:
    volumes = [[{"name": f"kube-api-access-{number}", "projected": {"sources": []}}] for number in range(2)]
    first, second = (
        pod_view(f"p{number}", cpu="1", priority=number, volumes=volumes[number], node=f"n{number}")
        for number in range(2)
    )

    assert demand(first) is demand(second)


TERM = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "x"}}}


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        ({"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]}}}, "pod affinity"),
        (
            {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]}}},
            "anti-affinity",
        ),
        ({"topologySpreadConstraints": [{"whenUnsatisfiable": "DoNotSchedule"}]}, "topology spread"),
        ({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}, "volumes"),
        ({"volumes": [{"name": "v", "somethingNew": {}}]}, "volumes"),
        ({"resourceClaims": [{"name": "gpu", "resourceClaimName": "gpu"}]}, "resource claims"),
        ({"schedulingGroup": {"podGroupName": "g"}}, "scheduling group"),
        ({"hostNetwork": True, "hostUsers": False}, "user namespaces"),
        ({"containers": [container("1", restartPolicyRules=[{"action": "RestartAllContainers"}])]}, "restarts"),
    ],
)
def test_a_pod_that_asks_for_what_is_not_honoured_says_so(asked: dict[str, Any], named: str) -> None:
    assert named in demand(pod_view(**asked)).refusal


@pytest.mark.parametrize(
    "asked",
    [
        {"affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1}]}}},
        {"topologySpreadConstraints": [{"whenUnsatisfiable": "ScheduleAnyway"}]},
        {
            "volumes": [
                {"name": "a", "emptyDir": {}},
                {"name": "b", "configMap": {"name": "c"}},
                {"name": "c", "secret": {}},
            ]
        },
        {"hostNetwork": True},
    ],
)
def test_what_is_only_preferred_or_binds_to_no_node_is_no_reason_to_wait(asked: dict[str, Any]) -> None:
    assert demand(pod_view(**asked)).refusal == ""
