"""The operator: one generic controller for a custom kind and a built-in kind, with an explicit list of steps.

`steps` replaces the default pipeline: here without Logger, Finalizer and PruneDescendants. ApplyStatus comes last,
because it reports the result of the other steps. `configured` limits the controller to a namespace; by default the
operator watches the namespaces in BONNY_WATCH_NAMESPACE.
"""

import logging
from typing import Any

from bonny import Kind, Operator, Spec, Status, Version, WithConditions, compat
from bonny.steps import ApplyDescendants, ApplyStatus, DelegateToController

log = logging.getLogger(__name__)


class MyCustomResourceSpec(Spec):
    """The desired state."""

    note: str = ""


class MyCustomResourceStatus(Status, WithConditions):
    """The observed state."""


class MyCustomResource(Version):
    """Something of ours."""

    kind = "MyCustomResource"
    version = "v1"
    storage = True
    hub = True
    spec: MyCustomResourceSpec
    status: MyCustomResourceStatus


class GenericController(compat.Controller[Any]):
    resource = (MyCustomResource, Kind("apps/v1", "Deployment"))

    async def reconcile(self, axn: compat.Axn[Any]) -> None:
        name, api_version, action = axn.identifier()
        log.info("seen", extra={"object": name, "api_version": api_version, "action": action})
        if axn.has_conditions:
            axn.set_condition("Seen", True)


operator = Operator(
    name="my-app",
    group="example.com",
    controllers=[GenericController.configured(namespace="default")],
    steps=(DelegateToController(), ApplyDescendants(), ApplyStatus()),
)
