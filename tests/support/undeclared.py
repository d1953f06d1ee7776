"""Undeclared: an operator whose declarations do not fit what it does. It reads a Secret, and never makes its ConfigMap.

python -m tests.support.undeclared        runs it as `invoke run-local` does
"""

from __future__ import annotations

import contextlib

from bonny import Axn, Controller, Operator, Owned
from bonny.api import Spec, Version
from bonny.errors import ApiError
from bonny.kinds import Kind

SECRET = Kind("v1", "Secret")


class DoorSpec(Spec):
    """What the user wants."""


class Door(Version):
    """Something that is locked."""

    kind = "Door"
    version = "v1"
    storage = True
    hub = True
    spec: DoorSpec = DoorSpec()


class DoorController(Controller[Door]):
    """Looks for the key."""

    owns = (Owned("v1", "ConfigMap"),)

    async def reconcile(self, axn: Axn[Door]) -> None:
        with contextlib.suppress(ApiError):
            await axn.client.get(SECRET, "key", namespace=axn.key.namespace)


operator = Operator(name="doors", group="doors.example.com", controllers=[DoorController])

if __name__ == "__main__":
    from bonny_dev.tasks import run_local
    from bonny_dev.tasks.options import LocalRun

    run_local.run(operator, LocalRun())
