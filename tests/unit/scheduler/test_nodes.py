"""The sequence that a scheduler selects from."""

from __future__ import annotations

import random

import pytest

from bonny.errors import UsageError
from bonny.scheduler.nodes import Check, Fit, FunctionCheck, Nodes, Unchecked
from bonny.scheduler.views import NodeView, PodView
from tests.support.scheduling import cluster, item, names, node, pod_view


def test_it_is_a_sequence_of_all_nodes() -> None:
    known = Nodes(cluster(3), Unchecked())

    assert names(known) == ["n0", "n1", "n2"]
    assert (len(known), known[1].name, names(known[1:])) == (3, "n1", ["n1", "n2"])
    assert random.choice(known).name in {"n0", "n1", "n2"}


def test_a_node_that_comes_changes_or_goes_does_so_here() -> None:
    cache = cluster(2)
    known = Nodes(cache, Unchecked())

    cache.see_node("n2", item(node("n2")))
    cache.see_node("n0", None)
    cache.see_node("n1", item(node("n1", cpu="8"), version=2))

    assert names(known) == ["n1", "n2"]
    assert [view["status"]["allocatable"]["cpu"] for view in known] == ["8", "4"]
    assert known.named("n0") is None


def test_who_iterates_may_wait_while_nodes_come_and_go() -> None:
    cache = cluster(3)
    found = []
    for view in Nodes(cache, Unchecked()):
        found.append(view.name)
        cache.see_node("n2", None)

    assert found == ["n0", "n1", "n2"]


def test_nodes_of_others_that_come_and_go_fill_no_memory() -> None:
    cache = cluster(2)
    known = Nodes(cache, Unchecked(), member={"n0", "n1"}.__contains__)
    for number in range(2, 1000):
        cache.see_node(f"n{number}", item(node(f"n{number}")))
        cache.assume(pod_view(f"p{number}"), f"n{number}")
        cache.see_node(f"n{number}", None)

    assert known._changed == {"n0": 0, "n1": 0}
    assert names(known) == ["n0", "n1"]


def test_changes_are_told_once() -> None:
    cache = cluster(3)
    known = Nodes(cache, Unchecked())
    cache.see_node("n1", item(node("n1", cpu="8"), version=2))
    cache.assume(pod_view(), "n2")
    cache.assume(pod_view("p2"), "not-here")

    assert sorted(names(known.changed_since(0))) == ["n1", "n2"]
    assert known.changed_since(known.changes) == []


def test_a_function_is_a_check_and_says_which_nodes_fit() -> None:
    check = FunctionCheck(lambda pod, view: view.name != "n1", Fit("node(s) are n1"))
    known = Nodes(cluster(3), check)

    fitting = known.fitting(pod_view())

    assert names(fitting) == ["n0", "n2"]
    assert fitting.best(lambda pod, view: float(view.name[1])) is known.named("n2")
    assert check(pod_view(), known[1]).reasons == ("node(s) are n1",)


def test_where_no_node_passes_the_check_none_is_the_best() -> None:
    known = Nodes(cluster(3), FunctionCheck(lambda pod, view: False, Fit("no")))

    assert known.fitting(pod_view()).best(lambda pod, view: 0.0) is None


def test_a_scheduler_without_a_check_cannot_ask_which_nodes_fit() -> None:
    with pytest.raises(UsageError, match=r"nodes\.fitting needs the check .* set `check = fits`, from bonny\.filters"):
        Nodes(cluster(1), Unchecked()).fitting(pod_view())


def test_a_check_that_knows_nothing_more_lets_every_change_wake_every_pod() -> None:
    class Own(Check):
        def __call__(self, pod: PodView, node: NodeView) -> Fit:
            return Fit()

    known = Nodes(cluster(1), Own())

    assert Own().shape(pod_view("a")) == Own().shape(pod_view("b", labels={"a": "b"}))
    assert Own().may_fit(pod_view(), known[0])
    assert Own().epoch(known) == Own().epoch(Nodes(cluster(2), Own()))
