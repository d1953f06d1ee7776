"""Binding: the object by which a scheduler tells the API server where a pod runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..client.api import Client
from ..resource import Resource, key_of
from .cluster import POD
from .views import NodeView, PodView

__all__ = ["Binding"]


class Binding:
    """Makes and posts Bindings."""

    @staticmethod
    def new(pod: Mapping[str, Any], node: Mapping[str, Any]) -> Resource:
        """The Binding of `pod` to `node`."""
        # A view knows its name without being decoded as a whole, which is most of what a Binding would cost.
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
        """Post it to the pod's binding subresource; `uid` says which pod of that name is meant.

        Guarantees: a pod that has a node keeps it, whoever asks. It is sent once; after `Unreachable` the pod may be
        bound or not, and the same Binding can be sent again.
        Does not: check that the pod fits, or that the node exists.
        Raises: `Conflict` when the pod has a node already, is being deleted, or has another UID; `NotFound` when it is
        gone; and the other `ApiError`s.
        RBAC: create pods/binding in the pod's namespace.
        """
        metadata = binding["metadata"] | ({"uid": uid} if uid else {})
        await client.create(POD, {**binding, "metadata": metadata}, subresource="binding")
