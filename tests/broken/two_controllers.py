"""Bug: two controllers write the same field of the same child, each another value."""

from typing import Any

from bonny import Axn, Controller, Kind, Owned

from .lamp import ALL_OF_CONFIG_MAPS, CONFIG_MAP, Lamp, child_of


class LampController(Controller[Lamp]):
    owns = (Owned("v1", "ConfigMap"),)

    async def reconcile(self, axn: Axn[Lamp]) -> None:
        axn.register_descendant(child_of(axn, axn.key.name, writer="one"))


class ConfigMapController(Controller[Any]):
    resource = Kind("v1", "ConfigMap")
    rules = ALL_OF_CONFIG_MAPS

    async def reconcile(self, axn: Axn[Any]) -> None:
        if axn.resource.get("data", {}).get("writer", "other") != "other":  # a child of the other controller
            await axn.client.merge_patch(CONFIG_MAP, axn.key, {"data": {"writer": "other"}})
