"""Schedulers on a real API server: the examples of the original, and the manners of kube-scheduler."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from bonny import Kind, Resource
from bonny.filters import fits, free, least_allocated
from bonny.filters.room import Ledger
from bonny.scheduler import Binding, Scheduler
from bonny.scheduler.nodes import Nodes
from bonny.scheduler.scheduler import Choice
from bonny.scheduler.views import NodeView, PodView
from bonny_dev.sandbox import Sandbox
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
    check = fits

    def select_node_for_pod(self, pod: PodView, nodes: Nodes) -> Choice:
        return next((known for known in nodes if known.labels.get("cheap") == "true"), None)


class RandomNode(Scheduler):
    """Each pod to a random node."""

    name = "random-node"
    check = fits

    def select_node_for_pod(self, pod: PodView, nodes: Nodes) -> Choice:
        return random.choice(nodes)


class GpuNode(Scheduler):
    """Each pod to a random node of those with GPUs."""

    name = "gpu-node"
    check = fits

    def select_node_for_pod(self, pod: PodView, nodes: Nodes) -> Choice:
        return random.choice(nodes)

    def nodes(self) -> Kind:
        return Kind("v1", "Node", label_selector="my.label.on.gpu.instances")


class LeastAllocated(Scheduler):
    """Each pod to the emptiest node into which it fits."""

    name = "least-allocated"
    check = fits

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
        # It comes first: who took it would have bound it before the last of the others waits.
        add_pods(sandbox, [pod("other"), *pods("cheap-node", 2, cpu="1"), *pods("least-allocated", 2, cpu="1")])

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


TERM: Final = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "x"}}}
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
CLAIM: Final = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
RESTART: Final = {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [1]}}


def waiting(volume: Resource) -> Resource:
    return {"volumes": [{"name": "v", **volume}]}


# By row of docs/scheduler.md: specs of pods that ask for it. Empty where the API server refuses or leaves out what its
# feature gates do not open; tests/unit/scheduler/test_demand.py asks for those.
NOT_HONOURED: Final[dict[str, list[Resource]]] = {
    "required pod affinity or anti-affinity of its own": [
        {"affinity": {"podAffinity": {REQUIRED: [TERM]}}},
        {"affinity": {"podAntiAffinity": {REQUIRED: [TERM]}}},
    ],
    "topologySpreadConstraints with DoNotSchedule": [
        {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}]}
    ],
    "volumes other than configMap, csi, downwardAPI, emptyDir, hostPath, image, nfs, projected, secret": [
        waiting({"persistentVolumeClaim": {"claimName": "c"}}),
        waiting({"ephemeral": {"volumeClaimTemplate": {"spec": CLAIM}}}),
        waiting({"iscsi": {"targetPortal": "192.0.2.1:3260", "iqn": "iqn.2001-04.com.example:disk", "lun": 0}}),
        waiting({"awsElasticBlockStore": {"volumeID": "v"}}),
    ],
    "resourceClaims, or an extended resource that a DeviceClass provides": [
        {"resourceClaims": [{"name": "gpu", "resourceClaimName": "gpu"}]},
        {"containers": [{"name": "main", "image": "x", "resources": {"limits": {"devices.example.com/gpu": "1"}}}]},
    ],
    "restarts of all containers of the pod by a rule": [
        {"containers": [{"name": "main", "image": "x", "restartPolicy": "Never", "restartPolicyRules": [RESTART]}]}
    ],
    "a scheduling group, or user namespaces in the host's network, where feature gates let pods ask for that": [],
}


def rows_that_wait() -> list[str]:
    text = (Path(__file__).parents[2] / "docs" / "scheduler.md").read_text("utf-8")
    return re.findall(r"^\| (.+?) \| waits, with a reason \|$", text, re.MULTILINE)


def test_a_pod_that_asks_for_what_is_not_honoured_waits_with_a_reason_unless_the_scheduler_opted_out(
    sandbox: Sandbox,
) -> None:
    """What is not honoured may be refused by a node only after the pod was bound to it, or never."""
    assert list(NOT_HONOURED) == rows_that_wait()
    device_class = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpus"}}
    sandbox.apply({**device_class, "spec": {"extendedResourceName": "devices.example.com/gpu"}})
    specs = [spec for row in NOT_HONOURED.values() for spec in row]
    add_nodes(sandbox, [node("n1", labels={"cheap": "true", "zone": "a"})])
    with AtWork(sandbox, LeastAllocated(), Careless()):
        for scheduler in ("least-allocated", "careless"):
            asked = [pod(f"{scheduler}-{number}", scheduler=scheduler, **spec) for number, spec in enumerate(specs)]
            add_pods(sandbox, asked)
        told = [
            sandbox.eventually(lambda number=number: condition(sandbox, f"least-allocated-{number}"))
            for number in range(len(specs))
        ]

        assert set(until_placed(sandbox, len(specs))) == {f"careless-{number}" for number in range(len(specs))}

    assert {known["reason"] for known in told} == {"Unschedulable"}
    reasons = [known["message"].removeprefix("0/1 nodes are available: ") for known in told]
    named = ["required pod affinity", "required pod anti-affinity", "topology spread constraints"]
    named += ["volumes that may bind it to nodes"] * 4 + ["resource claims"]
    said = [f"pod has {name}, which this scheduler does not honour." for name in named]
    restarts = "pod has restarts of all containers, which this scheduler does not honour."
    assert reasons == [*said, "1 Insufficient devices.example.com/gpu.", restarts]


def test_nobody_is_evicted_for_a_pod_of_higher_priority(sandbox: Sandbox) -> None:
    urgent = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "urgent"}}
    sandbox.apply({**urgent, "value": 1000})
    add_nodes(sandbox, [node("n1", cpu="1")])
    with AtWork(sandbox, LeastAllocated()):
        add_pods(sandbox, [pod("humble", scheduler="least-allocated", cpu="1")])
        until_placed(sandbox, 1)
        add_pods(sandbox, [pod("urgent", scheduler="least-allocated", cpu="1", priorityClassName="urgent")])

        assert sandbox.eventually(lambda: condition(sandbox, "urgent"))["reason"] == "Unschedulable"
    humble: Any = sandbox.get("v1", "Pod", "humble")
    assert "deletionTimestamp" not in humble["metadata"]
    assert placed(sandbox) == {"humble": "n1"}


class Inventive(Scheduler):
    """Chooses what is not there."""

    name = "inventive"
    check = fits

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
        # The one that is not in the list comes first: who took it would have bound it before the other one.
        add_pods(sandbox, [pod("a-stranger", scheduler="patient"), pod("listed", scheduler="patient")])

        assert until_placed(sandbox, 1) == {"listed": "n2"}


class TeamA(LeastAllocated):
    """Only the pods of one team."""

    name = "team-a"

    def pods(self) -> Kind:
        return Kind("v1", "Pod", label_selector="team=a")


def test_pods_may_come_from_a_selector_that_is_kept_up_to_date(sandbox: Sandbox) -> None:
    add_nodes(sandbox, [node("n1")])
    with AtWork(sandbox, TeamA()):
        # Theirs comes first: who took it would have bound it before ours.
        add_pods(sandbox, [pod("theirs", scheduler="team-a"), pod("ours", scheduler="team-a", labels={"team": "a"})])
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

    def told(name: str, scheduler: str) -> list[tuple[Mapping[str, float], dict[str, Any]]]:
        return [
            (figures, {key: value for key, value in metadata.items() if key != "scheduler"})
            for known, figures, metadata in at_work.told
            if known == f"bonny.scheduler.{name}" and metadata["scheduler"] == scheduler
        ]

    ((figures, bound),) = told("binding.succeeded", "least-allocated")
    assert bound == {"pod": "default/least-allocated-0", "node": "n1"}
    assert 0.0 < figures["duration"] < 10.0
    assert told("binding.failed", "least-allocated") == told("binding.succeeded", "refused") == []
    _, failed = told("binding.failed", "refused")[0]
    assert (failed["pod"], failed["node"], str(failed["error"])) == ("default/refused-0", "n1", "not today")
    for of in ("nodes", "pods"):
        assert len(told(f"{of}.fetch.succeeded", "least-allocated")) == 1
        assert told(f"{of}.fetch.failed", "least-allocated") == told(f"{of}.fetch.succeeded", "unlisted") == []
        ((_, unlisted),) = told(f"{of}.fetch.failed", "unlisted")
        assert str(unlisted["error"]) == "no list today"


def test_its_own_rules_are_all_that_it_needs(sandbox: Sandbox) -> None:
    name = "narrow-scheduler"
    rules = [
        *LeastAllocated.all_rules(),
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
def test_a_change_by_a_faster_client_does_not_count_as_an_error(
    sandbox: Sandbox, happens: str, places: dict[str, str]
) -> None:
    add_nodes(sandbox, [node("n1", cpu="1"), node("n2", cpu="500m")])
    overtaken = Overtaken(sandbox, happens)
    with AtWork(sandbox, overtaken) as at_work:
        add_pods(sandbox, pods("overtaken", 1, cpu="1"))
        sandbox.eventually(lambda: overtaken.bindings and placed(sandbox) == places)
        (server,) = at_work.servers
        sandbox.eventually(lambda: not sum(at_work.do(server.statistics).values()))
        left = at_work.do(lambda: {known.name: free(known)["cpu"] for known in server.nodes})

    assert left == {"n1": 1000 - 1000 * (places == {"overtaken-0": "n1"}), "n2": 500 - 1000 * ("n2" in places.values())}
    assert "bonny.scheduler.binding.failed" not in at_work.names_told()


def test_the_condition_is_written_once_however_often_the_pod_is_tried(sandbox: Sandbox) -> None:
    add_nodes(sandbox, [node("n1", cpu="1")])
    with AtWork(sandbox, LeastAllocated()) as at_work:
        add_pods(sandbox, pods("least-allocated", 1, cpu="2"))
        sandbox.eventually(lambda: condition(sandbox, "least-allocated-0"))
        before: Any = sandbox.get("v1", "Pod", "least-allocated-0")
        (server,) = at_work.servers

        def try_again() -> None:
            server.nodes.cache.derived(Ledger).lifted += 1
            server._wake.set()

        for count in (2, 3):
            at_work.do(try_again)
            sandbox.eventually(
                lambda count=count: at_work.do(lambda: server.cycle._recorder.correlator.recorded) >= count
            )

    after: Any = sandbox.get("v1", "Pod", "least-allocated-0")
    assert after["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]


def test_a_condition_that_was_decided_on_an_older_version_is_not_written(sandbox: Sandbox) -> None:
    """Regression: a late PodScheduled=False took the place of the True that came with the binding."""
    add_nodes(sandbox, [node("n1", cpu="1")])
    with AtWork(sandbox, LeastAllocated()) as at_work:
        add_pods(sandbox, pods("least-allocated", 1, cpu="1"))
        until_placed(sandbox, 1)
        (server,) = at_work.servers
        stale = sandbox.eventually(lambda: at_work.do(lambda: list(server.nodes.cache._placed.values())))[0][0]
        label = {"metadata": {"labels": {"newer": "yes"}}}
        sandbox.request("PATCH", f"{PODS}/least-allocated-0", label, content_type=MERGE)
        sandbox.eventually(
            lambda: (
                at_work.do(lambda: [known.labels for known, _ in server.nodes.cache._placed.values()])
                == [{"newer": "yes"}]
            )
        )
        late = {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}
        at_work.do(lambda: server.cycle._spawn(server.cycle._write(stale, late)))
        sandbox.eventually(lambda: not at_work.do(lambda: server.cycle.tasks))

    assert condition(sandbox, "least-allocated-0")["status"] == "True"
