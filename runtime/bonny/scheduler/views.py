"""Views: a pod and a node as a scheduler sees them.

    pod.requests, pod["metadata"]["name"], node.labels, node.taints, node.allocatable, node.free

Each is one version of an object: a mapping like any other object of the API, decoded when it is read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, ClassVar, Final, TypeAlias

import msgspec

from ..core.objects import Item
from ..resource import Key, Resource
from .demand import CPU, Demand, Pod, Taint, amounts, decode_pod, demand_of
from .quantity import nano

TopologyDomains: TypeAlias = frozenset[tuple[str, str]]
"""Labels of nodes, key and value: each names the nodes that have it."""

FINISHED: Final = ("Succeeded", "Failed")


class _View(Mapping[str, Any]):
    kind: ClassVar[str]

    def __init__(self, item: Item) -> None:
        self.item = item
        self.name: str = item.meta.name
        """`metadata.name`."""

        self.labels: Mapping[str, str] = item.meta.labels or {}
        """`metadata.labels`; empty if there are none."""

    @cached_property
    def resource(self) -> Resource:
        """The whole object. Shared: do not change it."""
        return {**self.item.decode(), "apiVersion": "v1", "kind": self.kind}

    def __getitem__(self, field: str) -> Any:
        return self.resource[field]

    def __iter__(self) -> Iterator[str]:
        return iter(self.resource)

    def __len__(self) -> int:
        return len(self.resource)

    # Compare by identity, not field by field.
    __hash__ = object.__hash__
    __eq__ = object.__eq__


class PodView(_View):
    """One version of a pod: a mapping, as in `pod["spec"]["priority"]`, with the parts that schedulers ask for."""

    kind = "Pod"

    @property
    def key(self) -> Key:
        """Namespace and name."""
        return self.item.key

    @property
    def uid(self) -> str:
        """`metadata.uid`."""
        return self.item.meta.uid

    @property
    def identity(self) -> Resource:
        """This version of the pod, as Events and patches refer to it."""
        meta = self.item.meta
        names = {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {**names, "resourceVersion": meta.resource_version}}

    @cached_property
    def decoded(self) -> Pod:
        """The fields that scheduling needs."""
        return decode_pod(self.item.raw)

    @cached_property
    def demand(self) -> Demand:
        """Everything that the pod asks of a node. Raises: `InvalidObject` for a text that is not a quantity."""
        return demand_of(self.decoded)

    @property
    def requests(self) -> Mapping[str, int]:
        """Requested resources: CPU in thousandths, everything else in units."""
        return dict(self.demand.requests)

    @property
    def node_name(self) -> str:
        """The node on which it takes room, until it has finished. Empty: none."""
        return "" if self.decoded.status.phase in FINISHED else self.decoded.spec.node_name

    @property
    def pending(self) -> bool:
        """Whether it may be bound: it has no node, and is not finished, being deleted or held by scheduling gates."""
        spec, phase = self.decoded.spec, self.decoded.status.phase
        excluded = spec.node_name or spec.scheduling_gates or phase in FINISHED
        return not excluded and self.item.meta.deletion_timestamp is None

    @property
    def order(self) -> tuple[int, str]:
        """Sort key: the highest priority first, then the oldest."""
        return -self.decoded.spec.priority, self.decoded.metadata.creation_timestamp or ""


class Usage:
    """Resources and host ports that the pods of one node take, bound and assumed ones."""

    __slots__ = ("pods", "ports", "requested", "scored")

    def __init__(self) -> None:
        self.requested: Counter[str] = Counter()
        """The sum of the requests: CPU in thousandths, everything else in units."""

        self.scored = (0, 0)
        self.ports: Counter[tuple[str, str, int]] = Counter()
        self.pods: dict[str, PodView] = {}
        """The pods by UID, as in `any(pod.labels.get("team") == "a" for pod in node.usage.pods.values())`."""

    def count(self, pod: PodView, sign: int) -> None:
        """For the runtime: add the pod (1) or remove it (-1)."""
        demand = pod.demand
        for name, amount in demand.requests:
            self.requested[name] += sign * amount
        for port in demand.ports:
            self.ports[port] += sign
            if not self.ports[port]:
                del self.ports[port]
        self.scored = (self.scored[0] + sign * demand.scored[0], self.scored[1] + sign * demand.scored[1])
        if sign > 0:
            self.pods[pod.uid] = pod
        else:
            del self.pods[pod.uid]


class _Node(msgspec.Struct, frozen=True, gc=False):
    spec: dict[str, Any] = {}
    status: dict[str, msgspec.Raw] = {}


_decode_node: Final = msgspec.json.Decoder(_Node).decode
_decode_amounts: Final = msgspec.json.Decoder(dict[str, str]).decode


class NodeView(_View):
    """One version of a node, with the current usage of its pods: a mapping, as in `node["status"]["nodeInfo"]`."""

    kind = "Node"

    def __init__(self, item: Item, usage: Usage, repelling: Callable[[PodView], TopologyDomains]) -> None:
        # `usage` changes with the node's pods; `repelling` returns the domains whose pods keep a pod away.
        super().__init__(item)
        self.usage: Usage = usage
        """Resources that its bound and assumed pods take."""

        self._repelling = repelling

    @cached_property
    def _decoded(self) -> _Node:
        return _decode_node(self.item.raw)

    @property
    def unschedulable(self) -> bool:
        """Whether it is cordoned."""
        return bool(self._decoded.spec.get("unschedulable"))

    @cached_property
    def taints(self) -> tuple[Taint, ...]:
        """Its taints, each with `key`, `value` and `effect`."""
        return msgspec.convert(self._decoded.spec.get("taints", ()), tuple[Taint, ...])

    @cached_property
    def allocatable(self) -> Mapping[str, int]:
        """Resources that it has for pods: CPU in thousandths, everything else in units."""
        listed = _decode_amounts(self._decoded.status.get("allocatable", b"{}"))
        return amounts({name: nano(amount) for name, amount in listed.items()})

    @cached_property
    def scored(self) -> tuple[int, int]:
        """Allocatable CPU and memory, the inputs of most scores."""
        return self.allocatable.get(CPU, 0), self.allocatable.get("memory", 0)

    @cached_property
    def size(self) -> tuple[int, ...]:
        """`scored`, rounded down to 7 binary digits: nodes of one kind differ by some kilobytes of memory."""
        excess = (max(amount.bit_length() - 7, 0) for amount in self.scored)
        return tuple(amount >> bits << bits for amount, bits in zip(self.scored, excess, strict=True))

    @property
    def free(self) -> Mapping[str, int]:
        """Allocatable resources minus the requests of bound and assumed pods."""
        free = {name: amount - self.usage.requested[name] for name, amount in self.allocatable.items()}
        return {**free, "pods": free.get("pods", 0) - len(self.usage.pods)}

    def repels(self, pod: PodView) -> bool:
        """Whether the anti-affinity of a pod in one of the node's topology domains excludes `pod`."""
        return not self._repelling(pod).isdisjoint(self.labels.items())
