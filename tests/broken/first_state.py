"""Bug: the first size that is seen is kept, and a watch may show an object only after it was changed."""

from bonny import Axn, Controller

from .lamp import ALL_OF_CONFIG_MAPS, CONFIG_MAP, Lamp, child_of, children


class LampController(Controller[Lamp]):
    rules = ALL_OF_CONFIG_MAPS

    async def reconcile(self, axn: Axn[Lamp]) -> None:
        own = [each for each in await children(axn) if each["metadata"]["ownerReferences"][0]["uid"] == axn.uid]
        first = own[0]["data"]["first"] if own else str(axn.spec.size)
        await axn.client.apply(CONFIG_MAP, child_of(axn, axn.key.name, first=first), manager="lamps")
