"""Bug: children that a larger size made stay when it is smaller again, so the end depends on whether it was seen."""

from bonny import Axn, Controller

from .lamp import ALL_OF_CONFIG_MAPS, CONFIG_MAP, Lamp, child_of


class LampController(Controller[Lamp]):
    rules = ALL_OF_CONFIG_MAPS

    async def reconcile(self, axn: Axn[Lamp]) -> None:
        for number in range(1, axn.spec.size + 1):
            await axn.client.apply(CONFIG_MAP, child_of(axn, f"{axn.key.name}-{number}"), manager="lamps")
