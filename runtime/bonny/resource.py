"""Resource: a Kubernetes object as a plain mapping, and the few questions everybody asks of one.

You need it to build or read objects without typed models.
You do not need it for typed specs: see `bonny.api`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

__all__ = ["Key", "Resource", "identify", "key_of", "owner_reference"]

Resource: TypeAlias = dict[str, Any]
"""A Kubernetes object as decoded from JSON: apiVersion, kind, metadata and the rest."""


class Key(NamedTuple):
    """Names one object of a kind. `namespace` is empty for cluster-scoped objects."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


def key_of(resource: Mapping[str, Any]) -> Key:
    """The (namespace, name) of `resource`."""
    metadata = resource["metadata"]
    return Key(metadata.get("namespace") or "", metadata["name"])


def identify(resource: Mapping[str, Any]) -> str:
    """A short name for logs and messages: `ConfigMap default/w1`."""
    return f"{resource.get('kind', '?')} {key_of(resource)}"


def owner_reference(owner: Mapping[str, Any]) -> Resource:
    """The controller owner reference to `owner`, as the garbage collector reads it."""
    metadata = owner["metadata"]
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
