"""Scheduler: the base class of schedulers; chooses nodes for the pods that name it in `spec.schedulerName`.

class CheapNode(Scheduler):
    name = "cheap-node"

    def select_node_for_pod(self, pod, nodes):
        return next((node for node in nodes if node.labels.get("cheap") == "true"), None)
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, ClassVar, Final, TypeAlias

from ..annotations import signature_of
from ..client.api import Client
from ..errors import OptionError
from ..extras import Part
from ..lifespan import HasLifespan
from ..naming import check_dns_label
from ..resource import Resource
from .binding import Binding
from .nodes import Check, Fit, FunctionCheck, Nodes, Unchecked
from .streams import NODE, POD, Selection
from .views import NodeView, PodView

Choice: TypeAlias = Mapping[str, Any] | None


class Scheduler(Part, HasLifespan):
    """Selects a node for each pod, one pod at a time, by priority and then by age.

    Guarantees: a pod is bound at most once; a chosen pod counts on its node at once; a failed pod is tried again with
    growing delays, and does not delay others.
    Does not: evict pods to make room; compare pods with nodes, unless it has a `check`.
    """

    extra = "scheduler"

    name: ClassVar[str] = ""
    """The `spec.schedulerName` of the pods that it schedules."""

    check: ClassVar[Check | Callable[[PodView, NodeView], Fit | bool] | None] = None
    """Checks each choice before it is bound, and answers `nodes.fitting(pod)`: a function of pod and node, or filters
    such as `fits` of `bonny.filters`. Default None: every choice is bound, even if it overcommits the node, or the node
    has taints, or the pod has selectors."""

    timeout: ClassVar[float] = 10.0
    """Seconds that an `async` choice may take. Default 10."""

    max_bindings: ClassVar[int] = 32
    """Bindings and status writes that are under way at the same time. Default 32."""

    dry_run: ClassVar[bool] = False
    """Decide and log, but write nothing. Default False."""

    client: Client
    """Requests as the operator's identity; set before any method is called."""

    # --- methods to override ---

    def select_node_for_pod(self, pod: PodView, nodes: Nodes) -> Choice | Awaitable[Choice]:
        """The node for `pod`, or None to let it wait. May be `async`; otherwise it must not block the event loop.

        `nodes` includes nodes on which the pod does not fit: see `check`, and `nodes.fitting(pod)`.
        """
        raise NotImplementedError

    def nodes(self) -> Selection | Awaitable[Selection]:
        """The nodes to choose from: a `Kind` with selectors, which a watch follows, or a list.

        An `async def` may return a list, which is requested again about once a second. Default: all nodes.
        """
        return NODE

    def pods(self) -> Selection | Awaitable[Selection]:
        """The pods to schedule, in the form of `nodes`, narrowed by `field_selector`. Default: all pods."""
        return POD

    @property
    def field_selector(self) -> str:
        """Selects its pods. Fields: metadata.name, metadata.namespace, spec.schedulerName, spec.nodeName and
        status.phase."""
        return f"spec.schedulerName={self.name},spec.nodeName="

    async def bind(self, pod: PodView, node: NodeView) -> None:
        """Assign `pod` to `node`. Raises and RBAC: as `Binding.create`."""
        await Binding.create(self.client, Binding.new(pod, node), uid=pod.uid)

    rules: ClassVar[tuple[Resource, ...]] = ()
    """RBAC rules of your own requests, as a ClusterRole writes them. Default: only those of scheduling."""

    @classmethod
    def is_complete(cls) -> bool:
        return bool(cls.name)

    @classmethod
    def all_rules(cls) -> list[Resource]:
        """The RBAC rules that it needs, in a ClusterRole: for scheduling, and `rules`."""
        needed = (("nodes pods", "get list watch"), ("pods/binding", "create"), ("pods/status", "patch"))
        scheduling = [{"apiGroups": [""], "resources": one.split(), "verbs": verbs.split()} for one, verbs in needed]
        return [*scheduling, *cls.rules]

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if cls.name:
            check_dns_label(cls.name, f"name of {cls.__name__}")
        if cls.check is not None and len(signature_of(cls.check).parameters) != 2:
            raise OptionError(f"{cls.__name__}.check takes pod and node: use a function outside the class, or None")


def check_of(scheduler: Scheduler) -> Check:
    """The check of a scheduler, in one form."""
    check = type(scheduler).check
    if check is None or isinstance(check, Check):
        return check or Unchecked()
    return FunctionCheck(check, Fit(f"node(s) didn't pass the check of scheduler {scheduler.name}"))


# The fields of pods that the API server supports in field selectors.
FIELDS: Final[Mapping[str, Callable[[PodView], str]]] = {
    "metadata.name": lambda pod: pod.name,
    "metadata.namespace": lambda pod: pod.key.namespace,
    "spec.nodeName": lambda pod: pod.decoded.spec.node_name,
    "spec.schedulerName": lambda pod: pod.decoded.spec.scheduler_name,
    "status.phase": lambda pod: pod.decoded.status.phase,
}


def matcher(selector: str, *, where: str) -> Callable[[PodView], bool]:
    """A function that matches pods with `selector`; `where` is its name in messages. Raises: `OptionError`."""
    terms = []
    for term in filter(None, (part.strip() for part in selector.split(","))):
        match = re.fullmatch(r"([\w.]+)\s*(==|!?=)\s*(.*)", term)
        if match is None or match[1] not in FIELDS:
            raise OptionError(f"{where} has {term!r}: write field=value or field!=value, of {', '.join(FIELDS)}")
        terms.append((FIELDS[match[1]], match[2] != "!=", match[3]))
    return lambda pod: all((field(pod) == value) is equal for field, equal, value in terms)
