"""Scheduler: chooses nodes for the pods that name it in `spec.schedulerName`; the one class that users write.

    class CheapNode(Scheduler):
        name = "cheap-node"

        def select_node_for_pod(self, pod, nodes):
            return next((node for node in nodes.fitting(pod) if node.labels.get("cheap") == "true"), None)

How it is run: `server`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, ClassVar, Final, TypeAlias

from ..client.api import Client
from ..errors import OptionError
from ..naming import check_dns_label
from ..resource import Resource
from .binding import Binding
from .fits import Check, fits
from .nodes import Nodes
from .streams import NODE, POD, Selection
from .views import NodeView, PodView

__all__ = ["Choice", "Scheduler", "matcher"]

Choice: TypeAlias = Mapping[str, Any] | None


class Scheduler:
    """Selects a node for each pod, one pod after the other: the highest priority first, then the oldest.

    Guarantees: a pod is bound at most once; the room of a chosen node counts as taken at once; what fails is tried
    again with growing waits, and others are not held up by it.
    Does not: evict anybody to make room.
    """

    name: ClassVar[str] = ""
    """Pods that have this as `spec.schedulerName` are its own."""

    check: ClassVar[Check | None] = fits
    """Asked about each choice before it is bound: a function of pod and node. None: every choice is bound, also those
    that overcommit a node, and of pods that ask for what is not honoured. Default: `fits`."""

    timeout: ClassVar[float] = 10.0
    """Seconds that a choice may take, where it is `async`. Default 10."""

    max_bindings: ClassVar[int] = 32
    """Bindings, and reports on pods without a node, that are on their way at the same time. Default 32."""

    dry_run: ClassVar[bool] = False
    """Decide and log, and write nothing. Default False."""

    client: Client
    """Set before anything is called."""

    # --- what users define --------------------------------------------------------------------------------------------

    def select_node_for_pod(self, pod: PodView, nodes: Nodes) -> Choice | Awaitable[Choice]:
        """The node for `pod`, or None to let it wait. May be `async`; if not, it must not block the loop.

        `nodes` are all of them, also those into which the pod does not fit: see `nodes.fitting(pod)`.
        """
        raise NotImplementedError

    def nodes(self) -> Selection | Awaitable[Selection]:
        """The nodes to choose from: a `Kind` with selectors, kept up to date by a watch, or a list.

        A list may come from an `async def`, and is asked for again about once a second. Default: all nodes.
        """
        return NODE

    def pods(self) -> Selection | Awaitable[Selection]:
        """The pods to choose for, as with `nodes`; those among them that fit `field_selector`. Default: all pods."""
        return POD

    @property
    def field_selector(self) -> str:
        """Which pods are its own. Fields: metadata.name, metadata.namespace, spec.schedulerName, spec.nodeName,
        status.phase."""
        return f"spec.schedulerName={self.name},spec.nodeName="

    async def bind(self, pod: PodView, node: NodeView) -> None:
        """Assign `pod` to `node`. Raises and RBAC: as `Binding.create`."""
        await Binding.create(self.client, Binding.new(pod, node), uid=pod.uid)

    @classmethod
    def rules(cls) -> list[Resource]:
        """The RBAC rules that it needs, in a ClusterRole. Override it to add what your methods ask for."""
        return [
            {"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": ["get", "list", "watch"]},
            {"apiGroups": [""], "resources": ["pods/binding"], "verbs": ["create"]},
            {"apiGroups": [""], "resources": ["pods/status"], "verbs": ["patch"]},
        ]

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if cls.name:
            check_dns_label(cls.name, f"name of {cls.__name__}")
        if cls.check is not None and len(inspect.signature(cls.check).parameters) != 2:
            raise OptionError(f"{cls.__name__}.check takes pod and node: write a function outside the class, or None")
        if not cls.timeout > 0:
            raise OptionError(f"{cls.__name__}.timeout is {cls.timeout}: use more than 0 seconds")
        if cls.max_bindings < 1:
            raise OptionError(f"{cls.__name__}.max_bindings is {cls.max_bindings}: use 1 or more")


# What can be asked of a pod by `field_selector`, as the API server knows it.
FIELDS: Final[Mapping[str, Callable[[PodView], str]]] = {
    "metadata.name": lambda pod: pod.name,
    "metadata.namespace": lambda pod: pod.key.namespace,
    "spec.nodeName": lambda pod: pod.decoded.spec.node_name,
    "spec.schedulerName": lambda pod: pod.decoded.spec.scheduler_name,
    "status.phase": lambda pod: pod.decoded.status.phase,
}


def matcher(selector: str, *, where: str) -> Callable[[PodView], bool]:
    """Whether a pod has the fields that `selector` says; `where` names it in messages. Raises: `OptionError`."""
    terms = []
    for term in filter(None, (part.strip() for part in selector.split(","))):
        found = re.fullmatch(r"([\w.]+)\s*(==|!?=)\s*(.*)", term)
        if found is None or found[1] not in FIELDS:
            raise OptionError(f"{where} has {term!r}: write field=value or field!=value, of {', '.join(FIELDS)}")
        terms.append((FIELDS[found[1]], found[2] != "!=", found[3]))
    return lambda pod: all((field(pod) == value) is equal for field, equal, value in terms)
