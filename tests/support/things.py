"""Things: a kind for tests of the pipeline, whose objects say what shall become of them."""

from __future__ import annotations

from itertools import count
from typing import Any

from bonny import Axn, Controller, Field, Operator, Owned, Resource, Spec, Status, Version, WithConditions
from bonny.api import WithObservedGeneration

GROUP = "example.com"
_numbers = count(1)


class ThingSpec(Spec):
    """What the user wants."""

    parts: list[str] = Field(default_factory=list, description="Names of ConfigMaps.")
    image: str = "nginx:1"
    label: str = "one"
    secret: str = ""
    size: int = Field(1, ge=0, le=100)


class ThingStatus(Status, WithConditions, WithObservedGeneration):
    """What is."""

    parts: int = 0
    phase: str = ""


class Thing(Version):
    """Has parts."""

    kind = "Thing"
    plural = "things"
    version = "v1"
    storage = True
    hub = True
    spec: ThingSpec
    status: ThingStatus


def thing(name: str, *, namespace: str, **spec: Any) -> Resource:
    """A Thing, as a user applies it."""
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": f"{GROUP}/v1", "kind": "Thing", "metadata": metadata, "spec": spec}


def config_map(name: str, *, namespace: str = "", **data: str) -> Resource:
    """A ConfigMap; without a namespace it is in that of its owner."""
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


class PartsController(Controller[Thing]):
    """A ConfigMap for each of the parts."""

    owns = (Owned("v1", "ConfigMap"),)

    async def reconcile(self, axn: Axn[Thing]) -> None:
        """Register the parts."""
        for part in axn.spec.parts:
            axn.register_descendant(config_map(part, size=str(axn.spec.size)))
        axn.update_status(lambda status: {**status, "parts": len(axn.spec.parts)})
        axn.set_condition("Ready", True)


def operator_of(*controllers: type[Controller[Any]], **options: Any) -> Operator:
    """An operator with a name that no other test has used, so that its streams show it only what it made."""
    return Operator(name=f"things-{next(_numbers)}", group=GROUP, controllers=controllers, crds=[Thing], **options)


def condition_of(resource: Resource | None, type: str = "Reconciled") -> tuple[str, str]:  # noqa: A002  the API's word
    """Status and reason of a condition; empty while there is none."""
    for known in ((resource or {}).get("status") or {}).get("conditions", ()):
        if known["type"] == type:
            return known["status"], known["reason"]
    return "", ""
