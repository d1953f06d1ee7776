"""How well a node suits a pod; the numbers are those of kube-scheduler, but for its rounding."""

from __future__ import annotations

from typing import Any

import pytest

from bonny.filters import balanced, fits, least_allocated, most_allocated, spread
from bonny.scheduler.assume import AssumeCache
from bonny.scheduler.nodes import Nodes
from bonny.scheduler.views import PodView
from tests.support.scheduling import item, node, node_view, pod, pod_view

HALF = {"cpu": "1", "memory": "2Gi"}


def test_the_share_that_stays_free_and_the_share_that_is_taken() -> None:
    """As in kube-scheduler's own tests: 3 of 4 cores and 5 of 10 GiB."""
    at_work = node_view(cpu="4", memory="10Gi", holds=[pod_view("other", cpu="2", memory="4Gi")])
    one = pod_view(cpu="1", memory="1Gi")

    assert least_allocated(one, at_work) == pytest.approx((25 + 50) / 2)
    assert most_allocated(one, at_work) == pytest.approx((75 + 50) / 2)


def test_pods_without_requests_count_as_small_ones() -> None:
    """Regression in kube-scheduler (kubernetes#11713): all of them went to one node."""
    empty, crowded = node_view(), node_view(holds=[pod_view(f"p{number}") for number in range(5)])

    assert least_allocated(pod_view(), empty) > least_allocated(pod_view(), crowded)


def test_more_than_there_is_does_not_count_below_zero_or_above_a_hundred() -> None:
    full = node_view(cpu="1", memory="1Gi", holds=[pod_view("other", cpu="1", memory="1Gi")])

    assert least_allocated(pod_view(), full) == 0.0
    assert most_allocated(pod_view(), full) == 100.0


def test_a_resource_that_the_node_does_not_have_is_left_out() -> None:
    assert least_allocated(pod_view(cpu="1"), node_view(cpu="4", memory="0")) == pytest.approx(75)
    assert least_allocated(pod_view(cpu="1"), node_view(cpu="0", memory="0")) == 0.0


def test_a_node_whose_use_becomes_more_even_is_the_better_one() -> None:
    uneven = node_view(cpu="4", memory="8Gi", holds=[pod_view("other", cpu="2")])

    assert balanced(pod_view(memory="4Gi"), uneven) == pytest.approx(100 * (0.75 + 0.25 / 2))
    assert balanced(pod_view(cpu="2"), uneven) == pytest.approx(100 * (0.75 - 0.25 / 2))
    assert balanced(pod_view(cpu="1", memory="2Gi"), uneven) == pytest.approx(75)
    assert balanced(pod_view(), uneven) == 0.0


def zones(*where: tuple[str, PodView]) -> Nodes:
    cache = AssumeCache()
    for name, zone in (("a1", "a"), ("a2", "a"), ("b1", "b"), ("none", "")):
        cache.see_node(name, item(node(name, labels={"zone": zone} if zone else {})))
    for name, there in where:
        cache.assume(there, name)
    return Nodes(cache, fits)


def of_set(name: str, **metadata: Any) -> PodView:
    resource = pod(name)
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "set", "controller": True}
    resource["metadata"] |= {"ownerReferences": [owner], **metadata}
    return PodView(item(resource))


def test_pods_of_one_controller_are_spread_over_the_values_of_a_label() -> None:
    known = zones(("a1", of_set("w1")), ("b1", of_set("w2")), ("a2", of_set("w3")), ("b1", pod_view("other")))

    key = spread(of_set("w4"), known, "zone")

    assert max(known, key=key).name == "b1"
    assert [key(view) for view in known] == [-2.0, -2.0, -1.0, float("-inf")]


def test_pods_without_a_controller_are_alike_by_their_labels() -> None:
    alike = {"labels": {"app": "web"}}
    known = zones(("a1", pod_view("w1", **alike)), ("b1", pod_view("w2", namespace="other", **alike)))

    assert max(known, key=spread(pod_view("w3", **alike), known, "zone")).name == "b1"
