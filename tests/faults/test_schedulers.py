"""Rows B: bindings that are lost on their way, and decisions on what is not seen (docs/reliability.md)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from bonny.filters import fits, free, least_allocated
from bonny.scheduler import Scheduler
from bonny.scheduler.nodes import Nodes
from bonny.scheduler.scheduler import Choice
from bonny.scheduler.views import PodView
from bonny_dev.sandbox import Sandbox
from bonny_dev.testing.faults import (
    CommitThenDrop,
    Drop,
    Effect,
    Fault,
    FaultProxy,
    ProxiedRequest,
    Respond,
    is_list,
    is_watch,
)
from tests.faults.scene import SLOW, compact, refused
from tests.support.schedulers import NODES, AtWork, add_nodes, add_pods, condition, placed, remove_all
from tests.support.scheduling import node, pod

SEEN_SECONDS = 60.0
CROWD = 40


class Even(Scheduler):
    """Each pod to the emptiest node into which it fits."""

    name = "even"
    check = fits

    def select_node_for_pod(self, pod: PodView, nodes: Nodes) -> Choice:
        return nodes.fitting(pod).best(least_allocated)


@pytest.fixture
def empty(sandbox: Sandbox) -> Iterator[None]:
    """What is made meanwhile is removed afterwards."""
    yield
    remove_all(sandbox)


def crowd(count: int = CROWD) -> list[str]:
    return [f"p{number}" for number in range(count)]


def add_crowd(sandbox: Sandbox, count: int = CROWD) -> None:
    add_pods(sandbox, [pod(name, scheduler="even", cpu="1") for name in crowd(count)])


def all_placed_and_none_too_many(sandbox: Sandbox, at_most: int, count: int = CROWD) -> None:
    """Every pod has a node, and no node has more than it has room for."""
    found = sandbox.eventually(
        lambda: found if len(found := placed(sandbox)) == count else None, within_seconds=SEEN_SECONDS
    )
    assert set(found) == set(crowd(count))
    assert max(Counter(found.values()).values()) <= at_most


def of_binding(request: ProxiedRequest) -> bool:
    return request.method == "POST" and request.path.endswith("/binding")


def of_nodes(request: ProxiedRequest) -> bool:
    return request.path == NODES and (is_list(request) or is_watch(request))


def fetches(at_work: AtWork, of: str) -> list[str]:
    """What was told of the stream of nodes or pods, in order."""
    name = f"bonny.scheduler.{of}.fetch."
    return [told.removeprefix(name) for told, _, _ in at_work.told if told.startswith(name)]


LOST = [
    pytest.param(CommitThenDrop(), id="stored, and the answer lost"),
    pytest.param(Drop(), id="never arrived"),
    pytest.param(refused(429, "TooManyRequests", "later"), id="throttled"),
    pytest.param(refused(500, "InternalError", "etcdserver: request timed out"), id="failed", marks=SLOW),
    pytest.param(Respond(404, b"404 page not found\n"), id="refused by an API server that starts", marks=SLOW),
    pytest.param(Respond(502, b"<html>", "text/html"), id="answered by a proxy", marks=SLOW),
]


@pytest.mark.parametrize("effect", LOST)
def test_b1_bindings_that_fail_are_made_good_and_leak_no_room(sandbox: Sandbox, empty: None, effect: Effect) -> None:
    """The nodes have room for exactly these pods: one place that leaks, or counts twice, is missed at the end."""
    add_nodes(sandbox, [node(f"n{number}", cpu="10") for number in range(CROWD // 10)])
    seen = iter(range(10_000))
    with FaultProxy(sandbox) as proxy, AtWork(sandbox, Even(), kubeconfig=proxy.kubeconfig) as at_work:
        fault = proxy.add(Fault(effect, on=lambda request: of_binding(request) and next(seen) % 3 == 0, times=CROWD))
        add_crowd(sandbox)

        all_placed_and_none_too_many(sandbox, at_most=10)
        (server,) = at_work.servers
        sandbox.eventually(lambda: not sum(at_work.do(server.statistics).values()))
        left = at_work.do(lambda: {known.name: free(known)["cpu"] for known in server.nodes})

    assert fault.hits > 0
    if isinstance(effect, Drop | CommitThenDrop):
        assert "bonny.scheduler.binding.failed" in at_work.names_told()
    assert set(left.values()) == {0}
    stored = [request for request in proxy.requests if of_binding(request) and request.status == 201]
    assert len(stored) <= CROWD


@pytest.mark.slow  # B9 in test_scheduler_replicas does this with two replicas
def test_b2_an_api_server_that_is_killed_at_full_load_loses_no_pod() -> None:
    with Sandbox() as own:
        add_nodes(own, [node(f"n{number}", cpu="20") for number in range(10)])
        with AtWork(own, Even()) as at_work, ThreadPoolExecutor() as pool:
            creating = pool.submit(_create_all, own, 200)
            for already in (20, 80):
                own.eventually(lambda already=already: len(placed(own)) >= already, within_seconds=SEEN_SECONDS)
                own.apiserver.kill()
                own.apiserver.start()
            creating.result(SEEN_SECONDS)

            all_placed_and_none_too_many(own, at_most=20, count=200)
            (server,) = at_work.servers
            own.eventually(lambda: not sum(at_work.do(server.statistics).values()), within_seconds=SEEN_SECONDS)
            left = at_work.do(lambda: {known.name: free(known)["cpu"] for known in server.nodes})
    assert set(left.values()) == {0}


def _create_all(sandbox: Sandbox, count: int) -> None:
    """Create pods through restarts of the API server."""
    for name in crowd(count):
        sandbox.eventually(lambda name=name: _created(sandbox, name), within_seconds=SEEN_SECONDS)


def _created(sandbox: Sandbox, name: str) -> bool:
    made = pod(name, scheduler="even", cpu="1")
    return sandbox.request("POST", "/api/v1/namespaces/default/pods", made).status in (201, 409)


def test_b3_nothing_is_bound_to_nodes_that_were_deleted_during_an_outage(sandbox: Sandbox, empty: None) -> None:
    add_nodes(sandbox, [node(f"n{number}") for number in range(1, 4)])
    with FaultProxy(sandbox) as proxy, AtWork(sandbox, Even(), kubeconfig=proxy.kubeconfig) as at_work:
        (server,) = at_work.servers
        sandbox.eventually(lambda: at_work.do(lambda: len(server.nodes)) == 3)
        down = proxy.add(Fault(Respond(503), on=of_nodes, times=None))
        proxy.cut_all()
        sandbox.eventually(lambda: down.hits >= 1)
        for name in ("n1", "n2"):
            sandbox.delete("v1", "Node", name)
        compact(sandbox)
        add_pods(sandbox, [pod(f"p{number}", scheduler="even") for number in range(10)])
        sandbox.eventually(lambda: down.hits >= 3, within_seconds=SEEN_SECONDS)
        assert placed(sandbox) == {}
        proxy.remove(down)

        found = sandbox.eventually(
            lambda: found if len(found := placed(sandbox)) == 10 else None, within_seconds=SEEN_SECONDS
        )
    assert set(found.values()) == {"n3"}
    assert fetches(at_work, "nodes") == ["succeeded", "failed", "succeeded"]


def test_b4_room_that_became_free_during_an_outage_is_found(sandbox: Sandbox, empty: None) -> None:
    add_nodes(sandbox, [node("n1", cpu="1")])
    with FaultProxy(sandbox) as proxy, AtWork(sandbox, Even(), kubeconfig=proxy.kubeconfig) as at_work:
        add_pods(sandbox, [pod("first", scheduler="even", cpu="1"), pod("second", scheduler="even", cpu="1")])
        (there,) = sandbox.eventually(lambda: placed(sandbox))
        other = "second" if there == "first" else "first"
        sandbox.eventually(lambda: condition(sandbox, other)["status"] == "False")
        down = proxy.add(Fault(Respond(503), on=lambda request: request.path == "/api/v1/pods", times=None))
        proxy.cut_all()
        sandbox.eventually(lambda: down.hits >= 1)
        sandbox.request("DELETE", f"/api/v1/namespaces/default/pods/{there}?gracePeriodSeconds=0")
        compact(sandbox)
        proxy.remove(down)

        sandbox.eventually(lambda: placed(sandbox) == {other: "n1"}, within_seconds=SEEN_SECONDS)
    assert fetches(at_work, "pods") == ["succeeded", "failed", "succeeded"]


def test_b5_of_two_replicas_that_work_at_once_one_binds_each_pod(sandbox: Sandbox, empty: None) -> None:
    """Leader election prevents it; should it fail, the API server still gives each pod to one of them."""
    add_nodes(sandbox, [node(f"n{number}", cpu="100") for number in range(4)])
    with AtWork(sandbox, Even()) as first, AtWork(sandbox, Even()) as second:
        add_crowd(sandbox)
        all_placed_and_none_too_many(sandbox, at_most=100)
        for at_work in (first, second):
            (server,) = at_work.servers
            sandbox.eventually(lambda a=at_work, s=server: not sum(a.do(s.statistics).values()))
            used = at_work.do(lambda s=server: sum(len(known.pods) for known in s.nodes))
            assert used == CROWD, "a replica counts a pod twice, or not at all"


def test_b6_a_replica_that_takes_over_forgets_no_pod(sandbox: Sandbox, empty: None) -> None:
    add_nodes(sandbox, [node(f"n{number}", cpu="10") for number in range(CROWD // 10)])
    with AtWork(sandbox, Even()):
        add_crowd(sandbox)
        sandbox.eventually(lambda: placed(sandbox))
    with AtWork(sandbox, Even()):
        all_placed_and_none_too_many(sandbox, at_most=10)
