"""Event loops: a whole operator works on uvloop as on asyncio's own loop.

The other tests start operators on asyncio's loop; `TEST_EVENT_LOOP=uvloop` starts all of them on uvloop.
"""

from __future__ import annotations

import pytest

from bonny_dev.crd.definition import crds
from bonny_dev.sandbox import Sandbox
from tests.conftest import Start
from tests.support.handwritten import operator
from tests.support.loops import LOOPS
from tests.support.processes import handwritten


@pytest.mark.parametrize("loop", LOOPS)
def test_an_operator_leads_reconciles_answers_and_stops(loop: str, sandbox: Sandbox, start_operator: Start) -> None:
    sandbox.apply(crds(operator.crds, operator.group))
    at_work = start_operator(handwritten(), BONNY_EVENT_LOOP=loop, BONNY_LEADER_ELECTION="true").wait_ready()
    widget = {"apiVersion": f"{operator.group}/v1", "kind": "Widget", "spec": {"size": 1}}
    sandbox.apply([{**widget, "metadata": {"name": f"on-{loop}", "namespace": "default"}}])

    sandbox.eventually(lambda: sandbox.get("v1", "ConfigMap", f"on-{loop}"))
    assert "leading" in at_work.probe("/readyz")[1]
    assert at_work.probe("/metrics")[0] == 200
    assert at_work.stop()[0] == 0
    assert at_work.lines("stopped")
    sandbox.delete(f"{operator.group}/v1", "Widget", f"on-{loop}")
