"""An API server that refuses `shardSelector`, as another syntax of the feature would: sharing continues without it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bonny_dev.sandbox import Sandbox
from bonny_dev.testing.faults import Fault, FaultProxy, Predicate, ProxiedRequest, Respond
from tests.conftest import Start
from tests.support.processes import OperatorProcess
from tests.support.sharing import OBJECTS, Replicas, command, settings

REFUSED = Respond(
    500,
    json.dumps(
        {
            "kind": "Status",
            "apiVersion": "v1",
            "status": "Failure",
            "message": "invalid shard selector: expected shardRange",
            "code": 500,
        }
    ).encode(),
    "application/json",
)


def selects(request: ProxiedRequest) -> bool:
    return "shardSelector" in request.query


def watches_selected(request: ProxiedRequest) -> bool:
    """A watch alone: another server behind the same address may be the one that refuses."""
    return selects(request) and request.is_watch


@pytest.mark.parametrize("refused", [selects, watches_selected], ids=["all", "watches"])
def test_after_a_refused_selection_each_replica_receives_all_and_handles_its_part(
    refused: Predicate, sandbox: Sandbox, start_operator: Start, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Regression: with a server that refused watches alone, each watch failed for ever."""
    journal, name = tmp_path / "journal", f"refused-{request.node.callspec.id}"
    journal.touch()
    with FaultProxy(sandbox) as proxy:

        def start(pod: str) -> OperatorProcess:
            environment = {**settings(name, pod, journal), "TEST_TIMING": "4/2.5/0.5"}
            return start_operator(command(), kubeconfig=proxy.kubeconfig, **environment)

        fault = proxy.add(Fault(REFUSED, on=refused, times=None))
        shared = Replicas(name, sandbox, start, journal)
        request.addfinalizer(shared.remove)
        shared.apply("1")
        running = {pod: shared.start(pod).wait_ready() for pod in ("a", "b")}
        shared.wait_even("a", "b")
        shared.wait_handled("1")
        shared.apply("2")
        shared.wait_handled("2")

        assert len(shared.begun()) == OBJECTS
        assert shared.overlaps() == []
        assert 1 <= fault.hits <= 2 * len(running), "a stream sends the selection until it was refused"
        assert all(each.probe("/readyz")[0] == 200 for each in running.values())
        for each in running.values():
            assert each.stop()[0] == 0
