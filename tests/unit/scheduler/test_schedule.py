"""testing.schedule: where a scheduler would bind a pod, without a server."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bonny.filters import fits
from bonny.scheduler import Choice, Nodes, PodView, Scheduler
from bonny_dev import testing
from tests.support.scheduling import node, pod


class First(Scheduler):
    """Chooses the first node, whether the pod fits or not."""

    name = "first"
    check = fits

    def select_node_for_pod(self, pod: PodView, nodes: Nodes) -> Choice:
        return next(iter(nodes), None)


class Later(First):
    """Has to wait for something first."""

    async def select_node_for_pod(self, pod: PodView, nodes: Nodes) -> Choice:
        return {"metadata": {"name": "n2"}}


class Careless(First):
    """Does not want to be checked."""

    check = None


async def test_the_node_is_named() -> None:
    assert await testing.schedule(First, pod(), nodes=[node("n1"), node("n2")]) == "n1"
    assert await testing.schedule(Later, pod(), nodes=[node("n1"), node("n2")]) == "n2"
    assert await testing.schedule(First, pod(), nodes=[]) is None


async def test_a_choice_that_does_not_fit_is_not_bound_unless_the_scheduler_opted_out() -> None:
    there = pod("there", node="n1", cpu="3")
    small = [node("n1", cpu="4")]

    assert await testing.schedule(First, pod(cpu="1"), nodes=small, pods=[there]) == "n1"
    assert await testing.schedule(First, pod(cpu="2"), nodes=small, pods=[there]) is None
    assert await testing.schedule(Careless, pod(cpu="2"), nodes=small, pods=[there]) == "n1"


class Decorated(First):
    """A `def` that returns what would have to be awaited, as a decorator may make it."""

    def select_node_for_pod(self, pod: PodView, nodes: Nodes) -> Any:
        chosen: asyncio.Future[Choice] = asyncio.Future()
        chosen.set_result(next(iter(nodes), None))
        return chosen


async def test_only_a_method_with_async_is_awaited_as_in_an_operator() -> None:
    """Regression: what passed here failed in the cluster."""
    with pytest.raises(TypeError, match="not subscriptable"):
        await testing.schedule(Decorated, pod(), nodes=[node("n1")])


async def test_pods_of_one_name_in_two_namespaces_both_take_room() -> None:
    there = [pod("same", namespace=namespace, node="n1", cpu="2") for namespace in ("a", "b")]

    assert await testing.schedule(First, pod(cpu="1"), nodes=[node("n1", cpu="4")], pods=there) is None
    assert await testing.schedule(First, pod(cpu="1"), nodes=[node("n1", cpu="4")], pods=there[:1]) == "n1"


async def test_a_choice_that_is_not_one_of_the_nodes_is_named() -> None:
    with pytest.raises(AssertionError, match=r"^Later chose n2, which is not one of n1$"):
        await testing.schedule(Later, pod(), nodes=[node("n1")])
