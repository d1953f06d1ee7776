"""Parity: a `compat.Controller` has the types of the version class in brackets, too."""

from __future__ import annotations

from typing import Any, assert_type

from bonny import Operator, Owned, Resource, compat
from bonny.events import Event
from bonny.steps import default_steps
from bonny_dev import testing

from .api import Gadget, OtherStatus, Widget, WidgetStatus


class Widgets(compat.Controller[Widget]):
    owns = (Owned("v1", "ConfigMap"),)

    async def reconcile(self, axn: compat.Axn[Widget]) -> None:
        assert_type(axn.spec.replicas, int)
        axn.spec.replica  # error: attr-defined, reportAttributeAccessIssue
        axn.update_status(WidgetStatus(phase=None))
        axn.update_status(OtherStatus(phase="Running"))  # error: call-overload, reportArgumentType, reportCallIssue
        axn.register_before_apply_status(keep)
        axn.register_before_emit_event(keep)  # error: arg-type, reportArgumentType
        assert_type(axn.states, frozenset[compat.State])
        await axn.apply_descendants()


class Gadgets(compat.Controller[Gadget]):
    def reconcile(self, axn: compat.Axn[Widget]) -> None:  # error: override, reportIncompatibleMethodOverride
        axn.assigns["seen"] = True


def keep(resource: Resource, axn: compat.Axn[Any]) -> Resource:
    return resource


def loud(event: Event, axn: compat.Axn[Any]) -> Event:
    return event


@compat.step
def step(axn: compat.Axn[Any]) -> None:
    axn.register_before_emit_event(loud)


operator = Operator(name="w", group="example.com", controllers=[Widgets], steps=(step, *default_steps()))


async def handled(widget: Resource) -> None:
    token = await testing.handle(Widgets, widget)
    assert_type(token.spec.replicas, int)
    testing.assert_condition(token, "Ready")
