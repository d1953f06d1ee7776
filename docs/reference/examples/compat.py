"""The examples are about the Widget of [widgets.py](examples/widgets.py); each is run by a test."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import pytest

from bonny import Owned, Resource, compat, telemetry
from bonny.errors import AlreadyApplied
from bonny.events import Event, EventType
from bonny.pipeline import Pipeline, run_step
from bonny_dev import testing
from docs.reference.examples.widgets import Widget, config_map, widget

# --- axn --------------------------------------------------------------------------------------------------------------


async def axn() -> None:
    class Sizes(compat.Controller[Widget]):
        owns = (Owned("v1", "ConfigMap"),)

        async def reconcile(self, axn: compat.Axn[Widget]) -> None:
            axn.assigns["size"] = axn.spec.size  # for the hook, and for later steps
            axn.register_before_apply_status(with_size)

    def with_size(resource: Resource, axn: compat.Axn[Any]) -> Resource:
        return {**resource, "status": {**resource["status"], "size": axn.assigns["size"]}}

    token = await testing.handle(Sizes, widget(size=3))
    assert token.before_apply_status({}) == {"size": 3}


def options() -> None:
    axn = testing.axn(widget(), version=Widget, axn_class=compat.Axn, options={"greeting": "hello"})
    assert axn.options["greeting"] == "hello"


def operator() -> None:
    axn = testing.axn(widget(), version=Widget, axn_class=compat.Axn)
    assert axn.operator == "test"


def identifier() -> None:
    axn = testing.axn(widget("w1"), version=Widget, axn_class=compat.Axn, action="modify")
    assert axn.identifier() == ("default/w1", "reference.example.com/v1", "Widget/modify")


async def states() -> None:
    axn = testing.axn(widget(), version=Widget, axn_class=compat.Axn)
    assert axn.states == frozenset()
    await axn.apply_descendants()
    assert axn.states == {compat.State.DESCENDANTS_APPLIED}


def clear_events() -> None:
    axn = testing.axn(widget(), version=Widget, axn_class=compat.Axn)
    axn.success_event()
    axn.clear_events()
    testing.assert_no_event(axn)


def emit_events() -> None:
    axn = testing.axn(widget(), version=Widget, axn_class=compat.Axn)
    axn.success_event()
    axn.emit_events()
    assert axn.events == []
    assert compat.State.EVENTS_EMITTED in axn.states


# --- sending early ----------------------------------------------------------------------------------------------------


async def apply_descendants() -> None:
    class InTwoSteps(compat.Controller[Widget]):
        owns = (Owned("v1", "ConfigMap"),)

        async def reconcile(self, axn: compat.Axn[Widget]) -> None:
            axn.register_descendant(config_map("size"))
            await axn.apply_descendants(create_events=False)
            axn.set_condition("Applied", True)

    axn = await testing.handle(InTwoSteps, widget())
    assert axn.is_sent("descendants")


async def apply_status() -> None:
    axn = testing.axn(widget(), version=Widget, axn_class=compat.Axn)
    axn.set_condition("Ready", False, reason="Starting")
    await axn.apply_status()
    with pytest.raises(AlreadyApplied):
        axn.set_condition("Ready", True)


async def safe_apply_status() -> None:
    class Long(compat.Controller[Widget]):
        async def reconcile(self, axn: compat.Axn[Widget]) -> None:
            axn.set_condition("Ready", False, reason="Starting")
            await axn.safe_apply_status()  # a person sees it now; the object may be gone meanwhile
            axn.success_event(reason="Started")

    axn = await testing.handle(Long, widget())
    assert axn.is_sent("status")


# --- hooks ------------------------------------------------------------------------------------------------------------


async def register_before_apply_descendants() -> None:
    def with_size(descendants: list[Resource], axn: compat.Axn[Widget]) -> list[Resource]:
        return [{**child, "data": {**child["data"], "size": str(axn.spec.size)}} for child in descendants]

    axn = testing.axn(widget(size=3), version=Widget, axn_class=compat.Axn)
    axn.register_before_apply_descendants(with_size)
    axn.register_descendant(config_map("a", colour="red"))
    await axn.apply_descendants()
    testing.assert_descendant(axn, "ConfigMap", "a", data={"colour": "red", "size": "3"})


def register_before_apply_status() -> None:
    def with_size(resource: Resource, axn: compat.Axn[Widget]) -> Resource:
        return {**resource, "status": {**resource["status"], "size": axn.spec.size}}

    axn = testing.axn(widget(size=3), version=Widget, axn_class=compat.Axn)
    axn.register_before_apply_status(with_size)
    assert axn.before_apply_status({}) == {"size": 3}


def register_before_emit_event() -> None:
    reasons = []

    def note(event: Event, _: compat.Axn[Widget]) -> Event:
        reasons.append(event.reason)
        return event

    axn = testing.axn(widget(), version=Widget, axn_class=compat.Axn)
    axn.register_before_emit_event(note)
    axn.success_event(reason="Resized")
    axn.emit_events()
    assert reasons == ["Resized"]


async def register_after_processed() -> None:
    said = []
    axn = testing.axn(widget(), version=Widget, axn_class=compat.Axn)
    axn.register_after_processed(lambda _: said.append("registered first"))
    axn.register_after_processed(lambda axn: said.append(f"failed: {axn.failure is not None}"))
    await Pipeline([]).run(axn)
    assert said == ["failed: False", "registered first"]


def before_apply_descendants() -> None:
    axn = testing.axn(widget(), version=Widget, axn_class=compat.Axn)
    axn.register_descendant(config_map("dropped"))
    axn.register_before_apply_descendants(lambda _descendants, _axn: [config_map("added")])
    axn.before_apply_descendants()
    assert axn.descendants == [config_map("added")]


def before_apply_status() -> None:
    axn = testing.axn(widget(), version=Widget, axn_class=compat.Axn)
    axn.register_before_apply_status(lambda resource, _: {**resource, "status": {"size": 3}})
    assert axn.before_apply_status({}) == {"size": 3}


def before_emit_event() -> None:
    axn = testing.axn(widget(), version=Widget, axn_class=compat.Axn)
    axn.register_before_emit_event(lambda event, _: replace(event, message=event.message.upper()))
    event = Event(EventType.NORMAL, "Resized", "Resize", "size 3")
    assert axn.before_emit_event(event).message == "SIZE 3"


# --- controller and steps ---------------------------------------------------------------------------------------------


async def controller() -> None:
    class Notes(compat.Controller[Widget]):
        async def reconcile(self, axn: compat.Axn[Widget]) -> None:
            axn.private["seen"] = axn.identifier()

    token = await testing.handle(Notes, widget("w1"))
    assert isinstance(token, compat.Axn)


async def step() -> None:
    ended = []

    @compat.step
    def note_the_end(axn: compat.Axn[Any]) -> None:
        axn.register_after_processed(lambda axn: ended.append(axn.identifier()[0]))

    axn = testing.axn(widget("w1"), version=Widget, axn_class=compat.Axn)
    await Pipeline([note_the_end]).run(axn)
    assert ended == ["default/w1"]


async def skip_observed_generations() -> None:
    seen = {**widget(), "status": {"observedGeneration": 1}}
    axn = testing.axn(seen, version=Widget, action="modify", reasons=["changed"])
    await run_step(axn, compat.SkipObservedGenerations())
    assert axn.halted

    child_changed = testing.axn(seen, version=Widget, action="modify", reasons=["changed", "child"])
    await run_step(child_changed, compat.SkipObservedGenerations())
    assert not child_changed.halted


async def add_managed_by_label_to_descendants() -> None:
    axn = testing.axn(widget(), version=Widget, axn_class=compat.Axn)
    await run_step(axn, compat.AddManagedByLabelToDescendants())
    axn.register_descendant(config_map("size"))
    await axn.apply_descendants()
    labels = {"app.kubernetes.io/managed-by": axn.operator}
    testing.assert_descendant(axn, "ConfigMap", "size", metadata={"labels": labels})


async def add_missing_gvk() -> None:
    axn = testing.axn({"metadata": {"name": "web", "namespace": "default"}})  # an item of a list has no kind
    await run_step(axn, compat.AddMissingGVK("apps/v1", "Deployment"))
    assert (axn.resource["apiVersion"], axn.resource["kind"]) == ("apps/v1", "Deployment")


# --- telemetry --------------------------------------------------------------------------------------------------------


def attach_logger(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    compat.attach_logger(["bonny.task.succeeded"])
    telemetry.execute("bonny.task.succeeded", {"duration": 0.5}, {"task": "backup"})
    assert caplog.messages == ["bonny.task.succeeded"]
    telemetry.detach(compat.LOGGER_ID)


def span() -> None:
    heard = []
    telemetry.attach_many("mine", ["mine.backup.start", "mine.backup.stop"], lambda name, *_: heard.append(name))
    with compat.span("mine.backup", {"object": "default/w1"}) as found:
        found["result"] = "stored"
    telemetry.detach("mine")
    assert heard == ["mine.backup.start", "mine.backup.stop"]


def metadata() -> None:
    assert compat.metadata({"task": "t"})["task"] == "t"


def measure() -> None:
    measurements, result = compat.measure(lambda: 6 * 7)
    assert result == 42
    assert measurements["duration"] >= 0.0
