"""The scheduler's bench: its nodes and pods, and what makes a run count; no contestant is started."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bench.scheduler import world
from bench.scheduler.__main__ import SUITE
from bench.scheduler.kube_scheduler import configuration
from bench.scheduler.workloads import Bound
from bonny.filters.demand import demand
from bonny.resource import Resource
from bonny.scheduler.views import PodView
from tests.support.scheduling import item


def pod(number: int) -> Resource:
    made: Resource = json.loads(world.pod(number))
    return made | {"metadata": made["metadata"] | {"namespace": "default"}}


def placed(name: str, node: str | None, *, cpu: str = "1", memory: str = "1Gi") -> dict[str, Any]:
    spec: dict[str, Any] = {"containers": [{"resources": {"requests": {"cpu": cpu, "memory": memory}}}]}
    return {"metadata": {"name": name}, "spec": spec | ({"nodeName": node} if node else {})}


def test_pods_have_as_many_shapes_as_is_said_and_some_ask_for_more_than_resources() -> None:
    demands = [demand(PodView(item(pod(number)))) for number in range(2 * world.SHAPES)]

    assert len(set(demands)) == world.SHAPES >= 50
    for field in ("ports", "tolerations", "selector", "terms"):
        assert any(getattr(each, field) for each in demands), field
    assert len({each.constraints for each in demands}) > 5
    assert not any(each.refusal for each in demands)


def test_nodes_are_in_zones_and_some_are_kept_for_batch_work() -> None:
    nodes = [world.node(number) for number in range(100)]

    assert len({node["metadata"]["labels"][world.ZONE] for node in nodes}) == world.ZONES
    assert sum(bool(node["spec"].get("taints")) for node in nodes) == 10


def test_the_fullest_node_is_told_where_every_pod_has_one() -> None:
    pods = [placed("p1", "n1", cpu="500m"), placed("p2", "n1", cpu="1500m"), placed("p3", "n2")]

    assert world.check(pods, wanted=3) == 2_000 / world.CPU_MILLIS


@pytest.mark.parametrize(
    ("pods", "said"),
    [
        ([placed("p1", "n1"), placed("p2", None)], "1 pods have a node, of 2"),
        ([placed("p1", "n1", cpu="5"), placed("p2", "n1", cpu="4")], "n1 is overcommitted: 9000 of 8000"),
        ([placed("p1", "n1", memory="20Gi"), placed("p2", "n1", memory="20Gi")], "n1 is overcommitted"),
    ],
    ids=["without-node", "cpu", "memory"],
)
def test_a_run_that_left_a_pod_or_overcommitted_a_node_does_not_count(pods: list[dict[str, Any]], said: str) -> None:
    with pytest.raises(RuntimeError, match=said):
        world.check(pods, wanted=2)


def test_a_pod_is_bound_when_a_watch_first_shows_its_node() -> None:
    bound = Bound(["p1", "p2"])

    assert not bound("ADDED", placed("p1", None))
    assert not bound("MODIFIED", placed("p1", "n1"))
    assert not bound("MODIFIED", placed("stranger", "n1"))
    first = bound.at["p1"]
    assert not bound("MODIFIED", placed("p1", "n1"))
    assert bound("MODIFIED", placed("p2", "n2"))
    assert bound.at["p1"] == first
    assert set(bound.at) == {"p1", "p2"}


def test_kube_scheduler_has_its_defaults_but_for_the_clients_limits_and_its_name() -> None:
    stock, lean = (configuration("kubeconfig", lean=lean) for lean in (False, True))

    assert stock["clientConnection"]["qps"] >= 1_000
    assert stock["profiles"] == [{"schedulerName": world.NAME}]
    assert lean["profiles"][0]["plugins"]["score"]["disabled"]
    assert {**lean, "profiles": 0} == {**stock, "profiles": 0}


def test_its_sizes_are_options(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        SUITE.main(["--help"])

    told = capsys.readouterr().out
    assert "--nodes" in told
    assert "--rate" in told
