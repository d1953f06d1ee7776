"""Bug: missing children are counted in a cache that does not show the last ones yet."""

from bonny import Axn, Controller, Owned

from .lamp import ALL_OF_CONFIG_MAPS, CONFIG_MAP, Lamp, child_of

CHILDREN = 2


class LampController(Controller[Lamp]):
    owns = (Owned("v1", "ConfigMap", label_selector="lamp"),)
    rules = ALL_OF_CONFIG_MAPS

    async def reconcile(self, axn: Axn[Lamp]) -> None:
        found = axn.children("v1", "ConfigMap", selector=f"lamp={axn.key.name}")
        for _ in range(CHILDREN - len(found)):
            await axn.client.create(CONFIG_MAP, child_of(axn))
        if len(found) < CHILDREN:
            axn.requeue_after(0.5)
