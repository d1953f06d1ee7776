"""Bug: the status says that the child is made before it is."""

from bonny import Axn, Controller

from .lamp import ALL_OF_CONFIG_MAPS, CONFIG_MAP, Lamp, child_of


class LampController(Controller[Lamp]):
    rules = ALL_OF_CONFIG_MAPS

    async def reconcile(self, axn: Axn[Lamp]) -> None:
        if not axn.resource.get("status", {}).get("made"):
            await axn.client.merge_patch(Lamp, axn.key, {"status": {"made": True}}, subresource="status")
            await axn.client.create(CONFIG_MAP, child_of(axn, axn.key.name))
        axn.update_status(lambda status: {**status, "made": True})
