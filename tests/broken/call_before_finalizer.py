"""Bug: the external record is made before the finalizer is stored that removes it."""

from bonny import Axn, Controller
from bonny.steps import ApplyStatus, DelegateToController, Finalizer, Logger

from .lamp import Lamp, call


class LampController(Controller[Lamp]):
    async def reconcile(self, axn: Axn[Lamp]) -> None:
        await call("PUT", f"/lamps/{axn.uid}", {"colour": axn.spec.colour})

    async def finalize(self, axn: Axn[Lamp]) -> None:
        await call("DELETE", f"/lamps/{axn.uid}")


STEPS = (Logger(), DelegateToController(), Finalizer(), ApplyStatus())
