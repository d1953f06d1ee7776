"""Views: a pod and a node as a scheduler sees them.

    pod["metadata"]["name"], pod.labels, node.labels, node.pods

Each is one version of an object: a mapping like any other object of the API, decoded when it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, TypeVar

import msgspec

from ..core.objects import Item
from ..resource import Key, Resource

if TYPE_CHECKING:
    from .assume import AssumeCache

T = TypeVar("T")

FINISHED: Final = ("Succeeded", "Failed")


class Derived:
    """An object with which filters keep values of their own."""

    @cached_property
    def _values(self) -> dict[Callable[[Any], Any], Any]:
        return {}

    def derived(self, compute: Callable[[Self], T]) -> T:
        """For filters: `compute(self)`, computed by the first call and kept with this object."""
        try:
            value: T = self._values[compute]
        except KeyError:
            value = self._values[compute] = compute(self)
        return value


class _View(Derived, Mapping[str, Any]):
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


class _PodPart(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """A part of a pod; fields that are not listed are skipped."""


class _PodMeta(_PodPart, frozen=True):
    creation_timestamp: str | None = None


class _PodSpec(_PodPart, frozen=True):
    node_name: str = ""
    scheduler_name: str = ""
    priority: int = 0
    scheduling_gates: tuple[dict[str, str], ...] = ()


class _PodStatus(_PodPart, frozen=True):
    phase: str = ""
    conditions: tuple[dict[str, Any], ...] = ()


class Pod(_PodPart, frozen=True):
    """The part of a pod that every scheduler uses."""

    metadata: _PodMeta = _PodMeta()
    spec: _PodSpec = _PodSpec()
    status: _PodStatus = _PodStatus()


_decode_pod: Final = msgspec.json.Decoder(Pod).decode


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
        return _decode_pod(self.item.raw)

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


class NodeView(_View):
    """One version of a node, with the pods on it at this moment: a mapping, as in `node["status"]["nodeInfo"]`."""

    kind = "Node"

    def __init__(self, item: Item, pods: Mapping[str, PodView], cache: AssumeCache) -> None:
        super().__init__(item)
        self.pods: Mapping[str, PodView] = pods
        """The pods on it, bound and assumed ones, by UID."""

        self.cache = cache  # for filters
