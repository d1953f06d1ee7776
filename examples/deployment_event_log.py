"""DeploymentEventLog: logs changes of Deployments, a built-in kind.

`Kind` names a kind without a version class. The runtime writes neither status nor finalizers of such objects.
"""

import logging
from typing import Any

from bonny import Axn, Controller, Kind, Operator, Resource

log = logging.getLogger(__name__)


class DeploymentEventLogController(Controller[Any]):
    resource = Kind("apps/v1", "Deployment")

    async def add(self, axn: Axn[Any]) -> None:
        track_event("add", axn.resource)

    async def modify(self, axn: Axn[Any]) -> None:
        track_event("modify", axn.resource)

    async def reconcile(self, axn: Axn[Any]) -> None:
        track_event("reconcile", axn.resource)

    async def delete(self, axn: Axn[Any]) -> None:
        track_event("delete", axn.resource)


def track_event(kind: str, deployment: Resource) -> None:
    """Log one event of the life of a Deployment."""
    metadata = deployment["metadata"]
    log.info("deployment event", extra={"event": kind, "object": f"{metadata['namespace']}/{metadata['name']}"})


operator = Operator(name="deployment-event-log", group="example.com", controllers=[DeploymentEventLogController])
