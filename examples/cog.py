"""Cog: the smallest controller with one handler for each action; it logs each action, and does nothing.

To see when a handler is called:

    invoke example cog
"""

import logging

from bonny import Axn, Controller, Field, Operator, Resource, Spec, Version

log = logging.getLogger(__name__)


class CogSpec(Spec):
    """The desired state."""

    teeth: int = Field(default=12, ge=3, description="How many teeth it has.")


class Cog(Version):
    """A wheel with teeth."""

    kind = "Cog"
    plural = "cogs"
    version = "v1"
    storage = True
    hub = True
    spec: CogSpec


class CogController(Controller[Cog]):
    async def add(self, axn: Axn[Cog]) -> None:
        say("add", axn.resource)

    async def modify(self, axn: Axn[Cog]) -> None:
        say("modify", axn.resource)

    async def reconcile(self, axn: Axn[Cog]) -> None:
        say("reconcile", axn.resource)

    async def delete(self, axn: Axn[Cog]) -> None:
        say("delete", axn.resource)


def say(action: str, cog: Resource) -> None:
    """Log the action and the name of the object; its content stays out of the log."""
    log.info("cog", extra={"action": action, "object": cog["metadata"]["name"]})


operator = Operator(name="cogs", group="cogs.example.com", controllers=[CogController])
