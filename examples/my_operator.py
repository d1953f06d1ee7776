"""MyOperator: handlers for Pods, with options, a schema, and the effects of an error.

The class has the settings of every use; `configured` sets the options of one operator.
"""

import logging
from typing import Any

from bonny import Axn, Controller, Kind, Operator
from bonny.api import Model

log = logging.getLogger(__name__)


class Labels(Model):
    """The required labels; others do not matter."""

    team: str


class Metadata(Model):
    """The required metadata."""

    labels: Labels


class PodOfATeam(Model):
    """A Pod with a known team. Other Pods reach no handler; an event on them names the missing field."""

    metadata: Metadata


class MyOperator(Controller[Any]):
    resource = Kind("v1", "Pod")
    schema = PodOfATeam
    restart = "transient"
    shutdown_timeout = 5.0

    async def add(self, axn: Axn[Any]) -> None:
        self.say("add", axn)

    async def modify(self, axn: Axn[Any]) -> None:
        self.say("modify", axn)

    async def delete(self, axn: Axn[Any]) -> None:
        self.say("delete", axn)

    async def reconcile(self, axn: Axn[Any]) -> None:
        self.say("reconcile", axn)

    def say(self, action: str, axn: Axn[Any]) -> None:
        """Log it with the greeting of the options."""
        team = axn.resource["metadata"]["labels"]["team"]
        greeting = self.options["greeting"]
        log.info("pod", extra={"action": action, "object": str(axn.key), "team": team, "greeting": greeting})


operator = Operator(
    name="my-operator",
    group="example.com",
    controllers=[MyOperator.configured(namespace="default", reconcile_every=300.0, options={"greeting": "hello"})],
)
