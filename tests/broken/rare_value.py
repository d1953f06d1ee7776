"""Bug: a value that the schema allows is not handled, and no sample has it."""

from bonny import Axn, Controller, Owned

from .lamp import Lamp, child_of

HERTZ = {"off": "0", "slow": "1"}


class LampController(Controller[Lamp]):
    owns = (Owned("v1", "ConfigMap"),)

    async def reconcile(self, axn: Axn[Lamp]) -> None:
        axn.register_descendant(child_of(axn, axn.key.name, hertz=HERTZ[axn.spec.blink]))
