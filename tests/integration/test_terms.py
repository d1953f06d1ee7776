"""Terms of whole operators: what becomes of their work at the stop, and when the lease is lost."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from bonny import Operator, PeriodicTask, TaskRun
from bonny.core.lease import LeaseTiming
from bonny.main import CALLED_EXIT_CODE, LIFESPAN_EXIT_CODE
from bonny_dev.sandbox import Sandbox
from tests.conftest import Start
from tests.support.serving import Serving, serving

STUBBORN: Final = Path(__file__).parents[1] / "support" / "stubborn.py"
GRACE_SECONDS: Final = 1.0
# What a pod is given after the grace period: `manifest.deployment`.
STOP_SECONDS: Final = 4.5
LEASES: Final = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
# For a lease that is lost: half of this is more than it takes to stand down, and no watchdog has come by then.
TIMING: Final = LeaseTiming(lease_duration=20, renew_deadline=10.0, retry_period=0.4)


def replica(sandbox: Sandbox, *parts: PeriodicTask) -> Any:
    operator = Operator(name="terms", group="example.com", controllers=parts, lease=TIMING)
    return serving(operator, sandbox.kubeconfig, leader_election=True, pod_namespace="default")


def role(at_work: Serving) -> str:
    """What /readyz says of it."""
    return next(line for line in at_work.process.readiness().lines if line in ("leading", "standing by"))


@pytest.fixture(autouse=True)
def _no_lease(sandbox: Sandbox) -> Iterator[None]:
    yield
    sandbox.delete("coordination.k8s.io/v1", "Lease", "terms")


EXITING: Final = """
import asyncio, sys
from bonny import Controller, Kind, Operator
from bonny.main import main

async def leaves():
    sys.exit(0)

class Exiting(Controller):
    resource = Kind("v1", "ConfigMap", namespace="default", label_selector="of=terms")

    async def reconcile(self, axn):
        if axn.key.name == "task":
            await asyncio.gather(leaves(), return_exceptions=False)
        asyncio.get_running_loop().call_soon(sys.exit, 0)

sys.exit(main(Operator(name="terms", group="example.com", controllers=[Exiting]), ["run"]))
"""


def test_a_handlers_task_that_calls_exit_costs_its_own_object_and_a_callback_stops_the_operator_in_order(
    sandbox: Sandbox, start_operator: Start, tmp_path: Path
) -> None:
    """Regression: either ended the process at once, without a word, and its lease was waited out by the others."""
    script = tmp_path / "exiting.py"
    script.write_text(EXITING, encoding="utf-8")
    settings = {"BONNY_LEADER_ELECTION": "true", "BONNY_POD_NAMESPACE": "default"}
    at_work = start_operator([sys.executable, str(script)], **settings)
    Sandbox.eventually(lambda: "leading" in at_work.text, within_seconds=30.0)

    metadata = {"namespace": "default", "labels": {"of": "terms"}}
    sandbox.apply([{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {**metadata, "name": "task"}}])
    Sandbox.eventually(lambda: at_work.text.count("reconcile failed") > 1)
    assert at_work.process.poll() is None
    assert "sys.exit was called" in at_work.text

    sandbox.apply([{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {**metadata, "name": "callback"}}])
    assert at_work.process.wait(30.0) == CALLED_EXIT_CODE
    told = next(line for line in at_work.text.splitlines() if "tried to end the process" in line)
    assert '"object":"default/callback"' in told
    assert '"controller":"Exiting"' in told
    lease = sandbox.get("coordination.k8s.io/v1", "Lease", "terms")
    assert lease is not None
    assert lease["spec"]["holderIdentity"] == "", "released"
    sandbox.delete("v1", "ConfigMap", "task")
    sandbox.delete("v1", "ConfigMap", "callback")


OPENING: Final = """
import asyncio, os, sys
from contextlib import asynccontextmanager
from bonny import Controller, Kind, Operator
from bonny.main import main

class Opening(Controller):
    resource = Kind("v1", "ConfigMap", namespace="default", label_selector="of=terms")

    @asynccontextmanager
    async def lifespan(self):
        self.address = os.environ["ADDRESS"]
        print("opened", flush=True)
        yield
        print("closed", flush=True)

    async def reconcile(self, axn):
        print("begins", flush=True)
        await asyncio.sleep(0.5)  # as a request that is on its way at the stop
        print("ends", flush=True)

sys.exit(main(Operator(name="terms", group="example.com", controllers=[Opening]), ["run"]))
"""


def test_a_lifespan_surrounds_the_work_and_what_cannot_be_opened_never_becomes_ready(
    sandbox: Sandbox, start_operator: Start, tmp_path: Path
) -> None:
    script = tmp_path / "opening.py"
    script.write_text(OPENING, encoding="utf-8")
    settings = {"BONNY_LEADER_ELECTION": "true", "BONNY_POD_NAMESPACE": "default"}
    failing = start_operator([sys.executable, str(script)], **settings)
    assert failing.process.wait(30.0) == LIFESPAN_EXIT_CODE
    (line,) = failing.lines("a lifespan failed")
    assert (line["part"], line["error"], line["then"]) == ("Opening", "'ADDRESS'", "the operator stops")
    assert "KeyError" in line["exception"]
    assert not failing.lines("started"), "nothing was watched, and it did not try to lead"
    assert sandbox.get("coordination.k8s.io/v1", "Lease", "terms") is None

    metadata = {"namespace": "default", "name": "slow", "labels": {"of": "terms"}}
    sandbox.apply([{"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}])
    at_work = start_operator([sys.executable, str(script)], **settings, ADDRESS="there")
    Sandbox.eventually(lambda: "begins" in at_work.text.splitlines(), within_seconds=30.0)
    code, _ = at_work.stop()
    assert code == 0
    words = [each for each in at_work.text.splitlines() if each in ("opened", "begins", "ends", "closed")]
    assert words == ["opened", "begins", "ends", "closed"]
    sandbox.delete("v1", "ConfigMap", "slow")


BLOCKING: Final = """
import sys, time
from bonny import Controller, Kind, Operator
from bonny.main import main

class Blocking(Controller):
    resource = Kind("v1", "ConfigMap", namespace="default", label_selector="of=terms")

    async def reconcile(self, axn):
        time.sleep(4.5)

sys.exit(main(Operator(name="terms", group="example.com", controllers=[Blocking]), ["run"]))
"""


def test_a_handler_that_blocks_the_event_loop_is_logged_with_its_object_and_counted(
    sandbox: Sandbox, start_operator: Start, tmp_path: Path
) -> None:
    script = tmp_path / "blocking.py"
    script.write_text(BLOCKING, encoding="utf-8")
    at_work = start_operator([sys.executable, str(script)]).wait_ready()

    metadata = {"namespace": "default", "labels": {"of": "terms"}}
    sandbox.apply([{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {**metadata, "name": "slow"}}])
    Sandbox.eventually(lambda: at_work.lines("reconciled"))

    (line,) = at_work.lines("the event loop is blocked")
    assert (line["controller"], line["object"]) == ("Blocking", "default/slow")
    assert str(script) in line["stack"]
    _, exposed = at_work.probe("/metrics")
    (blocked,) = [text for text in exposed.splitlines() if text.startswith("bonny_event_loop_blocked_seconds_total")]
    assert float(blocked.split()[-1]) >= 3.0
    sandbox.delete("v1", "ConfigMap", "slow")


def test_handlers_that_swallow_their_cancellation_do_not_hold_up_the_stop(
    sandbox: Sandbox, start_operator: Start
) -> None:
    """Regression: the process waited for a periodic task, or a server, until it was killed, and kept its lease."""
    at_work = start_operator(
        [sys.executable, str(STUBBORN)],
        BONNY_LEADER_ELECTION="true",
        BONNY_POD_NAMESPACE="default",
        BONNY_GRACE_SECONDS=str(GRACE_SECONDS),
    )
    Sandbox.eventually(lambda: {"the task runs", "the server runs"} <= {*at_work.text.splitlines()})

    code, seconds = at_work.stop()

    assert code == 0, at_work.text
    assert seconds < GRACE_SECONDS + STOP_SECONDS
    assert at_work.lines("abandoned a handler that ignored cancellation")
    lease = sandbox.get("coordination.k8s.io/v1", "Lease", "stubborn")
    assert lease is not None
    assert lease["spec"]["holderIdentity"] == ""


def test_a_standby_gives_its_tasks_their_grace_and_takes_no_lease_meanwhile(sandbox: Sandbox) -> None:
    """Regression: it cancelled them at once."""
    begun, go_on, told = threading.Event(), threading.Event(), list[str]()

    async def everywhere(run: TaskRun) -> None:
        begun.set()
        while not go_on.is_set():  # noqa: ASYNC110  it is set by another thread
            await asyncio.sleep(0.01)
        told.append("ended")

    with replica(sandbox) as leader:
        Sandbox.eventually(lambda: role(leader) == "leading")
        standby = replica(sandbox, PeriodicTask("t", everywhere, interval=0.1, leader_only=False))
        with standby as at_work:
            Sandbox.eventually(begun.is_set)
            stopping = threading.Thread(target=at_work.stop)
            stopping.start()
            Sandbox.eventually(at_work.process.tasks._stopped.is_set)
            leader.stop()
            lease = sandbox.get("coordination.k8s.io/v1", "Lease", "terms")
            go_on.set()
            stopping.join()
    assert told == ["ended"]
    assert lease is not None
    assert lease["spec"]["holderIdentity"] == ""


def test_a_thread_of_a_task_that_runs_everywhere_does_not_keep_a_replica_from_standing_by(sandbox: Sandbox) -> None:
    """Regression: every lease that was lost ended the process, however the task was meant."""
    begun, go_on = threading.Event(), threading.Event()

    def everywhere(run: TaskRun) -> None:
        begun.set()
        go_on.wait()

    with replica(sandbox, PeriodicTask("t", everywhere, interval=0.1, leader_only=False)) as at_work:
        try:
            Sandbox.eventually(begun.is_set)
            leadership = at_work.process._leadership
            Sandbox.eventually(lambda: role(at_work) == "leading")
            stolen = {"spec": {"holderIdentity": "somebody-else"}}
            merge = "application/merge-patch+json"
            assert sandbox.request("PATCH", f"{LEASES}/terms", stolen, content_type=merge).status == 200

            Sandbox.eventually(leadership._stood_down.is_set)
            assert role(at_work) == "standing by"
            assert at_work.process.health().ok
        finally:
            go_on.set()


def test_a_replica_that_is_told_to_stop_while_a_thread_clings_to_its_lost_term_stops(sandbox: Sandbox) -> None:
    """Regression: it waited for the thread, until the watchdog ended it with an error."""
    begun, go_on = threading.Event(), threading.Event()

    def clings(run: TaskRun) -> None:
        begun.set()
        go_on.wait()

    with replica(sandbox, PeriodicTask("t", clings, interval=0.1)) as at_work:
        try:
            Sandbox.eventually(begun.is_set)
            leadership = at_work.process._leadership
            stolen = {"spec": {"holderIdentity": "somebody-else"}}
            merge = "application/merge-patch+json"
            assert sandbox.request("PATCH", f"{LEASES}/terms", stolen, content_type=merge).status == 200
            Sandbox.eventually(lambda: role(at_work) == "standing by")
            assert not leadership._stood_down.is_set()

            stopping = threading.Thread(target=at_work.stop)
            stopping.start()
            stopping.join(10.0)
            assert not stopping.is_alive()
        finally:
            go_on.set()
