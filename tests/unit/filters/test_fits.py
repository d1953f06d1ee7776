"""Whether a pod may run on a node, and the words for why not."""

from __future__ import annotations

from typing import Any

import pytest

from bonny.filters import fits
from bonny.filters.fits import (
    fits_affinity,
    fits_ports,
    fits_resources,
    fits_schedulable,
    fits_shape,
    fits_taints,
)
from bonny.scheduler import Fit
from bonny.scheduler.assume import AssumeCache
from tests.support.scheduling import item, node, node_view, pod_view, requesting

NO_SCHEDULE = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
EXPLAINED = "node(s) didn't match Pod's node affinity/selector"


def affinity(*terms: dict[str, Any]) -> dict[str, Any]:
    required = {"nodeSelectorTerms": list(terms)}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}}


def labelled(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def named(operator: str, *values: str) -> dict[str, Any]:
    return {"matchFields": [{"key": "metadata.name", "operator": operator, "values": list(values)}]}


def test_a_small_pod_fits_an_empty_node() -> None:
    assert fits(pod_view(cpu="1", memory="1Gi"), node_view(cpu="1", memory="1Gi"))


def test_all_that_lacks_is_named_in_kube_schedulers_order() -> None:
    asked = {"memory": "9Gi", "cpu": "5", "example.com/gpu": "1", "ephemeral-storage": "1Gi"}
    pod = pod_view(containers=[requesting(asked)])

    fit = fits_resources(pod, node_view(holds=[pod_view("other")], pods="1"))

    lacking = ("cpu", "memory", "ephemeral-storage", "example.com/gpu")
    assert fit.reasons == ("Too many pods", *(f"Insufficient {name}" for name in lacking))
    assert not fit


def test_pods_that_are_there_take_room_to_the_last_thousandth() -> None:
    at_work = node_view(holds=[pod_view("other", cpu="3999m")])

    assert fits_resources(pod_view(cpu="1m"), at_work)
    assert not fits_resources(pod_view(cpu="2m"), at_work)


def test_a_pod_without_requests_needs_a_place_only() -> None:
    full = node_view(cpu="1", holds=[pod_view("other", cpu="1")])

    assert fits_resources(pod_view(), full)


def test_a_node_that_names_no_number_of_pods_takes_none() -> None:
    assert fits_resources(pod_view(), node_view(pods="0")).reasons == ("Too many pods",)


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        ({"key": "gpu", "operator": "Equal", "value": "yes", "effect": "NoSchedule"}, True),
        ({"key": "gpu", "value": "yes"}, True),
        ({"key": "gpu", "operator": "Exists"}, True),
        ({"operator": "Exists"}, True),
        ({"operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "gpu", "value": "no"}, False),
        ({"key": "cpu", "operator": "Exists"}, False),
        ({"key": "gpu", "operator": "Gt", "value": "1"}, False),
    ],
)
def test_a_taint_keeps_away_who_does_not_tolerate_it(toleration: dict[str, str], tolerated: bool) -> None:
    fit = fits_taints(pod_view(tolerations=[toleration]), node_view(taints=[NO_SCHEDULE]))

    assert fit.reasons == (() if tolerated else ("node(s) had untolerated taint(s)",))


def test_only_taints_that_keep_away_are_looked_at() -> None:
    pod = pod_view()

    assert fits_taints(pod, node_view(taints=[{**NO_SCHEDULE, "effect": "PreferNoSchedule"}]))
    assert not fits_taints(pod, node_view(taints=[{**NO_SCHEDULE, "effect": "NoExecute"}]))


def test_a_cordoned_node_takes_only_who_tolerates_that() -> None:
    cordoned = node_view(unschedulable=True)
    tolerant = pod_view(tolerations=[{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}])

    assert fits_schedulable(pod_view(), cordoned).reasons == ("node(s) were unschedulable",)
    assert fits_schedulable(tolerant, cordoned)


def test_the_node_has_every_label_of_the_selector() -> None:
    pod = pod_view(nodeSelector={"zone": "a", "disk": "ssd"})

    assert fits_affinity(pod, node_view(labels={"zone": "a", "disk": "ssd"}))
    assert fits_affinity(pod, node_view(labels={"zone": "a"})).reasons == (EXPLAINED,)


def test_one_term_of_the_affinity_is_enough_and_an_empty_one_is_none() -> None:
    in_a, in_b = node_view(labels={"zone": "a"}), node_view(labels={"zone": "b"})
    either = pod_view(**affinity(labelled("zone", "In", "x"), labelled("zone", "In", "a")))

    assert fits_affinity(either, in_a)
    assert not fits_affinity(either, in_b)
    assert not fits_affinity(pod_view(**affinity({})), in_a)


def test_expressions_and_fields_of_a_term_hold_together() -> None:
    pod = pod_view(**affinity({**labelled("zone", "In", "a"), **named("NotIn", "n1")}))

    assert fits_affinity(pod, node_view("n2", labels={"zone": "a"}))
    assert not fits_affinity(pod, node_view("n1", labels={"zone": "a"}))
    assert not fits_affinity(pod, node_view("n2", labels={"zone": "b"}))


def test_nodes_that_the_affinity_does_not_name_are_told_apart_as_kube_scheduler_does() -> None:
    pod = pod_view(**affinity(named("In", "n1")))

    assert fits_shape(pod, node_view("n1"))
    assert fits_shape(pod, node_view("n2")).reasons == ("node(s) didn't satisfy plugin(s) [NodeAffinity]",)


def test_names_that_contradict_each_other_are_the_pods_own_fault() -> None:
    both = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]} for name in ("n1", "n2")]}

    assert fits_shape(pod_view(**affinity(both)), node_view("n1")).reasons == ("pod affinity terms conflict",)


def ports(*given: tuple[str, str, int]) -> dict[str, Any]:
    listed = [
        {"containerPort": 80, "hostPort": number, "protocol": protocol} | ({"hostIP": address} if address else {})
        for address, protocol, number in given
    ]
    return {"containers": [requesting({}, ports=listed)]}


@pytest.mark.parametrize(
    ("wanted", "taken", "fit"),
    [
        (("", "TCP", 80), ("", "TCP", 80), False),
        (("", "TCP", 80), ("", "UDP", 80), True),
        (("", "TCP", 80), ("", "TCP", 81), True),
        (("10.0.0.1", "TCP", 80), ("10.0.0.2", "TCP", 80), True),
        (("10.0.0.1", "TCP", 80), ("10.0.0.1", "TCP", 80), False),
        (("10.0.0.1", "TCP", 80), ("0.0.0.0", "TCP", 80), False),
        (("0.0.0.0", "TCP", 80), ("10.0.0.1", "TCP", 80), False),
        (("::", "TCP", 80), ("10.0.0.1", "TCP", 80), True),
    ],
)
def test_a_host_port_is_taken_once_for_each_address(
    wanted: tuple[str, str, int], taken: tuple[str, str, int], fit: bool
) -> None:
    found = fits_ports(pod_view(**ports(wanted)), node_view(holds=[pod_view("other", **ports(taken))]))

    assert found.reasons == (() if fit else ("node(s) didn't have free ports for the requested pod ports",))


def test_the_first_filter_that_fails_gives_the_reasons() -> None:
    pod = pod_view(cpu="9", nodeSelector={"zone": "a"})

    assert fits(pod, node_view(unschedulable=True, taints=[NO_SCHEDULE])).reasons == ("node(s) were unschedulable",)
    assert fits(pod, node_view(taints=[NO_SCHEDULE])).reasons == ("node(s) had untolerated taint(s)",)
    assert fits(pod, node_view()).reasons == (EXPLAINED,)
    assert fits(pod, node_view(labels={"zone": "a"})).reasons == ("Insufficient cpu",)


def test_a_pod_that_asks_for_what_is_not_honoured_fits_nowhere() -> None:
    pod = pod_view(volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}])

    assert "does not honour" in fits(pod, node_view()).reasons[0]


# --- pods that run and want others away -------------------------------------------------------------------------------

LONER: dict[str, Any] = {
    "topologyKey": "zone",
    "labelSelector": {"matchLabels": {"app": "noisy"}},
}


def loner(**term: Any) -> dict[str, Any]:
    required = [{**LONER, **term}]
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}}


def zones(**term: Any) -> AssumeCache:
    """Two nodes in zone a, one in b; on the first one a pod that wants no noise in its zone."""
    cache = AssumeCache()
    for name, zone in (("n1", "a"), ("n2", "a"), ("n3", "b")):
        cache.see_node(name, item(node(name, labels={"zone": zone})))
    cache.assume(pod_view("loner", **loner(**term)), "n1")
    return cache


def homes(cache: AssumeCache, **pod: Any) -> list[str]:
    view = pod_view(**pod)
    return [name for name, known in cache.nodes.items() if fits(view, known)]


def test_a_pod_that_runs_keeps_others_away_from_its_whole_domain() -> None:
    cache = zones()

    assert homes(cache, labels={"app": "noisy"}) == ["n3"]
    assert homes(cache, labels={"app": "quiet"}) == ["n1", "n2", "n3"]
    fit: Fit = fits(pod_view(labels={"app": "noisy"}), cache.nodes["n2"])
    assert fit.reasons == ("node(s) didn't satisfy existing pods anti-affinity rules",)


def test_it_means_pods_of_its_own_namespace_unless_it_names_others() -> None:
    noisy: dict[str, Any] = {"labels": {"app": "noisy"}}

    assert homes(zones(), namespace="other", **noisy) == ["n1", "n2", "n3"]
    assert homes(zones(namespaces=["other"]), namespace="other", **noisy) == ["n3"]
    assert homes(zones(namespaces=["other"]), **noisy) == ["n1", "n2", "n3"]
    # Labels of namespaces are not followed, so it may be any: better wait than be misplaced.
    assert homes(zones(namespaceSelector={}), namespace="other", **noisy) == ["n3"]
    assert homes(zones(labelSelector=None), **noisy) == ["n1", "n2", "n3"]


def test_they_come_back_when_it_is_gone() -> None:
    cache = zones()
    view = pod_view(labels={"app": "noisy"})
    assert not fits(view, cache.nodes["n1"])

    cache.pod_gone("uid-loner")

    assert fits(view, cache.nodes["n1"])
