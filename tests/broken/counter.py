"""Bug: a counter grows by one with each reconcile, also with one that is repeated."""

from bonny import Axn, Controller

from .lamp import ALL_OF_CONFIG_MAPS, CONFIG_MAP, Lamp, child_of, children


class LampController(Controller[Lamp]):
    rules = ALL_OF_CONFIG_MAPS

    async def reconcile(self, axn: Axn[Lamp]) -> None:
        revision = max((int(each["data"]["revision"]) for each in await children(axn)), default=0) + 1
        child = child_of(axn, axn.key.name, revision=str(revision))
        await axn.client.apply(CONFIG_MAP, child, manager="lamps")
