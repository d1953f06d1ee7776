"""Binding: the object that assigns a pod to a node, and the outcome of posting one.

The outcome depends on the state of the server, never on the text of an answer:

    accepted                      -> bound; it counts as assumed until the stream shows it
    conflict, and the pod is      -> bound by another scheduler, or by ours: an answer was lost
    bound, or not the same pod
    gone                          -> settled: nothing is left to do
    no answer, 5xx                -> unknown: the pod keeps its room, and the same Binding is posted again
    anything else                 -> refused: the room is released, and the pod is tried again later
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

from ..client.api import Client
from ..client.errors import Conflict, NotFound, NotServed, ServerError, Unreachable
from ..errors import ApiError, UsageError
from ..resource import Resource, key_of
from .streams import POD
from .views import NodeView, PodView


class Binding:
    """Creates and posts Bindings."""

    @staticmethod
    def new(pod: Mapping[str, Any], node: Mapping[str, Any]) -> Resource:
        """The Binding of `pod` to `node`."""
        # The name of a view is known without decoding the whole object, which would be most of the cost.
        key = pod.key if isinstance(pod, PodView) else key_of(pod)
        name = node.name if isinstance(node, NodeView) else node["metadata"]["name"]
        return {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": key.name, "namespace": key.namespace},
            "target": {"apiVersion": "v1", "kind": "Node", "name": name},
        }

    @staticmethod
    async def create(client: Client, binding: Resource, *, uid: str = "") -> None:
        """Post `binding` to the pod's binding subresource; `uid` distinguishes the pod from others of its name.

        Guarantees: a pod that has a node keeps it. The request is sent once; after `Unreachable` the pod may be bound
        or not, and the same Binding can be posted again.
        Does not: check that the pod fits, or that the node exists.
        Raises: `Conflict` when the pod has a node already, is being deleted, or has another UID; `NotFound` when it is
        gone; and the other `ApiError`s.
        RBAC: create pods/binding in the pod's namespace.
        """
        metadata = binding["metadata"] | ({"uid": uid} if uid else {})
        await client.create(POD, {**binding, "metadata": metadata}, subresource="binding")


class BindingOutcome(Enum):
    """The outcome of a Binding; see the module."""

    BOUND = "bound"
    SETTLED = "settled"
    UNKNOWN = "unknown"
    REFUSED = "refused"


async def outcome_of(error: BaseException, *, client: Client, pod: PodView, node: NodeView) -> BindingOutcome:
    """The outcome of a Binding of `pod` to `node` that failed with `error`. After a conflict the pod is read."""
    if isinstance(error, NotFound):
        return BindingOutcome.SETTLED
    if isinstance(error, (Unreachable, NotServed, ServerError, TimeoutError)):
        return BindingOutcome.UNKNOWN
    if not isinstance(error, Conflict):
        return BindingOutcome.REFUSED
    try:
        live = await client.get(POD, pod.name, namespace=pod.key.namespace)
    except NotFound:
        return BindingOutcome.SETTLED
    except (ApiError, UsageError):
        return BindingOutcome.UNKNOWN
    live_node = live["spec"].get("nodeName")
    if live["metadata"]["uid"] == pod.uid and live_node in (None, node.name):
        return BindingOutcome.BOUND if live_node else BindingOutcome.REFUSED
    return BindingOutcome.SETTLED
