"""Shown: streams that show the objects of a unit test, and how a test makes a child, or a ready one.

    job = testing.child_of(cron_job(), {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j1"}})
    token = await testing.handle(CronJobController, cron_job(), observed=[job])

`axn.children` and `axn.related` read from these streams as in a running operator.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar, cast

import msgspec

from bonny.client.api import Client
from bonny.core.objects import Item, decode_item
from bonny.core.watch import Put, WatchOptions
from bonny.engine.stream import Stream
from bonny.kinds import Kind, builtin
from bonny.readiness import CONDITIONS, PHASES, REPLICAS
from bonny.resource import OWNER_UID, Resource, gvk_of, owner_reference, owners_of

K = TypeVar("K", bound=Kind)


def child_of(owner: Mapping[str, Any], child: Resource) -> Resource:
    """`child` with the owner's UID in the label `bonny.dev/owner-uid`, and an owner reference. Use it in `observed`.

    Does not: make a child of a running operator, which applies its children itself, with its own label and field
    manager, and lists and prunes no others."""
    metadata = child["metadata"]
    labels = {**metadata.get("labels", {}), OWNER_UID: owner_reference(owner)["uid"]}
    references = [*metadata.get("ownerReferences", ()), owner_reference(owner)]
    return {**child, "metadata": {**metadata, "labels": labels, "ownerReferences": references}}


def ready(child: Mapping[str, Any]) -> Resource:
    """`child` with a status that `is_ready` accepts: all replicas, a true condition, the phase. Use it in `observed`.

    Fields of its own status stay. A child of a kind that is not built in gets the condition Ready.
    """
    kind, status = child["kind"], dict(child.get("status") or {})
    replicas = (child.get("spec") or {}).get("replicas", 1)
    if builtin(child["apiVersion"], kind) is None:
        condition = "Ready"
    elif kind in REPLICAS:
        wanted = {"desiredNumberScheduled": replicas} if kind == "DaemonSet" else {"readyReplicas": replicas}
        status |= {**wanted, **dict.fromkeys(REPLICAS[kind], replicas)}
        condition = ""
    else:
        status |= {"phase": PHASES[kind]} if kind in PHASES else {}
        condition = CONDITIONS.get(kind, "")
    if generation := child["metadata"].get("generation"):
        status["observedGeneration"] = generation
    if condition:
        others = [each for each in status.get("conditions") or () if each["type"] != condition]
        status["conditions"] = [*others, {"type": condition, "status": "True"}]
    return {**child, "status": status} if status else {**child}


class ShownObjects(Stream):
    """A stream that has listed the objects of a test. It is never run, and needs no client."""

    synced = True
    current = True

    def __init__(self, kind: Kind, items: Iterable[Item] = ()) -> None:
        super().__init__(cast("Client", None), kind, namespace=None, options=WatchOptions())
        for item in items:
            self.store.apply(Put(item, live=True))


def streams_of(kinds: Iterable[K], observed: Sequence[Resource], *, handled: Resource) -> dict[K, list[Stream]]:
    """A stream for each kind, with the objects of that kind in `observed`."""
    return {
        kind: [ShownObjects(kind, [_item(each, kind, handled) for each in observed if gvk_of(each) == kind.gvk])]
        for kind in kinds
    }


def _item(resource: Resource, kind: Kind, handled: Resource) -> Item:
    """The object; in the namespace of the handled one if it names none, and with the label of a child if it names the
    handled one by an owner reference alone."""
    item, owner = decode_item(msgspec.json.encode(resource)), handled["metadata"]
    namespace = (item.meta.namespace or owner.get("namespace", "")) if kind.namespaced else ""
    labels = {OWNER_UID: owner["uid"]} if owner.get("uid") in owners_of(resource) else {}
    meta = msgspec.structs.replace(item.meta, namespace=namespace, labels={**(item.meta.labels or {}), **labels})
    return Item(meta, item.raw)
