"""The sentence that says why a pod has no node."""

from __future__ import annotations

from bonny.scheduler.choosing import verdict
from bonny.scheduler.nodes import Fit, Refusal

TAINTED = Fit("node(s) had untolerated taint(s)")


def test_reasons_are_counted_and_sorted_as_kube_scheduler_sorts_them() -> None:
    full = [Fit("Insufficient cpu", "Insufficient memory"), *[Fit("Insufficient cpu")] * 9]

    text = verdict([TAINTED, *full, TAINTED])

    assert text == (
        "0/12 nodes are available: 1 Insufficient memory, 10 Insufficient cpu, 2 node(s) had untolerated taint(s)."
    )


def test_what_is_the_pods_own_fault_is_said_once() -> None:
    assert verdict([Refusal("pod has resource claims")] * 2) == ("0/2 nodes are available: pod has resource claims.")


def test_where_there_are_no_nodes_that_is_said() -> None:
    assert verdict([]) == "no nodes available to schedule pods"
