"""Resource: a Kubernetes object as a plain mapping, with functions that answer common questions about it.

You need it to build or read objects without typed models (`bonny.api`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

# Fixed, so that versions of an operator, and of this runtime, upgrade into each other.
OWNER_UID: Final = "bonny.dev/owner-uid"
"""The label with the UID of the object's owner."""

MANAGED_BY: Final = "app.kubernetes.io/managed-by"
"""The recommended label with the tool that manages an object; here the operator's name."""

APPLY_ORDER: Final = "bonny.dev/apply-order"
"""The annotation with the group of a descendant, or its level after others; without it, 0."""

PAUSED: Final = "bonny.dev/paused"
"""The annotation that lets the handlers of an object rest, unless its value is `false`."""

RECONCILE_AT: Final = "bonny.dev/reconcile-at"
"""The annotation of which each new value, such as a time, runs the handler of the object."""

LISTED: Final = 10

Resource: TypeAlias = dict[str, Any]
"""A Kubernetes object as decoded from JSON: apiVersion, kind, metadata and the rest."""


class Key(NamedTuple):
    """Namespace and name of an object. `namespace` is empty for cluster-scoped objects."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return printable(f"{self.namespace}/{self.name}" if self.namespace else self.name)


def printable(text: str, *, kept: str = "") -> str:
    """`text` with line breaks, control characters and invisible ones escaped as in JSON, except for those `kept`."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in kept else json.dumps(char)[1:-1] for char in text)


def key_of(resource: Mapping[str, Any]) -> Key:
    """The (namespace, name) of `resource`."""
    metadata = resource["metadata"]
    return Key(metadata.get("namespace") or "", metadata["name"])


def gvk_of(resource: Mapping[str, Any]) -> tuple[str, str]:
    """The (apiVersion, kind) of `resource`, to be compared with `Kind.gvk`."""
    return resource["apiVersion"], resource["kind"]


def named(gvk: tuple[str, str], key: Key) -> Resource:
    """The type and the name of an object, and nothing else of it."""
    return {"apiVersion": gvk[0], "kind": gvk[1], "metadata": {"name": key.name, "namespace": key.namespace}}


def identify(resource: Mapping[str, Any]) -> str:
    """A short name for logs and messages: `ConfigMap default/w1`."""
    return f"{printable(str(resource.get('kind', '?')))} {key_of(resource)}"


def listed(names: Sequence[str]) -> str:
    """The first names, and how many more there are: one owner may have thousands of children."""
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(names[:LISTED]) + more


def owner_reference(owner: Mapping[str, Any]) -> Resource:
    """The owner reference that makes `owner` the controller of an object."""
    metadata = owner["metadata"]
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def owners_of(resource: Mapping[str, Any]) -> set[str]:
    """The UIDs of the object's owners, from owner references and the label."""
    metadata = resource["metadata"]
    labelled = (metadata.get("labels") or {}).get(OWNER_UID)
    return {reference["uid"] for reference in metadata.get("ownerReferences") or ()} | (
        {labelled} if labelled else set()
    )


def has_all_of(live: Any, wanted: Any) -> bool:
    """Whether `live` contains everything in `wanted`; fields that the server added do not matter."""
    if isinstance(wanted, Mapping) and isinstance(live, Mapping):
        return all(has_all_of(live.get(name), value) for name, value in wanted.items())
    if isinstance(wanted, list) and isinstance(live, list) and len(wanted) == len(live):
        return all(map(has_all_of, live, wanted))
    # The server leaves out empty values.
    return wanted is None or bool(live == wanted) or (live is None and wanted in ({}, []))
