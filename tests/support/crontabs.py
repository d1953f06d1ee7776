"""Crontabs: two versions of one kind whose fields differ, as in the multi-version tutorial of kubebuilder.

v1, the hub, has the schedule as one text; v2 has one field for each part. v2 cannot write "@hourly".
"""

from __future__ import annotations

from typing import Annotated, Literal

from bonny.api import Field, ListMap, Model, Spec, Status, Version
from bonny.resource import Resource

GROUP = "crontabs.example.com"
FIELDS = ("minute", "hour", "dayOfMonth", "month", "dayOfWeek")


class CronTabV1Spec(Spec):
    """When to run which command."""

    schedule: str = Field(min_length=1)
    command: str
    suspend: bool = False
    concurrency: Literal["Allow", "Forbid"] = "Allow"
    contact: str | None = None


class CronTabStatus(Status):
    """What the operator reports."""

    runs: int | None = None


class CronTabV1(Version):
    """A command that runs at certain times."""

    kind = "CronTab"
    group = GROUP
    version = "v1"
    hub = True
    storage = True
    spec: CronTabV1Spec
    status: CronTabStatus


class Schedule(Model):
    """A part that is left out means always."""

    minute: str | None = None
    hour: str | None = None
    day_of_month: str | None = None
    month: str | None = None
    day_of_week: str | None = None


class Variable(Model):
    """One variable of the environment of the command."""

    name: str
    value: str | None = None


class CronTabV2Spec(Spec):
    """When to run which command; `concurrency` and `contact` are gone, `timeZone`, `user` and `environment` are new."""

    schedule: Schedule
    command: str
    suspend: bool = False
    time_zone: str | None = None
    user: str | None = None
    environment: Annotated[list[Variable] | None, ListMap("name")] = None


class CronTabV2(Version):
    """A command that runs at certain times."""

    kind = "CronTab"
    group = GROUP
    version = "v2"
    spec: CronTabV2Spec
    status: CronTabStatus

    @staticmethod
    def to_hub(resource: Resource) -> Resource:
        parts = resource["spec"].get("schedule", {})
        resource["spec"]["schedule"] = " ".join(parts.get(name, "*") for name in FIELDS)
        return resource

    @staticmethod
    def from_hub(resource: Resource) -> Resource:
        parts = resource["spec"]["schedule"].split()
        named = dict(zip(FIELDS, parts, strict=True))  # raises ValueError for "@hourly"
        resource["spec"]["schedule"] = {name: part for name, part in named.items() if part != "*"}
        return resource
