"""Widget: the smallest typed kind with a size, for tests that need no server."""

from __future__ import annotations

from bonny import Field, Resource, Spec, Status, Version, WithConditions


class WidgetSpec(Spec):
    """What the user wants."""

    size: int = Field(1, ge=1, le=100)


class WidgetStatus(Status, WithConditions):
    """What is."""


class Widget(Version):
    """A thing of some size."""

    kind = "Widget"
    plural = "widgets"
    version = "v1"
    storage = True
    hub = True
    spec: WidgetSpec = WidgetSpec()
    status: WidgetStatus


def widget(*, size: object = 3) -> Resource:
    metadata = {"name": "w1", "namespace": "default", "uid": "u-1", "generation": 4}
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata, "spec": {"size": size}}
