"""The stop of a pod: it ends by itself before the kubelet kills it, whatever hangs, within the time of its manifest."""

from __future__ import annotations

import re
import secrets
import sys
from pathlib import Path

import pytest

from bonny import Deploy, Operator
from bonny_dev.manifest.deployment import deployment
from bonny_dev.sandbox import Sandbox
from bonny_dev.testing.faults import Fault, FaultProxy, Hold
from tests.conftest import Start
from tests.faults.scene import SLOW

GRACE = 1.0
SCRIPT = """
import sys, time
from bonny import Controller, Kind, Operator
from bonny.main import main

class Stuck(Controller):
    resource = Kind("v1", "ConfigMap", label_selector="of=NAME")
    timeout = 3600.0

    def reconcile(self, axn):
        axn.success_event(reason="Begun", message="never sent")
        print("stuck", flush=True)
        time.sleep(3600)

sys.exit(main(Operator(name="NAME", group="example.com", controllers=[Stuck], grace=1.0)))
"""


@SLOW
@pytest.mark.parametrize("leader_election", [True, False])
def test_a_stop_ends_in_time_although_a_handler_hangs_in_a_thread_and_no_request_is_answered(
    sandbox: Sandbox, start_operator: Start, tmp_path: Path, leader_election: bool
) -> None:
    name = f"stop-{secrets.token_hex(4)}"
    script = tmp_path / "stuck.py"
    script.write_text(SCRIPT.replace("NAME", name), encoding="utf-8")
    operator = Operator(name=name, group="example.com", deploy=Deploy(leader_election=leader_election), grace=GRACE)
    spec = deployment(operator, image="x:1", namespace="default")["spec"]["template"]["spec"]
    metadata = {"name": name, "namespace": "default", "labels": {"of": name}}
    sandbox.apply([{"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}])

    with FaultProxy(sandbox) as proxy:
        at_work = start_operator(
            [sys.executable, str(script)],
            kubeconfig=proxy.kubeconfig,
            BONNY_LEADER_ELECTION=str(leader_election).lower(),
            BONNY_POD_NAMESPACE="default",
        )
        sandbox.eventually(lambda: re.search("^stuck$", at_work.text, re.MULTILINE), within_seconds=20.0)
        hold = Hold()
        proxy.add(Fault(hold, times=None))
        code, seconds = at_work.stop()
        hold.until.set()

    assert (code, "Traceback" in at_work.text) == (0, False), at_work.text
    assert GRACE < seconds < spec["terminationGracePeriodSeconds"]
    print(f"{seconds:.1f} s of {spec['terminationGracePeriodSeconds']}")
