"""Bug: a child that cannot be changed is deleted and made again, and only this one reconcile knows of it."""

from bonny import Axn, Controller

from .lamp import ALL_OF_CONFIG_MAPS, CONFIG_MAP, Lamp, child_of, children


class LampController(Controller[Lamp]):
    rules = ALL_OF_CONFIG_MAPS

    async def reconcile(self, axn: Axn[Lamp]) -> None:
        found = await children(axn)
        if not found and not axn.resource.get("status", {}).get("made"):
            await axn.client.create(CONFIG_MAP, child_of(axn, axn.key.name))
        elif found and found[0]["data"]["colour"] != axn.spec.colour:
            await axn.client.delete(CONFIG_MAP, axn.key)
            await axn.client.create(CONFIG_MAP, child_of(axn, axn.key.name))
        axn.update_status(lambda status: {**status, "made": True})
