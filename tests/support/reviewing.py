"""An operator for tests whose webhooks fail in every way. Run as a script."""

from __future__ import annotations

import asyncio
import sys
import time
from typing import Any, Literal

from bonny import Axn, Controller, Kind, Operator, Owned, Resource, Spec, Version
from bonny.main import main
from bonny.webhooks import Admission, Denied, Review

GROUP = "reviewed.example.com"
SECRET = "a value that nobody may read"


class BoxSpec(Spec):
    """What the user wants."""

    mode: Literal["good", "bad", "raises", "exits", "waits", "blocks-a-thread"] = "good"
    colour: str | None = None


class Box(Version):
    """Reviewed before it is stored."""

    kind = "Box"
    plural = "boxes"
    version = "v1"
    storage = True
    hub = True
    spec: BoxSpec = BoxSpec()


class CrateSpec(Spec):
    """What the user wants."""

    width: int = 1


class Crate(Version):
    """Stored in this version; the other one says `size`."""

    kind = "Crate"
    plural = "crates"
    version = "v2"
    storage = True
    hub = True
    spec: CrateSpec = CrateSpec()


class OldCrateSpec(Spec):
    """What the user wants."""

    size: int = 1


class OldCrate(Version):
    """The version before."""

    kind = "Crate"
    plural = "crates"
    version = "v1"
    spec: OldCrateSpec = OldCrateSpec()

    @staticmethod
    def to_hub(resource: Resource) -> Resource:
        return {**resource, "spec": {"width": resource["spec"]["size"]}}

    @staticmethod
    def from_hub(resource: Resource) -> Resource:
        return {**resource, "spec": {"size": resource["spec"]["width"]}}


class BoxController(Controller[Box]):
    owns = (Owned("v1", "ConfigMap"),)

    async def reconcile(self, axn: Axn[Box]) -> None:
        metadata = {"name": f"box-{axn.key.name}"}
        axn.register_descendant({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "b"}})

    async def finalize(self, axn: Axn[Box]) -> None:
        """Nothing to clean up; the finalizer is what the rows are about."""


class BoxAdmission(Admission[Box]):
    timeout = 2

    async def default(self, review: Review[Box]) -> None:
        if review.spec.colour is None:
            review.spec.colour = "red"

    async def validate(self, review: Review[Box]) -> None:
        match review.spec.mode:
            case "bad":
                raise Denied("is not accepted", field="spec.mode")
            case "raises":
                raise ValueError(SECRET)
            case "exits":
                sys.exit(3)
            case "waits":
                await asyncio.sleep(3600)


class ThreadAdmission(Admission[Box]):
    timeout = 2

    def validate(self, review: Review[Box]) -> None:
        if review.spec.mode == "blocks-a-thread":
            time.sleep(3600)


class ConfigMapAdmission(Admission[Any]):
    """Of a kind that is not ours: it fails open."""

    resource = Kind("v1", "ConfigMap")
    object_selector = {"reviewed": "yes"}

    async def validate(self, review: Review[Any]) -> None:
        if review.resource.get("data") == {"bad": "yes"}:
            raise Denied("is bad", field="data")


operator = Operator(
    name="reviewing",
    group=GROUP,
    controllers=(BoxController, BoxAdmission, ThreadAdmission, ConfigMapAdmission, Crate, OldCrate),
    version="1.0.0",
)

if __name__ == "__main__":
    sys.exit(main(operator))
