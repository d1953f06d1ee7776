"""Bug: children beyond the size are deleted at once, though the watch may show an earlier size."""

from bonny import Axn, Controller

from .lamp import ALL_OF_CONFIG_MAPS, CONFIG_MAP, Lamp, child_of, children


class LampController(Controller[Lamp]):
    rules = ALL_OF_CONFIG_MAPS

    async def reconcile(self, axn: Axn[Lamp]) -> None:
        wanted = [f"{axn.key.name}-{number}" for number in range(1, axn.spec.size + 1)]
        for child in await children(axn):
            if child["metadata"]["name"] not in wanted:
                await axn.client.delete(CONFIG_MAP, (axn.key.namespace, child["metadata"]["name"]))
        for name in wanted:
            await axn.client.apply(CONFIG_MAP, child_of(axn, name), manager="lamps")
