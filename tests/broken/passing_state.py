"""Bug: the external record is made when a state of the child is seen that passes, and a watch may never show it."""

import asyncio
from typing import Any

from bonny import Axn, Controller, Kind

from .lamp import ALL_OF_CONFIG_MAPS, CONFIG_MAP, Lamp, call, child_of

TO_CALL: dict[str, str] = {}


class LampController(Controller[Lamp]):
    rules = ALL_OF_CONFIG_MAPS

    async def reconcile(self, axn: Axn[Lamp]) -> None:
        for phase in ("cold", "heating", "hot"):
            await axn.client.apply(CONFIG_MAP, child_of(axn, axn.key.name, phase=phase), manager="lamps")
            await asyncio.sleep(0.3)

    async def finalize(self, axn: Axn[Lamp]) -> None:
        await call("DELETE", f"/lamps/{axn.uid}")


class ConfigMapController(Controller[Any]):
    resource = Kind("v1", "ConfigMap")

    async def reconcile(self, axn: Axn[Any]) -> None:
        child = axn.resource
        owner = child["metadata"]["ownerReferences"][0]["uid"]
        if child["data"]["phase"] == "heating":
            TO_CALL[owner] = child["data"]["colour"]
        if owner in TO_CALL:
            await call("PUT", f"/lamps/{owner}", {"colour": TO_CALL[owner]})
            del TO_CALL[owner]
