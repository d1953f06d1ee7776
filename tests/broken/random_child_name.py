"""Bug: the child has a random name, which is only known once the status is stored."""

from uuid import uuid4

from bonny import Axn, Controller

from .lamp import ALL_OF_CONFIG_MAPS, CONFIG_MAP, Lamp, child_of


class LampController(Controller[Lamp]):
    rules = ALL_OF_CONFIG_MAPS

    async def reconcile(self, axn: Axn[Lamp]) -> None:
        name = axn.resource.get("status", {}).get("child")
        if not name:
            name = f"{axn.key.name}-{uuid4().hex[:6]}"
            await axn.client.create(CONFIG_MAP, child_of(axn, name))
        axn.update_status(lambda status: {**status, "child": name})
