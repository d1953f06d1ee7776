"""Bug: what was made is remembered by name, so an object that is created again under the name counts as made."""

from bonny import Axn, Controller

from .lamp import ALL_OF_CONFIG_MAPS, CONFIG_MAP, Lamp, child_of

MADE: dict[str, str] = {}


class LampController(Controller[Lamp]):
    rules = ALL_OF_CONFIG_MAPS

    async def reconcile(self, axn: Axn[Lamp]) -> None:
        if MADE.get(axn.key.name) != axn.spec.colour:
            await axn.client.apply(CONFIG_MAP, child_of(axn, axn.key.name), manager="lamps")
            MADE[axn.key.name] = axn.spec.colour
