"""An operator in two releases: the second serves its kind in a newer version, too, and works with that.

Run as a script; TEST_RELEASE says which.

Each Gear has a ConfigMap that shows its spec as the handler read it.
"""

import json
import os
import sys
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal

from bonny import Axn, Controller, Operator, Owned, Retry
from bonny.api import (
    BuiltIn,
    Duration,
    Field,
    IntOrString,
    ListMap,
    ListSet,
    Model,
    Quantity,
    Spec,
    Status,
    Version,
    WithConditions,
    WithObservedGeneration,
)
from bonny.main import main

GROUP = "evolving.example.com"
RELEASE = "TEST_RELEASE"


class Colour(StrEnum):
    """Which colour."""

    RED = "red"
    BLUE = "blue"


class Tooth(Model):
    """An item of a merged list."""

    name: Annotated[str, Field(min_length=1, max_length=5)]
    size: Annotated[int, Field(ge=1, le=9)] = 1


class GearSpec(Spec):
    """What the user wants."""

    mode: Literal["good", "good too", "raises", "retries"] = "good"
    size: Annotated[int, Field(ge=1, le=100)] = 1
    share: Annotated[float, Field(ge=0, le=1)] = 0.5
    colour: Colour = Colour.RED
    code: Annotated[str, Field(pattern="^[a-z]+$", max_length=5)] = "abc"
    since: datetime | None = None
    memory: Quantity = "1Gi"
    every: Duration = "1m"
    port: IntOrString = "http"
    teeth: Annotated[list[Tooth], ListMap("name"), Field(max_length=4)] = Field(default_factory=list)
    tags: Annotated[list[Annotated[str, Field(max_length=5)]], ListSet()] = Field(default_factory=list)
    labels: dict[str, str] = Field(default_factory=dict)
    toleration: Annotated[dict[str, Any], BuiltIn("v1", "Toleration")] | None = None


class GearStatus(Status, WithConditions, WithObservedGeneration):
    """What is."""


class GearV1(Version):
    """A gear, as the first release knew it."""

    kind = "Gear"
    version = "v1alpha1"
    storage = True
    hub = True
    spec: GearSpec = GearSpec()
    status: GearStatus


class OldGear(Version):
    """The same, in the second release."""

    kind = "Gear"
    version = "v1alpha1"
    deprecated = True
    spec: GearSpec = GearSpec()
    status: GearStatus


class Gear(Version):
    """A gear."""

    kind = "Gear"
    version = "v2alpha1"
    storage = True
    hub = True
    spec: GearSpec = GearSpec()
    status: GearStatus


def shown(spec: GearSpec) -> str:
    """What the child of an object with this spec shows."""
    return json.dumps(spec.model_dump(mode="json"), sort_keys=True)


async def _reconcile(axn: Axn[Any]) -> None:
    match axn.spec.mode:
        case "raises":
            raise ValueError("cannot")
        case "retries":
            raise Retry("not yet", after=0.2)
    metadata = {"name": f"gear-{axn.key.name}"}
    axn.register_descendant(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"spec": shown(axn.spec)}}
    )


class FirstController(Controller[GearV1]):
    owns = (Owned("v1", "ConfigMap"),)

    async def reconcile(self, axn: Axn[GearV1]) -> None:
        await _reconcile(axn)


class SecondController(Controller[Gear]):
    owns = (Owned("v1", "ConfigMap"),)

    async def reconcile(self, axn: Axn[Gear]) -> None:
        await _reconcile(axn)


first = Operator(name="evolving", group=GROUP, controllers=[FirstController], version="1.0.0")
second = Operator(name="evolving", group=GROUP, controllers=[SecondController], crds=[OldGear], version="2.0.0")

if __name__ == "__main__":
    sys.exit(main(first if os.environ.get(RELEASE) == "1" else second))
