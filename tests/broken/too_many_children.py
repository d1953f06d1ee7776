"""Bug: missing children are counted once, and a reconcile that is tried again trusts that count."""

from bonny import Axn, Controller

from .lamp import ALL_OF_CONFIG_MAPS, CONFIG_MAP, Lamp, child_of, children

CHILDREN = 2
COUNTED: dict[str, int] = {}


class LampController(Controller[Lamp]):
    rules = ALL_OF_CONFIG_MAPS

    async def reconcile(self, axn: Axn[Lamp]) -> None:
        if axn.uid not in COUNTED:
            COUNTED[axn.uid] = len(await children(axn))
        for _ in range(CHILDREN - COUNTED[axn.uid]):
            await axn.client.create(CONFIG_MAP, child_of(axn))
        del COUNTED[axn.uid]
