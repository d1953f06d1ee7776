"""Widget: a column of its own in `kubectl get`, and a permission that the runtime does not need.

`columns` and `rules` are read by `invoke manifest`; everything that `axn.client` does needs a rule.
"""

import logging

from bonny import AGE, Axn, Column, Controller, Kind, Operator, Spec, Version
from bonny.client.errors import NotFound

log = logging.getLogger(__name__)

CONFIG_MAP = Kind("v1", "ConfigMap")


class WidgetSpec(Spec):
    """The desired state."""

    test: str = ""


class Widget(Version):
    """A thing that is tested."""

    kind = "Widget"
    plural = "widgets"
    version = "v1"
    storage = True
    hub = True
    spec: WidgetSpec
    columns = (Column("Test", "string", ".spec.test", description="Value of the test field."), AGE)


class WidgetController(Controller[Widget]):
    rules = ({"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]},)

    async def add(self, axn: Axn[Widget]) -> None:
        log.info("widget added", extra={"object": str(axn.key), "has_settings": await has_settings(axn)})

    async def modify(self, axn: Axn[Widget]) -> None:
        log.info("widget modified", extra={"object": str(axn.key), "test": axn.spec.test})

    async def delete(self, axn: Axn[Widget]) -> None:
        log.info("widget deleted", extra={"object": str(axn.key)})

    async def reconcile(self, axn: Axn[Widget]) -> None:
        log.info("widget reconciled", extra={"object": str(axn.key)})


async def has_settings(axn: Axn[Widget]) -> bool:
    """Whether the API server has a ConfigMap of the widget's name; no cache is read."""
    try:
        await axn.client.get(CONFIG_MAP, axn.key.name, namespace=axn.key.namespace)
    except NotFound:
        return False
    return True


operator = Operator(name="widgets", group="widgets.example.com", controllers=[WidgetController])
