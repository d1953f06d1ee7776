"""All that an operator can be made of, in one process with the permissions of its manifest: found, started, stopped."""

from __future__ import annotations

import sys
import textwrap
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from bonny import Controller, Operator, PeriodicTask, discover
from bonny.controller import Restart
from bonny.errors import OptionError
from bonny.filters import fits
from bonny.kinds import Kind
from bonny.scheduler import Scheduler
from bonny.scheduler.nodes import Nodes
from bonny.scheduler.views import NodeView, PodView
from bonny_dev.crd.definition import crds
from bonny_dev.manifest import bundle
from bonny_dev.operator_checks import check_operator
from bonny_dev.sandbox import Sandbox
from tests.support.serving import Serving, serving
from tests.support.things import GROUP, Thing, config_map, thing

PARTS = """
from bonny import Axn, Controller, List, Next, PeriodicTask, Reconciler, Resource, Stop, TaskRun, Watcher
from tests.support.things import Thing

NOTED: list[str] = []


class Things(Controller[Thing]):
    async def reconcile(self, axn: Axn[Thing]) -> None:
        NOTED.append(f"controller {axn.key.name}")
        axn.tasks.register(PeriodicTask("once", remind, arguments=(axn.key.name,), interval=0.05))


class Namespaces(Reconciler):
    operation = List("v1", "Namespace")
    frequency = 0.2

    async def reconcile(self, namespace: Resource) -> None:
        NOTED.append(f"reconciler {namespace['metadata']['name']}")


class Accounts(Watcher):
    operation = List("v1", "ServiceAccount", namespace="parts")

    def add(self, account: Resource) -> None:
        NOTED.append(f"watcher {account['metadata']['name']}")


async def remind(run: TaskRun, name: str) -> Stop:
    NOTED.append(f"task {name}")
    return Stop("done")


async def tick(run: TaskRun) -> Next:
    NOTED.append(f"tick {run.state}")
    return Next(run.state + 1)


ticker = PeriodicTask("ticker", tick, interval=0.05, state=0)
"""


@pytest.fixture
def parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    package = tmp_path / "parts_of_an_operator"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "all.py").write_text(textwrap.dedent(PARTS))
    monkeypatch.syspath_prepend(str(tmp_path))
    yield __import__("parts_of_an_operator")
    for name in ("parts_of_an_operator", "parts_of_an_operator.all"):
        sys.modules.pop(name, None)


def test_controllers_reconcilers_watchers_and_tasks_are_found_and_run_with_their_own_rights(
    sandbox: Sandbox, parts: ModuleType
) -> None:
    operator = Operator(name="parts", group=GROUP, controllers=discover(parts))
    noted: list[str] = sys.modules["parts_of_an_operator.all"].NOTED
    sandbox.apply(crds([Thing], GROUP))
    for document in bundle.documents(operator, image=None, namespace="parts", local=True):
        sandbox.apply(document)
    sandbox.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "seen", "namespace": "parts"}})

    with serving(operator, sandbox.service_account_kubeconfig("parts", "parts")) as at_work:
        sandbox.apply(thing("t1", namespace="parts"))
        wanted = {"controller t1", "task t1", "reconciler parts", "watcher seen", "tick 0", "tick 3"}
        sandbox.eventually(lambda: wanted <= set(noted))
        readiness = at_work.process.readiness()
        assert any("serviceaccounts" in line for line in readiness.lines), "the stream of the watcher, too"
        assert readiness.ok
    ended = len(noted)
    assert noted.count("task t1") == 1

    sandbox.apply(thing("t2", namespace="parts"))
    assert len(noted) == ended, "nothing goes on after the stop"


def test_what_an_operator_cannot_serve_is_named() -> None:
    with pytest.raises(OptionError, match="operator o cannot serve <class 'int'>: name classes of controllers"):
        Operator(name="o", group=GROUP, controllers=[int])  # type: ignore[list-item]


@pytest.mark.parametrize("restart", [Restart.PERMANENT, Restart.TEMPORARY])
def test_a_controller_that_fails_outside_of_its_handlers_is_started_again_unless_it_is_temporary(
    sandbox: Sandbox, restart: Restart
) -> None:
    class Maps(Controller[object]):
        resource = Kind("v1", "ConfigMap")

        async def reconcile(self, axn: object) -> None: ...

    operator = Operator(name="o", group=GROUP, controllers=[Maps.configured(restart=restart)])
    with serving(operator, sandbox.kubeconfig) as at_work:
        worker = at_work.process.workers[0]
        runs = []
        real = worker.router.queue.take

        def fails(*, now: float) -> object:
            runs.append(now)
            if len(runs) == 1:
                raise RuntimeError("a defect of ours")
            return real(now=now)

        worker.router.queue.take = fails  # type: ignore[method-assign, assignment]
        sandbox.apply(config_map(f"wakes-{restart}", namespace="default"))
        sandbox.eventually(lambda: runs)
        if restart is Restart.TEMPORARY:
            sandbox.eventually(lambda: at_work.process.readiness().lines[-1].endswith("is not started again"))
            assert at_work.process.health().ok
        else:
            sandbox.eventually(lambda: len(runs) > 1)
            assert at_work.process.readiness().ok


def test_two_tasks_of_one_id_are_refused_at_the_start(sandbox: Sandbox) -> None:
    task = PeriodicTask("same", lambda run: None)
    operator = Operator(name="o", group=GROUP, controllers=[task, PeriodicTask("same", lambda run: None)])
    with pytest.raises(OptionError, match="two tasks are called same"), serving(operator, sandbox.kubeconfig):
        pass


def test_a_halted_task_is_named_by_readyz_and_counted_and_does_not_make_it_red(sandbox: Sandbox) -> None:
    def fails(run: object) -> None:
        raise RuntimeError("password=hunter2")

    parts = [PeriodicTask("fails", fails, interval=0.01), PeriodicTask("works", lambda run: None, interval=0.01)]
    with serving(Operator(name="o", group=GROUP, controllers=parts), sandbox.kubeconfig) as at_work:
        sandbox.eventually(lambda: asked(at_work, "/readyz") == "ok\ntask fails: halted by an error, see the log\n")
        figures = asked(at_work, "/metrics").splitlines()
        assert {'bonny_tasks{state="running"} 1.0', 'bonny_tasks{state="halted"} 1.0'} <= set(figures)
        assert "bonny_tasks_halted_total 1.0" in figures

        assert at_work.process.tasks.register(PeriodicTask("fails", lambda run: None))
        assert asked(at_work, "/readyz") == "ok\n"
        assert 'bonny_tasks{state="halted"} 0.0' in asked(at_work, "/metrics").splitlines()


def asked(at_work: Serving, path: str) -> str:
    """The body of an answer that is 200."""
    with urllib.request.urlopen(f"http://127.0.0.1:{at_work.process.probes.port}{path}", timeout=5) as answer:
        text: str = answer.read().decode()
        return text


# --- schedulers -------------------------------------------------------------------------------------------------------


class FirstNode(Scheduler):
    """Takes the first node into which the pod fits."""

    name = "first-node"
    check = fits

    def select_node_for_pod(self, pod: PodView, nodes: Nodes) -> NodeView | None:
        return next(iter(nodes.fitting(pod)), None)


def test_a_scheduler_runs_in_an_operator_with_exactly_the_rights_that_it_needs(sandbox: Sandbox) -> None:
    operator = Operator(name="scheduling", group=GROUP, controllers=[FirstNode])
    for document in bundle.documents(operator, image=None, namespace="scheduling", local=True):
        sandbox.apply(document)
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}
    sandbox.apply(node)
    capacity = {"status": {"allocatable": {"cpu": "2", "memory": "2Gi", "pods": "10"}}}
    sandbox.request("PATCH", "/api/v1/nodes/n1/status", capacity, content_type="application/merge-patch+json")
    taints = {"spec": {"taints": None}}
    sandbox.request("PATCH", "/api/v1/nodes/n1", taints, content_type="application/merge-patch+json")
    spec = {"schedulerName": "first-node", "containers": [{"name": "main", "image": "nginx"}]}
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": "default"}}
    sandbox.apply(account)

    with serving(operator, sandbox.service_account_kubeconfig("scheduling", "scheduling")):
        metadata = {"name": "to-schedule", "namespace": "default"}
        sandbox.apply({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
        try:
            sandbox.eventually(lambda: (sandbox.get("v1", "Pod", "to-schedule") or {})["spec"].get("nodeName") == "n1")
        finally:
            sandbox.request("DELETE", "/api/v1/namespaces/default/pods/to-schedule?gracePeriodSeconds=0")
            sandbox.delete("v1", "Node", "n1")


def test_two_schedulers_of_one_name_are_refused() -> None:
    class Another(FirstNode):
        """Under the same name."""

    with pytest.raises(OptionError, match="FirstNode and Another are both called 'first-node': rename one"):
        check_operator(Operator(name="o", group=GROUP, controllers=[FirstNode, Another]))
