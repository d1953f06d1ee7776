"""Bug: a field that is removed from the spec stays in the child."""

from bonny import Axn, Controller
from bonny.client.errors import NotFound

from .lamp import ALL_OF_CONFIG_MAPS, CONFIG_MAP, Lamp, child_of


class LampController(Controller[Lamp]):
    rules = ALL_OF_CONFIG_MAPS

    async def reconcile(self, axn: Axn[Lamp]) -> None:
        note = {"note": axn.spec.note} if axn.spec.note else {}
        child = child_of(axn, axn.key.name, **note)
        try:
            await axn.client.merge_patch(CONFIG_MAP, axn.key, child)
        except NotFound:
            await axn.client.create(CONFIG_MAP, child)
