"""The examples are about the Widget of [widgets.py](examples/widgets.py); each is run by a test."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from bonny import (
    Axn,
    Controller,
    Kind,
    Operator,
    Owned,
    PeriodicTask,
    Related,
    Resource,
    Stop,
    TaskRun,
    Terminal,
    Wait,
    is_ready,
)
from bonny.core.conditions import ReconcileFailure
from bonny.core.records import Action
from bonny.errors import AlreadyApplied
from bonny.events import Event, EventType
from bonny.pipeline import Pipeline, run_step
from bonny.steps import Reconcile
from bonny_dev import testing
from bonny_dev.sandbox import Sandbox
from docs.reference.examples.widgets import GROUP, Widget, WidgetStatus, applied, config_map, widget
from tests.support.serving import serving

# --- what happened ----------------------------------------------------------------------------------------------------


def spec() -> None:
    axn = testing.axn(widget(size=3), version=Widget)
    assert axn.spec.size + 1 == 4  # an int, for the type checker, too


def has_conditions() -> None:
    axn = testing.axn(widget(), version=Widget)
    assert axn.has_conditions


def has_observed_generation() -> None:
    axn = testing.axn(widget(), version=Widget)
    assert axn.has_observed_generation


def key() -> None:
    axn = testing.axn(widget("w1"), version=Widget)
    assert (axn.key.namespace, axn.key.name, str(axn.key)) == ("default", "w1", "default/w1")


def uid() -> None:
    axn = testing.axn(widget("w1"), version=Widget)
    assert axn.uid == axn.resource["metadata"]["uid"]


def client(sandbox: Sandbox) -> None:
    class Quota(Controller[Widget]):
        rules = ({"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get"]},)

        async def reconcile(self, axn: Axn[Widget]) -> None:
            namespace = await axn.client.get(Kind("v1", "Namespace"), axn.key.namespace)
            phase = namespace["status"]["phase"]
            axn.set_condition("Ready", phase == "Active", message=f"the namespace is {phase}")

    operator = Operator(name="quota", group=GROUP, controllers=[Quota])
    with serving(operator, sandbox.kubeconfig):
        sandbox.apply(applied("asks"))
        sandbox.eventually(
            lambda: "Active" in str((sandbox.get(f"{GROUP}/v1", "Widget", "asks") or {})["status"]["conditions"])
        )


async def observed() -> None:
    class Publishes(Controller[Widget]):
        owns = (Owned("v1", "ConfigMap"),)

        async def reconcile(self, axn: Axn[Widget]) -> None:
            size = config_map("size", size=str(axn.spec.size))
            axn.register_descendant(size)
            live = axn.observed(size) or {}
            axn.set_condition("Ready", live.get("data") == size["data"])

    first = await testing.handle(Publishes, widget(size=3))
    testing.assert_condition(first, "Ready", False)
    again = await testing.handle(Publishes, widget(size=3), observed=first.descendants)
    testing.assert_condition(again, "Ready", True)


async def children() -> None:
    class Counts(Controller[Widget]):
        owns = (Owned("v1", "ConfigMap"),)

        async def reconcile(self, axn: Axn[Widget]) -> None:
            found = axn.children("v1", "ConfigMap", selector={"tier": "web"})
            axn.update_status(lambda status: {**status, "size": len(found)})
            for child in found:  # decoded one by one
                axn.register_descendant({**config_map(child["metadata"]["name"]), "data": child["data"]})

    labels = {"labels": {"tier": "web"}}
    live = [{**config_map("a", size="1"), "metadata": {"name": "a", **labels}}, config_map("b")]
    observed = [testing.child_of(widget(), child) for child in live]
    axn = await testing.handle(Counts, widget(), observed=observed)
    testing.assert_status(axn, size=1)
    testing.assert_descendant(axn, "ConfigMap", "a", data={"size": "1"})


async def related() -> None:
    class Serving(Controller[Widget]):
        related = (
            Related(
                "v1",
                "Pod",
                keys=lambda pod: [pod["metadata"].get("labels", {}).get("widget", "")],  # which handlers a change wakes
                indexes={"node": lambda pod: [pod["spec"].get("nodeName", "")]},
            ),
        )

        async def reconcile(self, axn: Axn[Widget]) -> None:
            mine = axn.related("v1", "Pod", selector={"widget": axn.key.name})
            neighbours = axn.related("v1", "Pod", index=("node", mine[0]["spec"]["nodeName"]), namespace="*")
            axn.set_condition("Ready", len(mine) == axn.spec.size, message=f"{len(neighbours)} pods on the first node")

    def pod(name: str, **labels: str) -> Resource:
        metadata = {"name": name, "namespace": "default", "labels": labels}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"nodeName": "n1"}}

    axn = await testing.handle(Serving, widget("w1", size=1), observed=[pod("a", widget="w1"), pod("b")])
    testing.assert_condition(axn, "Ready", True, message="2 pods on the first node")


async def call() -> None:
    async def size_in_a_database() -> int:
        return 3

    class InAThread(Controller[Widget]):
        def reconcile(self, axn: Axn[Widget]) -> None:
            size = axn.call(size_in_a_database())
            axn.update_status(lambda status: {**status, "size": size})

    axn = await testing.handle(InAThread, widget())
    testing.assert_status(axn, size=3)


# --- what shall be so -------------------------------------------------------------------------------------------------


async def register_descendant() -> None:
    class Homes(Controller[Widget]):
        owns = (Owned("v1", "Namespace"), Owned("v1", "ConfigMap"))

        async def reconcile(self, axn: Axn[Widget]) -> None:
            namespace: Resource = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "my-ns"}}
            inside = {**config_map("size"), "metadata": {"name": "size", "namespace": "my-ns"}}
            axn.register_descendant(inside)
            axn.register_descendant(namespace, group=-1)  # applied before
            axn.register_descendant(config_map("kept"), omit_owner_ref=True)

    axn = await testing.handle(Homes, widget())
    assert [child["metadata"]["name"] for child in axn.descendants] == ["my-ns", "size", "kept"]

    class Ordered(Controller[Widget]):
        owns = (Owned("batch/v1", "Job"), Owned("v1", "ConfigMap"))

        async def reconcile(self, axn: Axn[Widget]) -> None:
            migration: Resource = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "migration"}}
            axn.register_descendant(migration)
            axn.register_descendant(config_map("app"), after=migration, when=is_ready)

    axn = await testing.handle(Ordered, widget())
    assert axn.waiting == "waiting for Job default/migration"


async def keep_descendant() -> None:
    class Snapshots(Controller[Widget]):
        """One ConfigMap per generation; the newest ones stay as they are, older ones are deleted."""

        owns = (Owned("v1", "ConfigMap"),)

        async def reconcile(self, axn: Axn[Widget]) -> None:
            for earlier in axn.children("v1", "ConfigMap")[-2:]:
                axn.keep_descendant(earlier)
            generation = axn.resource["metadata"]["generation"]
            axn.register_descendant(config_map(f"{axn.key.name}-{generation}", size=str(axn.spec.size)))

    earlier = [testing.child_of(widget("w1"), config_map(f"w1-{number}")) for number in range(-2, 1)]
    axn = await testing.handle(Snapshots, widget("w1"), observed=earlier)
    testing.assert_descendant(axn, "ConfigMap", "w1-1")
    testing.assert_pruned(axn, "ConfigMap", "w1--1")


def descendants() -> None:
    axn = testing.axn(widget(), version=Widget)
    axn.register_descendant(config_map("last"), group=1)
    axn.register_descendant(config_map("first"))
    assert [child["metadata"]["name"] for child in axn.descendants] == ["first", "last"]


def update_status() -> None:
    axn = testing.axn(widget(size=3), version=Widget)
    axn.update_status(WidgetStatus(size=axn.spec.size))
    axn.update_status(lambda status: {**status, "size": status["size"] + 1})
    assert axn.status == {"size": 4}


def set_condition() -> None:
    axn = testing.axn(widget(size=3), version=Widget)
    axn.set_condition("Ready", False, reason="Starting", message="1 of 3 are up")
    axn.set_condition("Reachable", None)
    assert axn.conditions["Ready"]["reason"] == "Starting"
    assert axn.conditions["Reachable"]["status"] == "Unknown"


async def unfinished() -> None:
    class Waits(Controller[Widget]):
        async def reconcile(self, axn: Axn[Widget]) -> None:
            raise Wait("not yet")

    axn = await testing.handle(Waits, widget())
    assert axn.unfinished == ReconcileFailure("Waiting", "not yet")


def status() -> None:
    axn = testing.axn(widget(), version=Widget)
    axn.update_status(lambda status: {**status, "size": 3})
    assert axn.status == {"size": 3}


def conditions() -> None:
    axn = testing.axn(widget(), version=Widget)
    axn.set_condition("Ready", True)
    assert axn.conditions["Ready"]["status"] == "True"


async def requeue_after() -> None:
    class Polls(Controller[Widget]):
        async def reconcile(self, axn: Axn[Widget]) -> None:
            axn.requeue_after(30.0)

    axn = await testing.handle(Polls, widget())
    assert testing.assert_requeued(axn) == 30.0


async def requeue_at() -> None:
    class Nightly(Controller[Widget]):
        async def reconcile(self, axn: Axn[Widget]) -> None:
            midnight = axn.now.replace(hour=0, minute=0, second=0, microsecond=0)
            axn.requeue_at(midnight + timedelta(days=1))

    evening = datetime(2026, 3, 1, 21, 30, tzinfo=UTC)
    axn = await testing.handle(Nightly, widget(), now=evening)
    testing.assert_requeued(axn, at=datetime(2026, 3, 2, tzinfo=UTC))


async def halt() -> None:
    def only_large_ones(axn: Axn[Widget]) -> None:
        if axn.spec.size < 10:
            axn.halt()

    def never(axn: Axn[Widget]) -> None:
        raise AssertionError(f"{axn.key} came through")

    await Pipeline([only_large_ones, never]).run(testing.axn(widget(size=3), version=Widget))


# --- events -----------------------------------------------------------------------------------------------------------


def success_event() -> None:
    axn = testing.axn(widget(size=3), version=Widget)
    axn.success_event(reason="Resized", message="the size is 3")
    testing.assert_event(axn, "Resized", type="Normal")


def failure_event() -> None:
    axn = testing.axn(widget(), version=Widget)
    axn.failure_event(reason="NoBackup", message="the last backup is two days old")
    testing.assert_event(axn, "NoBackup", type="Warning")


def register_event() -> None:
    axn = testing.axn(widget(), version=Widget)
    axn.register_event(config_map("size"), "Normal", "Published", "Publish", "others can read the size")
    event = testing.assert_event(axn, "Published", action="Publish")
    assert event.related == config_map("size")


def events() -> None:
    axn = testing.axn(widget(), version=Widget, action="modify")
    axn.success_event()
    (event,) = axn.events
    assert (event.reason, event.action) == ("ReconcileSucceeded", "Reconcile")


# --- for steps --------------------------------------------------------------------------------------------------------


async def reconcile() -> None:
    def report_replacement(axn: Reconcile[Any]) -> None:
        """A step that emits an event; a step that only reads can take an `Axn`."""
        if axn.resource["metadata"].get("annotations", {}).get("example.com/replaced") == "true":
            axn.emit_at_end(Event(EventType.NORMAL, "Replaced", "Replace", "it takes the place of another object"))

    axn = testing.axn(widget(), version=Widget)
    await run_step(axn, report_replacement)
    assert axn.events == []


async def context() -> None:
    managers = []

    async def note_the_manager(axn: Reconcile[Any]) -> None:
        managers.append(axn.context.manager)

    axn = testing.axn(widget(), version=Widget)
    await run_step(axn, note_the_manager)
    assert managers == ["test/Controller"]


def shown() -> None:
    axn = testing.axn(widget(), version=Widget)
    axn.resource["metadata"]["labels"] = {"changed": "by the handler"}
    assert axn.shown.meta.labels is None


def emit_at_end() -> None:
    axn = testing.axn(widget(), version=Widget)
    axn.emit_at_end(Event(EventType.WARNING, "Paused", "Pause", "its owner asked for it"))
    assert [event.reason for event in axn.events] == ["Paused"]


def unwanted() -> None:
    axn = testing.axn(widget(), version=Widget, observed=[testing.child_of(widget(), config_map("old"))])
    axn.children("v1", "ConfigMap")
    children = axn.context.children(axn.uid) or []
    assert [child.key.name for _, child in axn.unwanted(children)] == ["old"]


def looked_at() -> None:
    axn = testing.axn(widget(), version=Widget)
    axn.observed(config_map("size"))
    assert axn.looked_at(config_map("size"))


def identity() -> None:
    axn = testing.axn(widget(), version=Widget)
    axn.resource["metadata"]["name"] = "other"
    assert axn.identity["metadata"]["name"] == "w1"


def renew() -> None:
    axn = testing.axn(widget(size=3), version=Widget)
    axn.renew(widget(size=4))
    assert axn.spec.size == 4


def descendant_groups() -> None:
    axn = testing.axn(widget(), version=Widget)
    for name, group in (("b", 1), ("a", 0), ("c", 1)):
        axn.register_descendant(config_map(name), group=group)
    names = [[child.resource["metadata"]["name"] for child in group] for group in axn.descendant_groups()]
    assert names == [["a"], ["b", "c"]]


def status_from() -> None:
    axn = testing.axn(widget(), version=Widget)
    axn.update_status(lambda status: {**status, "size": status.get("size", 0) + 1})
    assert axn.status_from({"size": 3}) == {"size": 4}


def mark_sent() -> None:
    axn = testing.axn(widget(), version=Widget, action=Action.MODIFY)
    axn.mark_sent("descendants")
    with pytest.raises(AlreadyApplied):
        axn.register_descendant(config_map("too late"))


def is_sent() -> None:
    axn = testing.axn(widget(), version=Widget)
    assert not axn.is_sent("status")
    axn.mark_sent("status")
    assert axn.is_sent("status")


def tasks() -> None:
    async def remind(run: TaskRun, name: str) -> Stop:
        return Stop(f"{name} was reminded of")

    axn = testing.axn(widget("w1"), version=Widget)
    task = PeriodicTask("remind-of-w1", remind, arguments=("w1",), interval=3600.0)
    assert axn.tasks.register(task)
    assert not axn.tasks.register(task)  # its id is taken


def controller() -> None:
    def log_the_limit(axn: Reconcile[Any]) -> None:
        limits.append(axn.controller.timeout)

    limits: list[float] = []
    axn = testing.axn(widget(), version=Widget)
    log_the_limit(axn)
    assert limits == [Controller.timeout]


def kind() -> None:
    axn = testing.axn(widget(), version=Widget)
    assert (axn.kind.api_version, axn.kind.kind) == (axn.resource["apiVersion"], "Widget")


def halted() -> None:
    axn = testing.axn(widget(), version=Widget)
    axn.halt()
    assert axn.halted


async def at_end() -> None:
    def count(axn: Reconcile[Any]) -> None:
        """A step that notes each reconcile that failed."""
        axn.at_end(lambda ended: failed.append(str(ended.key)) if ended.failure else None)

    async def fails(axn: Reconcile[Any]) -> None:
        raise Terminal("no such plan")

    failed: list[str] = []
    with pytest.raises(Terminal):
        await Pipeline([count, fails]).run(testing.axn(widget("w1"), version=Widget))
    assert failed == ["default/w1"]


def requeue_seconds() -> None:
    axn = testing.axn(widget(), version=Widget)
    axn.requeue_at(axn.now + timedelta(hours=1))
    assert axn.requeue_seconds == 3600.0


def requeue_time() -> None:
    axn = testing.axn(widget(), version=Widget)
    axn.requeue_at(axn.now)
    assert axn.requeue_time == axn.now


def requeue_within() -> None:
    axn = testing.axn(widget(), version=Widget)
    axn.requeue_after(60.0)
    axn.requeue_within(5.0)
    axn.requeue_within(30.0)
    assert axn.requeue_seconds == 5.0


def before_apply_descendants() -> None:
    class Labels(Reconcile[Any]):
        """The `axn_class` of a controller: each of its children gets a label."""

        def before_apply_descendants(self) -> None:
            for child in self.descendants:
                child["metadata"].setdefault("labels", {})["team"] = "blue"

    axn = testing.axn(widget(), version=Widget, axn_class=Labels)
    axn.register_descendant(config_map("size"))
    axn.before_apply_descendants()
    testing.assert_descendant(axn, "ConfigMap", "size", metadata={"labels": {"team": "blue"}})


def before_apply_status() -> None:
    class Counts(Reconcile[Any]):
        def before_apply_status(self, base: Resource) -> Resource:
            return {**super().before_apply_status(base), "writes": base.get("writes", 0) + 1}

    axn = testing.axn(widget(), version=Widget, axn_class=Counts)
    assert axn.before_apply_status({"writes": 1})["writes"] == 2


def before_emit_event() -> None:
    class Loud(Reconcile[Any]):
        def before_emit_event(self, event: Event) -> Event:
            return replace(event, message=event.message.upper())

    axn = testing.axn(widget(), version=Widget, axn_class=Loud)
    event = Event(EventType.NORMAL, "Resized", "Resize", "size 3")
    assert axn.before_emit_event(event).message == "SIZE 3"
