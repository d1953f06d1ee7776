"""Views: a pod and a node as they are shown to whoever selects.

    pod.requests, pod["metadata"]["name"], node.labels, node.taints, node.allocatable, node.free

Each is one version of an object. They are mappings like any other object of the API, and decode what is looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final

import msgspec

from ..core.objects import Item
from ..resource import Key, Resource
from .demand import CPU, Demand, Pod, Taint, amounts, decode_pod, demand_of
from .quantity import nano

if TYPE_CHECKING:
    from .assume import AssumeCache, Usage

__all__ = ["NodeView", "PodView"]

FINISHED: Final = ("Succeeded", "Failed")


class _View(Mapping[str, Any]):
    kind: ClassVar[str]

    def __init__(self, item: Item) -> None:
        self.item = item
        self.name = item.meta.name
        self.labels: Mapping[str, str] = item.meta.labels or {}

    @cached_property
    def resource(self) -> Resource:
        """The whole object, without what is nested too deeply; shared by all who look, so not to be changed."""
        return {**self.item.decode(cut=True), "apiVersion": "v1", "kind": self.kind}

    def __getitem__(self, field: str) -> Any:
        return self.resource[field]

    def __iter__(self) -> Iterator[str]:
        return iter(self.resource)

    def __len__(self) -> int:
        return len(self.resource)

    # Two views are one when they are one: nobody means to compare objects field by field.
    __hash__ = object.__hash__
    __eq__ = object.__eq__


class PodView(_View):
    """One version of a pod."""

    kind = "Pod"

    @property
    def key(self) -> Key:
        return self.item.key

    @property
    def uid(self) -> str:
        return self.item.meta.uid

    @property
    def identity(self) -> Resource:
        """This version of it, as Events and patches name it."""
        meta = self.item.meta
        named = {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {**named, "resourceVersion": meta.resource_version}}

    @cached_property
    def decoded(self) -> Pod:
        return decode_pod(self.item.raw)

    @cached_property
    def demand(self) -> Demand:
        """What it asks of a node. Raises: `InvalidObject` for a quantity that is none."""
        return demand_of(self.decoded)

    @property
    def requests(self) -> Mapping[str, int]:
        """What it requests: CPU in thousandths, everything else in units."""
        return dict(self.demand.requests)

    @property
    def node_name(self) -> str:
        """Where it takes room: its node, until it has finished. Empty: nowhere."""
        return "" if self.decoded.status.phase in FINISHED else self.decoded.spec.node_name

    @property
    def pending(self) -> bool:
        """Whether it may be bound: it has no node, is not finished, deleted or held by gates."""
        spec, phase = self.decoded.spec, self.decoded.status.phase
        settled = spec.node_name or spec.scheduling_gates or phase in FINISHED
        return not settled and self.item.meta.deletion_timestamp is None

    @property
    def order(self) -> tuple[int, str]:
        """Sorts first the highest priority, and of equals the oldest."""
        return -self.decoded.spec.priority, self.decoded.metadata.creation_timestamp or ""


class _NodeSpec(msgspec.Struct, frozen=True, gc=False):
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class _NodeStatus(msgspec.Struct, frozen=True, gc=False):
    allocatable: dict[str, str] = {}


class _Node(msgspec.Struct, frozen=True, gc=False):
    spec: _NodeSpec = _NodeSpec()
    status: _NodeStatus = _NodeStatus()


_decode_node: Final = msgspec.json.Decoder(_Node).decode


class NodeView(_View):
    """One version of a node, with what its pods take now."""

    kind = "Node"

    def __init__(self, item: Item, cache: AssumeCache) -> None:
        """`cache` knows what pods are there."""
        super().__init__(item)
        self._cache = cache

    @cached_property
    def _decoded(self) -> _Node:
        return _decode_node(self.item.raw)

    @property
    def unschedulable(self) -> bool:
        """Whether it is cordoned."""
        return self._decoded.spec.unschedulable

    @property
    def taints(self) -> tuple[Taint, ...]:
        return self._decoded.spec.taints

    @cached_property
    def allocatable(self) -> Mapping[str, int]:
        """What it has for pods: CPU in thousandths, everything else in units."""
        return amounts({name: nano(amount) for name, amount in self._decoded.status.allocatable.items()})

    @property
    def usage(self) -> Usage:
        """What its bound and assumed pods take."""
        return self._cache.usage(self.name)

    @cached_property
    def scored(self) -> tuple[int, int]:
        """Allocatable CPU and memory, by which most scores go."""
        return self.allocatable.get(CPU, 0), self.allocatable.get("memory", 0)

    @property
    def free(self) -> Mapping[str, int]:
        """Allocatable without what bound and assumed pods take."""
        usage = self.usage
        free = {name: amount - usage.requested[name] for name, amount in self.allocatable.items()}
        return {**free, "pods": free.get("pods", 0) - len(usage.pods)}

    def repels(self, pod: PodView) -> bool:
        """Whether a pod that runs in one of its topology domains wants none like this one there."""
        return not self._cache.repelled(pod).isdisjoint(self.labels.items())
