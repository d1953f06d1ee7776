"""Metered: an operator that has not begun to work, for tests of metrics."""

from __future__ import annotations

from typing import Any, cast

from prometheus_client.core import Metric

from bonny import Controller, Kind, List, Operator, Resource, Watcher
from bonny.client.api import Client
from bonny.client.config import Connection
from bonny.run.config import Config
from bonny.run.process import Process
from bonny.scheduler import Scheduler
from bonny.scheduler.nodes import Nodes
from bonny.scheduler.scheduler import Choice
from bonny.scheduler.views import PodView


class ConfigMaps(Controller[Any]):
    resource = Kind("v1", "ConfigMap")

    async def reconcile(self, axn: Any) -> None: ...


class Both(Controller[Any]):
    resource = (Kind("v1", "Secret"), Kind("apps/v1", "Deployment", label_selector="a=b"))

    async def reconcile(self, axn: Any) -> None: ...


class Pods(Watcher):
    operation = List("v1", "Pod")

    async def add(self, pod: Resource) -> None: ...


class First(Scheduler):
    name = "first"

    def select_node_for_pod(self, pod: PodView, nodes: Nodes) -> Choice:
        return nodes[0]


class Nowhere:
    """A cluster that nobody answers for."""

    source = "the test"

    async def connect(self) -> Connection:
        return Connection(server="http://127.0.0.1:1")


async def assembled(*schedulers: type[Scheduler]) -> Process:
    """A process that has its parts, and has not started."""
    operator = Operator(name="op", group="example.com", controllers=[ConfigMaps, Both, Pods, *schedulers])
    process = Process(operator, Config(http_host="127.0.0.1", http_port=0), Nowhere())
    client = Client(Nowhere(), user_agent="test")
    process._assemble(client)
    await client.close()
    process._started = True
    return process


def labels_of(family: Metric) -> frozenset[str]:
    """The labels that a family declares, `le` of the buckets aside."""
    labels: tuple[str, ...] = cast("Any", family)._labelnames
    return frozenset(labels)


def full_name(family: Metric) -> str:
    """The name as a scrape shows it: prometheus-client keeps the name of a counter without its `_total`."""
    return f"{family.name}_total" if family.type == "counter" else family.name
