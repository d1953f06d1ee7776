"""The operator of `received`: for each Parent a ConfigMap of the same size, and a status. Run as a script.

`SCALE_NAME` is its name, `SCALE_BUCKETS` the number of buckets; 0: one process handles everything.
"""

from __future__ import annotations

import os
import sys

from bonny import Axn, Controller, Operator, Owned, Spec, Status, Version, WithConditions
from bonny.main import main
from bonny.sharding import Sharding

__all__ = ["GROUP", "Parent"]

GROUP = "scale.example.com"


class ParentSpec(Spec):
    """The wanted state."""

    size: int = 1
    text: str = ""


class ParentStatus(Status, WithConditions):
    """The present state."""

    size: int = 0


class Parent(Version):
    """Has a child of its size."""

    kind = "Parent"
    plural = "parents"
    version = "v1"
    storage = True
    hub = True
    spec: ParentSpec = ParentSpec()
    status: ParentStatus


class Parents(Controller[Parent]):
    owns = (Owned("v1", "ConfigMap"),)
    max_concurrent = 10

    async def reconcile(self, axn: Axn[Parent]) -> None:
        axn.register_descendant(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": axn.key.name},
                "data": {"size": str(axn.spec.size), "text": axn.spec.text},
            }
        )
        axn.update_status(lambda status: {**status, "size": axn.spec.size})


if __name__ == "__main__":
    buckets = int(os.environ["SCALE_BUCKETS"])
    sharding = Sharding(buckets=buckets) if buckets else None
    operator = Operator(
        name=os.environ["SCALE_NAME"], group=GROUP, controllers=[Parents], crds=[Parent], sharding=sharding
    )
    sys.exit(main(operator, ["run"]))
