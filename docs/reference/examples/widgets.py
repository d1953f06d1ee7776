"""Widgets: the kind that the examples of the reference are about, and how its objects are made."""

from __future__ import annotations

from bonny import (
    Axn,
    Controller,
    Field,
    Owned,
    Resource,
    Spec,
    Status,
    Version,
    WithConditions,
    WithObservedGeneration,
)

GROUP = "reference.example.com"


class WidgetSpec(Spec):
    """What the user wants."""

    size: int = Field(default=1, ge=1, le=100)
    secret: str = ""


class WidgetStatus(Status, WithConditions, WithObservedGeneration):
    """What the operator reports."""

    size: int = 0


class Widget(Version):
    """A thing of some size."""

    kind = "Widget"
    plural = "widgets"
    version = "v1"
    storage = True
    hub = True
    spec: WidgetSpec
    status: WidgetStatus


def widget(name: str = "w1", **spec: object) -> Resource:
    """A Widget as the API server would hand it out."""
    metadata = {"name": name, "namespace": "default", "uid": f"uid-of-{name}", "generation": 1}
    return {"apiVersion": f"{GROUP}/v1", "kind": "Widget", "metadata": metadata, "spec": spec}


def applied(name: str = "w1", **spec: object) -> Resource:
    """A Widget as a user applies it."""
    made = widget(name, **spec)
    return {**made, "metadata": {"name": name, "namespace": "default"}}


def config_map(name: str, **data: str) -> Resource:
    """A ConfigMap in the namespace of its owner."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


class Publishes(Controller[Widget]):
    """A ConfigMap that holds the size."""

    owns = (Owned("v1", "ConfigMap"),)

    async def reconcile(self, axn: Axn[Widget]) -> None:
        axn.register_descendant(config_map(f"{axn.key.name}-size", size=str(axn.spec.size)))
        axn.set_condition("Ready", True, message=f"the size is {axn.spec.size}")
