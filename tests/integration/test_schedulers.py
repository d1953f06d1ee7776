"""Schedulers on a real API server: the examples of the original, and the manners of kube-scheduler."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from typing import Any

import pytest

from bonny import Kind, Resource
from bonny.sandbox import Sandbox
from bonny.scheduler import Binding, Scheduler, least_allocated
from bonny.scheduler.nodes import Nodes
from bonny.scheduler.scheduler import Choice
from bonny.scheduler.views import NodeView, PodView
from tests.support.schedulers import (
    MERGE,
    NODES,
    PODS,
    AtWork,
    add_nodes,
    add_pods,
    condition,
    events,
    placed,
    remove_all,
)
from tests.support.scheduling import node, pod
from tests.support.telemetry_page import check


@pytest.fixture(autouse=True)
def _clean(sandbox: Sandbox) -> Iterator[None]:
    yield
    remove_all(sandbox)


class CheapNode(Scheduler):
    """Each pod to a node with the label cheap=true."""

    name = "cheap-node"

    def select_node_for_pod(self, pod: PodView, nodes: Nodes) -> Choice:
        return next((known for known in nodes if known.labels.get("cheap") == "true"), None)


class RandomNode(Scheduler):
    """Each pod to a random node."""

    name = "random-node"

    def select_node_for_pod(self, pod: PodView, nodes: Nodes) -> Choice:
        return random.choice(nodes)


class GpuNode(Scheduler):
    """Each pod to a random node of those with GPUs."""

    name = "gpu-node"

    def select_node_for_pod(self, pod: PodView, nodes: Nodes) -> Choice:
        return random.choice(nodes)

    def nodes(self) -> Kind:
        return Kind("v1", "Node", label_selector="my.label.on.gpu.instances")


class LeastAllocated(Scheduler):
    """Each pod to the emptiest node into which it fits."""

    name = "least-allocated"

    def select_node_for_pod(self, pod: PodView, nodes: Nodes) -> Choice:
        return nodes.fitting(pod).best(least_allocated)


def pods(scheduler: str, count: int, **fields: Any) -> list[Resource]:
    return [pod(f"{scheduler}-{number}", scheduler=scheduler, **fields) for number in range(count)]


def until_placed(sandbox: Sandbox, count: int) -> dict[str, str]:
    return sandbox.eventually(lambda: found if len(found := placed(sandbox)) == count else None)


def test_the_cheap_node_scheduler(sandbox: Sandbox) -> None:
    add_nodes(sandbox, [node("n1"), node("n2", labels={"cheap": "true"}), node("n3", labels={"cheap": "false"})])
    with AtWork(sandbox, CheapNode()):
        add_pods(sandbox, pods("cheap-node", 3))

        assert set(until_placed(sandbox, 3).values()) == {"n2"}
        (event,) = sandbox.eventually(lambda: events(sandbox, "cheap-node-0"))
    assert condition(sandbox, "cheap-node-0")["status"] == "True"
    assert (event["reason"], event["note"]) == ("Scheduled", "Successfully assigned default/cheap-node-0 to n2")


def test_the_random_node_scheduler(sandbox: Sandbox) -> None:
    add_nodes(sandbox, [node("n1"), node("n2")])
    with AtWork(sandbox, RandomNode()):
        add_pods(sandbox, pods("random-node", 20))

        assert set(until_placed(sandbox, 20).values()) == {"n1", "n2"}


def test_the_gpu_node_scheduler(sandbox: Sandbox) -> None:
    add_nodes(sandbox, [node("n1"), node("n2", labels={"my.label.on.gpu.instances": ""})])
    with AtWork(sandbox, GpuNode()) as at_work:
        add_pods(sandbox, pods("gpu-node", 3))
        assert set(until_placed(sandbox, 3).values()) == {"n2"}

        # The selection is kept up to date: the other node gets GPUs, this one loses them.
        for name, label in (("n1", ""), ("n2", None)):
            patch = {"metadata": {"labels": {"my.label.on.gpu.instances": label}}}
            sandbox.request("PATCH", f"{NODES}/{name}", patch, content_type=MERGE)
        (server,) = at_work.servers
        sandbox.eventually(lambda: at_work.do(lambda: [known.name for known in server.nodes]) == ["n1"])
        add_pods(sandbox, [pod("late", scheduler="gpu-node")])

        assert until_placed(sandbox, 4)["late"] == "n1"


def test_pods_of_other_schedulers_are_left_alone_and_several_share_what_they_know(sandbox: Sandbox) -> None:
    add_nodes(sandbox, [node("n1", cpu="2", labels={"cheap": "true"})])
    with AtWork(sandbox, CheapNode(), LeastAllocated()) as at_work:
        add_pods(sandbox, [*pods("cheap-node", 2, cpu="1"), *pods("least-allocated", 2, cpu="1"), pod("other")])

        until_placed(sandbox, 2)
        sandbox.eventually(
            lambda: sum(sum(server.statistics().values()) for server in at_work.servers) == 2, within_seconds=5.0
        )

    assert "other" not in placed(sandbox)
    assert len(placed(sandbox)) == 2, "the node was overcommitted"


def test_a_pod_that_fits_nowhere_says_so_in_kube_schedulers_words_and_comes_when_there_is_room(
    sandbox: Sandbox,
) -> None:
    taint = {"key": "only", "value": "us", "effect": "NoSchedule"}
    add_nodes(sandbox, [node("n1", cpu="1"), node("n2", cpu="1"), node("n3", taints=[taint])])
    with AtWork(sandbox, LeastAllocated()):
        add_pods(sandbox, pods("least-allocated", 1, cpu="2"))
        told = sandbox.eventually(lambda: condition(sandbox, "least-allocated-0"))
        text = "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu."
        assert (told["status"], told["reason"], told["message"]) == ("False", "Unschedulable", text)
        (event,) = sandbox.eventually(lambda: events(sandbox))
        assert (event["type"], event["reason"], event["note"]) == ("Warning", "FailedScheduling", text)

        add_nodes(sandbox, [node("n4", cpu="2")])

        assert until_placed(sandbox, 1) == {"least-allocated-0": "n4"}
    assert condition(sandbox, "least-allocated-0")["status"] == "True"


def test_a_pod_that_waits_comes_when_another_one_goes(sandbox: Sandbox) -> None:
    add_nodes(sandbox, [node("n1", cpu="1")])
    with AtWork(sandbox, LeastAllocated()):
        add_pods(sandbox, [pod("first", scheduler="least-allocated", cpu="1")])
        until_placed(sandbox, 1)
        add_pods(sandbox, [pod("second", scheduler="least-allocated", cpu="1")])
        sandbox.eventually(lambda: condition(sandbox, "second")["status"] == "False")

        sandbox.request("DELETE", f"{PODS}/first?gracePeriodSeconds=0")

        assert until_placed(sandbox, 1) == {"second": "n1"}


def test_a_choice_that_does_not_fit_is_not_bound(sandbox: Sandbox) -> None:
    add_nodes(sandbox, [node("n1", cpu="1", labels={"cheap": "true"}), node("n2")])
    with AtWork(sandbox, CheapNode()):
        add_pods(sandbox, pods("cheap-node", 1, cpu="2"))

        told = sandbox.eventually(lambda: condition(sandbox, "cheap-node-0"))
        (event,) = sandbox.eventually(lambda: events(sandbox))

    assert told["message"] == "scheduler cheap-node chose n1: Insufficient cpu"
    assert placed(sandbox) == {}
    assert (event["reason"], event["note"]) == ("FailedScheduling", told["message"])


class Careless(CheapNode):
    """Does not want to be checked."""

    name = "careless"
    check = None


def test_who_opts_out_of_the_check_may_overcommit(sandbox: Sandbox) -> None:
    add_nodes(sandbox, [node("n1", cpu="1", labels={"cheap": "true"})])
    with AtWork(sandbox, Careless()):
        add_pods(sandbox, pods("careless", 2, cpu="1"))

        until_placed(sandbox, 2)


class Inventive(Scheduler):
    """Chooses what is not there."""

    name = "inventive"

    async def select_node_for_pod(self, pod: PodView, nodes: Nodes) -> Choice:
        return {"metadata": {"name": "made-up"}}


def test_a_node_that_is_not_in_the_list_is_reported_not_bound(sandbox: Sandbox) -> None:
    add_nodes(sandbox, [node("n1")])
    with AtWork(sandbox, Inventive()):
        add_pods(sandbox, pods("inventive", 1))

        told = sandbox.eventually(lambda: condition(sandbox, "inventive-0"))

    assert told["message"] == "scheduler inventive chose made-up, which is not one of its 1 nodes"
    assert placed(sandbox) == {}


def test_pods_with_gates_wait_until_the_last_one_is_gone(sandbox: Sandbox) -> None:
    add_nodes(sandbox, [node("n1")])
    with AtWork(sandbox, LeastAllocated()):
        add_pods(sandbox, [pod("gated", scheduler="least-allocated", schedulingGates=[{"name": "example.com/gate"}])])
        add_pods(sandbox, pods("least-allocated", 1))
        until_placed(sandbox, 1)
        assert condition(sandbox, "gated")["reason"] == "SchedulingGated"

        sandbox.request("PATCH", f"{PODS}/gated", {"spec": {"schedulingGates": None}}, content_type=MERGE)

        until_placed(sandbox, 2)
        sandbox.eventually(lambda: [event["reason"] for event in events(sandbox, "gated")] == ["Scheduled"])


def test_the_higher_priority_gets_the_room_and_of_equals_the_older_pod(sandbox: Sandbox) -> None:
    urgent = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "urgent"}}
    sandbox.apply({**urgent, "value": 1000})
    add_pods(sandbox, [pod("z-older", scheduler="least-allocated", cpu="1")])
    created = time.time()
    # Kubernetes notes the second of a creation, and no more.
    sandbox.eventually(lambda: int(time.time()) > int(created))
    add_pods(sandbox, [pod("a-younger", scheduler="least-allocated", cpu="1")])
    add_pods(sandbox, [pod("urgent", scheduler="least-allocated", cpu="1", priorityClassName="urgent")])
    add_nodes(sandbox, [node("n1", cpu="2")])

    with AtWork(sandbox, LeastAllocated()):
        sandbox.eventually(lambda: condition(sandbox, "a-younger")["reason"] == "Unschedulable")

    assert set(placed(sandbox)) == {"urgent", "z-older"}


class Patient(LeastAllocated):
    """Its pods and nodes come from lists."""

    name = "patient"
    fails = False

    async def nodes(self) -> list[Resource]:
        if Patient.fails:
            raise ValueError("no list today")
        return await self.client.list(Kind("v1", "Node"), label_selector="listed=yes")

    async def pods(self) -> list[Resource]:
        return [found for found in await self.client.list(Kind("v1", "Pod")) if "listed" in found["metadata"]["name"]]


def test_nodes_and_pods_may_come_from_lists_that_are_asked_for_again(sandbox: Sandbox) -> None:
    add_nodes(sandbox, [node("n1"), node("n2", labels={"listed": "yes"})])
    with AtWork(sandbox, Patient()):
        add_pods(sandbox, [pod("listed", scheduler="patient"), pod("other", scheduler="patient")])

        assert until_placed(sandbox, 1) == {"listed": "n2"}


class TeamA(LeastAllocated):
    """Only the pods of one team."""

    name = "team-a"

    def pods(self) -> Kind:
        return Kind("v1", "Pod", label_selector="team=a")


def test_pods_may_come_from_a_selector_that_is_kept_up_to_date(sandbox: Sandbox) -> None:
    add_nodes(sandbox, [node("n1")])
    with AtWork(sandbox, TeamA()):
        add_pods(sandbox, [pod("ours", scheduler="team-a", labels={"team": "a"}), pod("theirs", scheduler="team-a")])
        assert until_placed(sandbox, 1) == {"ours": "n1"}

        label = {"metadata": {"labels": {"team": "a"}}}
        sandbox.request("PATCH", f"{PODS}/theirs", label, content_type=MERGE)

        assert set(until_placed(sandbox, 2)) == {"ours", "theirs"}


class Binds(LeastAllocated):
    """Binds by itself, and says so on the pod."""

    name = "binds"

    async def bind(self, pod: PodView, node: NodeView) -> None:
        binding = Binding.new(pod, node)
        binding["metadata"]["annotations"] = {"example.com/bound-by": self.name}
        await Binding.create(self.client, binding, uid=pod.uid)


def test_binding_may_be_ones_own(sandbox: Sandbox) -> None:
    add_nodes(sandbox, [node("n1")])
    with AtWork(sandbox, Binds()):
        add_pods(sandbox, pods("binds", 1))
        until_placed(sandbox, 1)

    found: Any = sandbox.get("v1", "Pod", "binds-0")
    assert found["metadata"]["annotations"] == {"example.com/bound-by": "binds"}


class DryRun(LeastAllocated):
    """Binds nothing."""

    dry_run = True


def test_a_dry_run_decides_and_counts_but_writes_nothing(sandbox: Sandbox, caplog: pytest.LogCaptureFixture) -> None:
    add_nodes(sandbox, [node("n1", cpu="2")])
    with caplog.at_level("DEBUG", logger="bonny.scheduler"), AtWork(sandbox, DryRun()):
        add_pods(sandbox, pods("least-allocated", 3, cpu="1"))
        sandbox.eventually(lambda: len([line for line in caplog.records if line.msg == "would bind"]) == 2)
        sandbox.eventually(lambda: [line for line in caplog.records if line.msg == "no node"])

    assert placed(sandbox) == {}
    assert events(sandbox) == []
    found: Any = sandbox.get("v1", "Pod", "least-allocated-2")
    assert "conditions" not in found["status"]


def test_what_is_bound_before_the_start_takes_room(sandbox: Sandbox) -> None:
    """A restart rebuilds everything from the API."""
    add_nodes(sandbox, [node("n1", cpu="2"), node("n2", cpu="1")])
    add_pods(sandbox, [pod("old", node="n1", cpu="2", scheduler="least-allocated")])
    with AtWork(sandbox, LeastAllocated()):
        add_pods(sandbox, pods("least-allocated", 1, cpu="1"))

        assert until_placed(sandbox, 2)["least-allocated-0"] == "n2"


def test_the_telemetry_events_of_the_original_are_told(sandbox: Sandbox) -> None:
    class Refused(LeastAllocated):
        name = "refused"

        async def bind(self, pod: PodView, node: NodeView) -> None:
            raise ValueError("not today")

    class Unlisted(Patient):
        name = "unlisted"

        async def nodes(self) -> list[Resource]:
            raise ValueError("no list today")

        async def pods(self) -> list[Resource]:
            raise ValueError("no list today")

    add_nodes(sandbox, [node("n1")])
    with AtWork(sandbox, LeastAllocated(), Refused(), Unlisted()) as at_work:
        add_pods(sandbox, [*pods("least-allocated", 1), *pods("refused", 1)])
        parts = [("binding", "failed"), ("binding", "succeeded")]
        parts += [(f"{of}.fetch", how) for of in ("nodes", "pods") for how in ("failed", "succeeded")]
        sandbox.eventually(lambda: at_work.names_told() >= {f"bonny.scheduler.{of}.{how}" for of, how in parts})

    for event in at_work.told:
        check(*event)
    bound = [metadata for name, _, metadata in at_work.told if name == "bonny.scheduler.binding.succeeded"]
    assert bound == [{"scheduler": "least-allocated", "pod": "default/least-allocated-0", "node": "n1"}]


def test_its_own_rules_are_all_that_it_needs(sandbox: Sandbox) -> None:
    name = "narrow-scheduler"
    rules = [
        *LeastAllocated.rules(),
        {"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create", "patch"]},
    ]
    meta = {"name": name}
    rbac = "rbac.authorization.k8s.io"
    sandbox.apply(
        [
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {**meta, "namespace": "default"}},
            {"apiVersion": f"{rbac}/v1", "kind": "ClusterRole", "metadata": meta, "rules": rules},
            {
                "apiVersion": f"{rbac}/v1",
                "kind": "ClusterRoleBinding",
                "metadata": meta,
                "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": name},
                "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "default"}],
            },
        ]
    )
    kubeconfig = sandbox.service_account_kubeconfig("default", name)
    add_nodes(sandbox, [node("n1", cpu="1")])
    with AtWork(sandbox, LeastAllocated(), kubeconfig=kubeconfig):
        add_pods(sandbox, [pod("small", scheduler="least-allocated"), pod("big", scheduler="least-allocated", cpu="2")])
        until_placed(sandbox, 1)

        assert sandbox.eventually(lambda: condition(sandbox, "big"))["reason"] == "Unschedulable"


# --- who was faster ---------------------------------------------------------------------------------------------------


class Overtaken(LeastAllocated):
    """Before it binds, something happens to the pod."""

    name = "overtaken"

    def __init__(self, sandbox: Sandbox, happens: str) -> None:
        self.sandbox = sandbox
        self.happens = happens
        self.bindings = 0

    async def bind(self, pod: PodView, node: NodeView) -> None:
        self.bindings += 1
        if self.bindings == 1:
            binding = Binding.new(pod, node)
            match self.happens:
                case "bound by ourselves":
                    await super().bind(pod, node)
                case "bound by somebody":
                    other = {**binding, "target": {**binding["target"], "name": "n2"}}
                    assert self.sandbox.request("POST", f"{PODS}/{pod.name}/binding", other).status == 201
                case "gone" | "created again":
                    self.sandbox.request("DELETE", f"{PODS}/{pod.name}?gracePeriodSeconds=0")
                    if self.happens == "created again":
                        add_pods(self.sandbox, pods("overtaken", 1, cpu="1"))
        await super().bind(pod, node)


@pytest.mark.parametrize(
    ("happens", "places"),
    [
        ("bound by ourselves", {"overtaken-0": "n1"}),
        ("bound by somebody", {"overtaken-0": "n2"}),
        ("gone", {}),
        ("created again", {"overtaken-0": "n1"}),
    ],
)
def test_who_was_faster_is_no_error(sandbox: Sandbox, happens: str, places: dict[str, str]) -> None:
    add_nodes(sandbox, [node("n1", cpu="1"), node("n2", cpu="500m")])
    overtaken = Overtaken(sandbox, happens)
    with AtWork(sandbox, overtaken) as at_work:
        add_pods(sandbox, pods("overtaken", 1, cpu="1"))
        sandbox.eventually(lambda: overtaken.bindings and placed(sandbox) == places)
        (server,) = at_work.servers
        sandbox.eventually(lambda: not sum(at_work.do(server.statistics).values()))
        free = at_work.do(lambda: {known.name: known.free["cpu"] for known in server.nodes})

    assert free == {"n1": 1000 - 1000 * (places == {"overtaken-0": "n1"}), "n2": 500 - 1000 * ("n2" in places.values())}
    assert "bonny.scheduler.binding.failed" not in at_work.names_told()


def test_the_condition_is_written_once_however_often_the_pod_is_tried(sandbox: Sandbox) -> None:
    add_nodes(sandbox, [node("n1", cpu="1")])
    with AtWork(sandbox, LeastAllocated()) as at_work:
        add_pods(sandbox, pods("least-allocated", 1, cpu="2"))
        sandbox.eventually(lambda: condition(sandbox, "least-allocated-0"))
        before: Any = sandbox.get("v1", "Pod", "least-allocated-0")
        (server,) = at_work.servers
        for count in (2, 3):
            at_work.do(lambda: server._cache._tell(None))
            sandbox.eventually(lambda count=count: at_work.do(lambda: server._recorder.correlator.recorded) >= count)

    after: Any = sandbox.get("v1", "Pod", "least-allocated-0")
    assert after["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]


def test_a_condition_that_was_decided_on_an_older_version_is_not_written(sandbox: Sandbox) -> None:
    """Regression: a late PodScheduled=False took the place of the True that came with the binding."""
    add_nodes(sandbox, [node("n1", cpu="1")])
    with AtWork(sandbox, LeastAllocated()) as at_work:
        add_pods(sandbox, pods("least-allocated", 1, cpu="1"))
        until_placed(sandbox, 1)
        (server,) = at_work.servers
        stale = sandbox.eventually(lambda: at_work.do(lambda: list(server._cache._placed.values())))[0].pod
        label = {"metadata": {"labels": {"newer": "yes"}}}
        sandbox.request("PATCH", f"{PODS}/least-allocated-0", label, content_type=MERGE)
        sandbox.eventually(
            lambda: (
                at_work.do(lambda: [known.pod.labels for known in server._cache._placed.values()]) == [{"newer": "yes"}]
            )
        )
        late = {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}
        at_work.do(lambda: server._spawn(server._write(stale, late)))
        sandbox.eventually(lambda: not at_work.do(lambda: server._tasks))

    assert condition(sandbox, "least-allocated-0")["status"] == "True"
