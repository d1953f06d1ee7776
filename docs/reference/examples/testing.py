"""The examples are about the Widget of [widgets.py](examples/widgets.py) and its controller `Publishes`; each is run
by a test. [How to test a controller](../how-to/test-a-controller.md) begins with a whole test.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from bonny import Axn, Controller, Kind, List, Next, Operator, PeriodicTask, Reconciler, Resource, TaskRun
from bonny.client import Client, NotFound
from bonny.client.config import Kubeconfig
from bonny.filters import fits, least_allocated
from bonny.scheduler import Choice, Nodes, PodView, Scheduler
from bonny.webhooks import Admission, Denied, Review
from bonny_dev import testing
from bonny_dev.sandbox import Sandbox
from docs.reference.examples.widgets import Publishes, Widget, applied, config_map, widget


def axn() -> None:
    axn = testing.axn(
        widget("w1", size=3),
        version=Widget,
        action="reconcile",
        reasons=["child"],
        observed=[config_map("w1-size", size="2")],
        options={"greeting": "hello"},
    )
    assert axn.spec.size == 3
    live = axn.observed(config_map("w1-size")) or {}
    assert live["data"] == {"size": "2"}
    assert axn.controller.options["greeting"] == "hello"


async def handle() -> None:
    axn = await testing.handle(Publishes, widget("w1", size=3))
    testing.assert_descendant(axn, "ConfigMap", "w1-size", data={"size": "3"})
    testing.assert_condition(axn, "Ready", message="the size is 3")


async def assert_descendant() -> None:
    axn = await testing.handle(Publishes, widget("w1", size=3))
    found = testing.assert_descendant(axn, "ConfigMap", "w1-size", data={"size": "3"})
    assert "namespace" not in found["metadata"]


async def assert_no_descendant() -> None:
    axn = await testing.handle(Publishes, widget("w1"))
    testing.assert_no_descendant(axn, "Secret")
    testing.assert_no_descendant(axn, "ConfigMap", "w2-size")


async def assert_pruned() -> None:
    children = [testing.child_of(widget("w1"), config_map(name)) for name in ("w1-size", "w1-former")]
    axn = await testing.handle(Publishes, widget("w1"), observed=children)
    testing.assert_pruned(axn, "ConfigMap", "w1-former")


def child_of() -> None:
    child = testing.child_of(widget("w1"), config_map("w1-size"))
    assert child["metadata"]["labels"] == {"bonny.dev/owner-uid": "uid-of-w1"}
    assert child["metadata"]["ownerReferences"][0]["name"] == "w1"


def assert_status() -> None:
    axn = testing.axn(widget(), version=Widget)
    axn.update_status(lambda status: {**status, "size": 3})
    testing.assert_status(axn, size=3)


def assert_condition() -> None:
    axn = testing.axn(widget(), version=Widget)
    axn.set_condition("Ready", False, reason="Starting")
    testing.assert_condition(axn, "Ready", False, reason="Starting")


def assert_event() -> None:
    axn = testing.axn(widget(), version=Widget)
    axn.failure_event(reason="NoBackup", message="there is none")
    event = testing.assert_event(axn, "NoBackup", type="Warning")
    assert event.message == "there is none"


async def assert_no_event() -> None:
    axn = await testing.handle(Publishes, widget())
    testing.assert_no_event(axn)


async def assert_requeued() -> None:
    class Polls(Controller[Widget]):
        async def reconcile(self, axn: Axn[Widget]) -> None:
            axn.requeue_after(30.0)

    class Tomorrow(Controller[Widget]):
        async def reconcile(self, axn: Axn[Widget]) -> None:
            axn.requeue_at(axn.now + timedelta(days=1))

    testing.assert_requeued(await testing.handle(Polls, widget()), after=30.0)
    noon = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
    testing.assert_requeued(await testing.handle(Tomorrow, widget(), now=noon), at=noon + timedelta(days=1))


async def answers() -> None:
    class Remembers(Controller[Widget]):
        rules = ({"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "create"]},)

        async def reconcile(self, axn: Axn[Widget]) -> None:
            memory = {**config_map("memory"), "metadata": {"name": "memory", "namespace": axn.key.namespace}}
            try:
                await axn.client.get(Kind("v1", "ConfigMap"), "memory", namespace=axn.key.namespace)
            except NotFound:
                await axn.client.create(Kind("v1", "ConfigMap"), memory)

    missing = {"get configmaps default/memory": NotFound, "create configmaps default/memory": None}
    axn = await testing.handle(Remembers, widget(), answers=missing)
    assert [request.verb for request in axn.requests] == ["get", "create"]
    assert axn.requests[-1].body["kind"] == "ConfigMap"


async def run_task() -> None:
    def count(run: TaskRun) -> Next:
        return Next(run.state + 1)

    counter = PeriodicTask("counter", count, interval=60.0, state=0)
    assert await testing.run_task(counter) == Next(1)
    assert await testing.run_task(counter, state=7) == Next(8)


async def reconcile() -> None:
    seen = []

    class Sizes(Reconciler):
        operation = List("v1", "ConfigMap")

        async def reconcile(self, resource: Resource) -> None:
            seen.append(resource["data"]["size"])

    await testing.reconcile(Sizes, config_map("w1-size", size="3"))
    assert seen == ["3"]


async def schedule() -> None:
    class Emptiest(Scheduler):
        name = "emptiest"
        check = fits

        def select_node_for_pod(self, pod: PodView, nodes: Nodes) -> Choice:
            return nodes.fitting(pod).best(least_allocated)

    allocatable = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    nodes = [{"metadata": {"name": name}, "status": {"allocatable": allocatable}} for name in ("n1", "n2")]
    container = {"name": "main", "resources": {"requests": {"cpu": "3"}}}
    pod = {"metadata": {"name": "p1", "namespace": "default"}, "spec": {"containers": [container]}}
    there = {"metadata": {"name": "p0", "namespace": "default"}, "spec": {"containers": [container], "nodeName": "n1"}}
    assert await testing.schedule(Emptiest, pod, nodes=nodes, pods=[there]) == "n2"
    assert await testing.schedule(Emptiest, pod, nodes=nodes[:1], pods=[there]) is None


async def review() -> None:
    class EvenWidgets(Admission[Widget]):
        def default(self, review: Review[Widget]) -> None:
            review.spec.secret = review.spec.secret or f"{review.name}-secret"

        def validate(self, review: Review[Widget]) -> None:
            if review.spec.size % 2:
                raise Denied("must be even", field="spec.size")

    reviewed = await testing.review(EvenWidgets, widget("w1", size=4))
    assert reviewed.allowed
    assert reviewed.patch == [{"op": "add", "path": "/spec/secret", "value": "w1-secret"}]

    reviewed = await testing.review(EvenWidgets, widget("w1", size=3), old=widget("w1", size=4), user="jane")
    assert reviewed.causes == (("spec.size", "Invalid value: must be even"),)


async def record_permissions(sandbox: Sandbox) -> None:
    operator = Operator(name="widgets", group="example.com", controllers=[Publishes])
    cluster = Kubeconfig(str(sandbox.kubeconfig))
    with testing.record_permissions() as recorder:
        async with Client(cluster, user_agent="tests") as client:
            await client.list(Kind("v1", "ConfigMap"))
            await client.list(Kind("v1", "Secret"))
    compared = recorder.compared_with_manifest(operator)
    assert compared.missing == {"": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["list"]}]}


def saw() -> None:
    recorder = testing.PermissionRecorder()
    recorder.saw("PATCH", "/api/v1/namespaces/default/configmaps/w1", {"fieldManager": "widgets"}, 201)
    assert {used.verb for used in recorder.used} == {"patch", "create"}


def compared_with_manifest() -> None:
    operator = Operator(name="widgets", group="example.com", controllers=[Publishes])
    recorder = testing.PermissionRecorder()
    recorder.saw("GET", "/api/v1/namespaces/default/secrets/password", {}, 403)
    compared = recorder.compared_with_manifest(operator)
    assert compared.missing == {"default": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]}


def compared_with() -> None:
    recorder = testing.PermissionRecorder()
    recorder.saw("GET", "/api/v1/namespaces/default/secrets/password", {}, 200)
    rule = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "delete"]}
    compared = recorder.compared_with({"default": [rule]})
    assert compared.unused == {"default": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["delete"]}]}


def running_operator() -> None:
    # In tests/integration of a rendered repository; the plugin makes the fixture.
    async def test_the_operator_publishes_the_size(running_operator: testing.RunningOperator) -> None:
        made = await running_operator.apply(applied("w1", size=3))
        published = {**config_map("w1-size"), "metadata": {"name": "w1-size", "namespace": "default"}}
        await running_operator.until(published, lambda live: live["data"] == {"size": "3"})
        await running_operator.until(made, testing.is_ready)

        await running_operator.delete(published)
        await running_operator.until(published, lambda live: live["data"] == {"size": "3"})  # repaired

        assert await running_operator.client.list(Widget, namespace="default")
        await running_operator.delete(made)
        await running_operator.until_gone(made)


async def ticks() -> None:
    ticks = testing.Ticks(Publishes, widget("w1", size=3))
    assert await ticks.until_steady(max=5) <= 5
    assert [child["data"] for child in ticks.children] == [{"size": "3"}]


async def external() -> None:
    class Sizes:
        def __init__(self) -> None:
            self.sizes: dict[str, int] = {}

        async def put(self, uid: str, size: int) -> None:
            self.sizes[uid] = size

        async def remove(self, uid: str) -> None:
            self.sizes.pop(uid, None)

    system = testing.External(Sizes)

    class Sends(Controller[Widget]):
        async def reconcile(self, axn: Axn[Widget]) -> None:
            await system("https://sizes.example.com").put(axn.uid, axn.spec.size)

        async def finalize(self, axn: Axn[Widget]) -> None:
            await system("https://sizes.example.com").remove(axn.uid)

    assert await system.sweep(lambda: testing.Ticks(Sends, widget("w1", size=3)), spec={"size": 4}) > 10


def workloads() -> None:
    # tests/integration/test_widget.py, for a Widget that runs a Deployment of the same name
    async def test_a_widget_is_not_ready_while_its_pods_crash(
        running_operator: testing.RunningOperator, workloads: testing.Workloads
    ) -> None:
        made = await running_operator.apply(applied("w1", size=3))
        await running_operator.until(made, testing.is_ready)

        workloads.simulate("w1-*", "crash")
        await running_operator.until(made, lambda live: not testing.is_ready(live))

        workloads.reset()
        await running_operator.until(made, testing.is_ready)
