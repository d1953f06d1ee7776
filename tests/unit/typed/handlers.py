"""Handlers: spec and status have the types of the version class in brackets."""

from __future__ import annotations

from typing import Any, assert_type

from bonny import Axn, Controller, Resource

from .api import Gadget, OtherStatus, Widget, WidgetStatus


class Widgets(Controller[Widget]):
    async def reconcile(self, axn: Axn[Widget]) -> None:
        assert_type(axn.spec.replicas, int)
        assert_type(axn.spec.cluster_ip, str | None)
        axn.spec.replica  # error: attr-defined, reportAttributeAccessIssue
        axn.update_status(WidgetStatus(phase=None))
        axn.update_status(lambda status: {**status, "phase": "Running"})
        axn.update_status(set_phase)
        axn.update_status(OtherStatus(phase="Running"))  # error: call-overload, reportArgumentType, reportCallIssue
        axn.update_status({"phase": "Running"})  # error: call-overload, reportArgumentType, reportCallIssue


def set_phase(status: Resource) -> None:
    status["phase"] = "Running"


class Gadgets(Controller[Gadget]):
    def reconcile(self, axn: Axn[Gadget]) -> None:
        axn.update_status(WidgetStatus())  # error: arg-type, reportArgumentType


def shared(axn: Axn[Widget | Gadget]) -> None:
    axn.update_status(lambda status: {**status, "phase": "Running"})


class Anything(Controller[Any]):
    async def reconcile(self, axn: Axn[Any]) -> None:
        axn.update_status(WidgetStatus(phase="Running"))
        axn.update_status(lambda status: {**status, "phase": "Running"})
