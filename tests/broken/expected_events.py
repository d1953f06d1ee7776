"""Bug: after its writes it waits for as many events, and a watch may show two changes as one."""

import asyncio
from typing import Any

from bonny import Axn, Controller, Kind
from bonny.errors import BonnyError

from .lamp import ALL_OF_CONFIG_MAPS, CONFIG_MAP, Lamp, child_of, children

EXPECTED: dict[str, int] = {}


class LampController(Controller[Lamp]):
    rules = ALL_OF_CONFIG_MAPS

    async def reconcile(self, axn: Axn[Lamp]) -> None:
        if EXPECTED.get(axn.key.name, 0) > 0:
            axn.requeue_after(0.2)
            return
        found = [each for each in await children(axn) if each["metadata"]["ownerReferences"][0]["uid"] == axn.uid]
        data = found[0]["data"] if found else {}
        if not found:
            await self.write(axn, axn.client.create(CONFIG_MAP, child_of(axn, axn.key.name)))
        elif data["colour"] != axn.spec.colour:
            await self.write(axn, axn.client.merge_patch(CONFIG_MAP, axn.key, {"data": {"colour": axn.spec.colour}}))
        if data.get("seen") != axn.spec.colour:
            await asyncio.sleep(0.3)
            await self.write(axn, axn.client.merge_patch(CONFIG_MAP, axn.key, {"data": {"seen": axn.spec.colour}}))

    async def write(self, axn: Axn[Lamp], request: Any) -> None:
        EXPECTED[axn.key.name] = EXPECTED.get(axn.key.name, 0) + 1
        try:
            await request
        except BonnyError:
            EXPECTED[axn.key.name] -= 1
            raise


class ConfigMapController(Controller[Any]):
    resource = Kind("v1", "ConfigMap")

    async def reconcile(self, axn: Axn[Any]) -> None:
        EXPECTED[axn.key.name] = max(EXPECTED.get(axn.key.name, 0) - 1, 0)
