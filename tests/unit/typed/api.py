"""The API class of the snippets."""

from __future__ import annotations

from typing import Annotated

from bonny import Field, Spec, Status, Version, WithConditions


class WidgetSpec(Spec):
    """The desired state."""

    replicas: int = 1
    cluster_ip: Annotated[str | None, Field(alias="clusterIP")] = None


class WidgetStatus(Status, WithConditions):
    """The observed state."""

    phase: str | None = None
    ready_replicas: int = 0


class Widget(Version):
    """A thing that runs."""

    kind = "Widget"
    version = "v1"
    storage = True
    hub = True
    spec: WidgetSpec
    status: WidgetStatus


class GadgetSpec(Spec):
    """The desired state of another kind, which has no status."""

    size: int = 1


class Gadget(Version):
    """A thing without a status."""

    kind = "Gadget"
    version = "v1"
    storage = True
    hub = True
    spec: GadgetSpec


class OtherStatus(Status):
    """The status of another kind."""

    phase: str | None = None
