"""The sentence that says why a pod has no node."""

from __future__ import annotations

from bonny.scheduler.choosing import verdict
from bonny.scheduler.fits import Fit

TAINTED = Fit("node(s) had untolerated taint(s)")


def test_reasons_are_counted_and_sorted_as_kube_scheduler_sorts_them() -> None:
    full = [Fit("Insufficient cpu", "Insufficient memory"), *[Fit("Insufficient cpu")] * 9]

    text = verdict([TAINTED, *full, TAINTED], nodes=12)

    assert text == (
        "0/12 nodes are available: 1 Insufficient memory, 10 Insufficient cpu, 2 node(s) had untolerated taint(s)."
    )


def test_what_is_the_pods_own_fault_is_said_once() -> None:
    assert verdict([TAINTED], nodes=1, refusal="pod has resource claims") == (
        "0/1 nodes are available: pod has resource claims."
    )


def test_where_there_are_no_nodes_that_is_said() -> None:
    assert verdict([], nodes=0) == "no nodes available to schedule pods"
