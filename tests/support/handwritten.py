"""A hand-written operator for tests: two kinds of its own and one of Kubernetes' own. Run as a script."""

import asyncio
import os
import sys
import time
from typing import Any, Literal

from bonny import (
    AGE,
    Axn,
    Column,
    Controller,
    Field,
    Kind,
    Operator,
    Owned,
    Resource,
    Retry,
    Scope,
    Spec,
    Status,
    Terminal,
    Version,
    WithConditions,
    WithObservedGeneration,
)
from bonny.core.lease import LeaseTiming
from bonny.core.watch import WatchOptions
from bonny.main import main

# Fault tests wait for the end of silent watches, which is minutes away by default.
WATCH_SECONDS = float(os.environ.get("TEST_WATCH_SECONDS", "200"))
DEAF_SECONDS = float(os.environ.get("TEST_DEAF_SECONDS", "150"))
# Duration, renew deadline and retry period of the lease: with the defaults a failover takes 15 s.
DURATION, DEADLINE, RETRY = os.environ.get("TEST_LEASE_SECONDS", "15 10 2").split()


class WidgetSpec(Spec):
    """What the user wants."""

    size: int = Field(1, ge=1, le=100)
    mode: Literal["good", "raises", "retries", "terminal", "slow", "exits", "panics", "in-a-thread", "undeletable"] = (
        "good"
    )


class WidgetStatus(Status, WithConditions, WithObservedGeneration):
    """What is."""


class Widget(Version):
    """Publishes its size."""

    kind = "Widget"
    plural = "widgets"
    version = "v1"
    storage = True
    hub = True
    spec: WidgetSpec = WidgetSpec()
    status: WidgetStatus
    columns = (Column("Size", "integer", ".spec.size"), AGE)


class RegionSpec(Spec):
    """What the user wants."""

    colour: str = "red"


class RegionStatus(Status, WithConditions, WithObservedGeneration):
    """What is."""


class Region(Version):
    """A cluster-scoped kind with a child in a namespace."""

    kind = "Region"
    plural = "regions"
    version = "v1"
    scope = Scope.CLUSTER
    storage = True
    hub = True
    spec: RegionSpec = RegionSpec()
    status: RegionStatus


class PanicException(BaseException):
    """As what extensions in Rust raise: no Exception."""


def config_map(name: str, data: dict[str, str], *, namespace: str | None = None) -> Resource:
    metadata = {"name": name} if namespace is None else {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


class WidgetController(Controller[Widget]):
    owns = (Owned("v1", "ConfigMap"),)
    reconcile_every = 1.0
    timeout = 0.5

    async def reconcile(self, axn: Axn[Widget]) -> None:
        axn.set_condition("Ready", True, message=f"size {axn.spec.size}")
        match axn.spec.mode:
            case "raises":
                raise ValueError("a secret that must not be shown")
            case "retries":
                raise Retry("not yet", after=0.2)
            case "terminal":
                raise Terminal("never")
            case "exits":
                sys.exit(3)
            case "panics":
                raise PanicException("a secret that must not be shown")
            case "in-a-thread":
                await asyncio.to_thread(time.sleep, 3600)
            case "slow":
                await asyncio.sleep(30)
        axn.register_descendant(config_map(axn.key.name, {"size": str(axn.spec.size)}))

    async def delete(self, axn: Axn[Widget]) -> None:
        if axn.spec.mode == "undeletable":
            raise Terminal("never")
        print(f"deleted {axn.key} size={axn.spec.size}", flush=True)


class RegionController(Controller[Region]):
    owns = (Owned("v1", "ConfigMap"),)

    timeout = 0.5

    def reconcile(self, axn: Axn[Region]) -> None:
        match axn.spec.colour:
            case "stuck":
                time.sleep(3600)
            case "exits":
                sys.exit(3)
            case "stops":
                next(iter(()))
            case "panics":
                raise PanicException
        child = config_map(f"region-{axn.key.name}", {"colour": axn.spec.colour}, namespace="default")
        axn.register_descendant(child)
        axn.set_condition("Ready", axn.observed(child) is not None)


class DeploymentController(Controller[Any]):
    resource = Kind("apps/v1", "Deployment", label_selector="watched=yes")
    owns = (Owned("v1", "ConfigMap"),)

    async def reconcile(self, axn: Axn[Any]) -> None:
        replicas = axn.spec.get("replicas", 1)
        axn.register_descendant(config_map(f"deployment-{axn.key.name}", {"replicas": str(replicas)}))

    async def delete(self, axn: Axn[Any]) -> None:
        print(f"deleted deployment {axn.key}", flush=True)


operator = Operator(
    name="handwritten",
    group="example.com",
    controllers=[WidgetController, RegionController, DeploymentController],
    version="1.0.0",
    lease=LeaseTiming(lease_duration=int(DURATION), renew_deadline=float(DEADLINE), retry_period=float(RETRY)),
    watch_options=WatchOptions(
        timeout=(WATCH_SECONDS, WATCH_SECONDS),
        grace=min(15.0, WATCH_SECONDS),
        deaf_after=DEAF_SECONDS,
        page_size=int(os.environ.get("TEST_PAGE_SIZE", "2000")),
    ),
)

if __name__ == "__main__":
    sys.exit(main(operator))
