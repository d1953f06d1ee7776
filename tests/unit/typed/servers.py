"""Servers and the client: a version class in brackets or as a kind, and its typed spec."""

from __future__ import annotations

from typing import Any, assert_type

from bonny import Key, Kind, List, Reconciler, Resource, Spec, Version, Watcher
from bonny.client import Client


class GaugeSpec(Spec):
    """The desired state."""

    limit: int = 0


class Gauge(Version):
    """Something that is measured."""

    kind = "Gauge"
    version = "v1"
    spec: GaugeSpec


class Measures(Reconciler[Gauge]):
    rules = ({"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]},)

    async def reconcile(self, resource: Resource) -> None:
        assert_type(Gauge.spec_of(resource).limit, int)
        print(Gauge.spec_of(resource).limits)  # error: attr-defined, reportAttributeAccessIssue


class Follows(Watcher[Gauge]):
    async def add(self, resource: Resource) -> None:
        assert_type(Gauge.spec_of(resource), GaugeSpec)


class Pods(Reconciler):
    operation = List("v1", "Pod")

    def reconcile(self, resource: Resource) -> None: ...


def any_version(version: type[Version], resource: Resource) -> Any:
    return version.spec_of(resource)


async def requests(client: Client, resource: Resource) -> None:
    assert_type(await client.get(Gauge, Key("default", "g")), Resource)
    assert_type(await client.list(Gauge, namespace="default"), list[Resource])
    await client.delete(Kind("v1", "Pod"), ("default", "p"))
    await client.delete(Gauge, "default", "g")  # error: call-arg, reportCallIssue
    await client.get(GaugeSpec, "g")  # error: arg-type, reportArgumentType
