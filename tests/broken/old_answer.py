"""Bug: a read right after a write is taken for the truth, and a record that it does not show is made once more."""

from bonny import Axn, Controller

from .lamp import Lamp, call, read


class LampController(Controller[Lamp]):
    async def reconcile(self, axn: Axn[Lamp]) -> None:
        await call("PUT", f"/lamps/{axn.uid}", {"colour": axn.spec.colour})
        if await read(f"/lamps/{axn.uid}") is None:
            await call("PUT", f"/spare-lamps/{axn.uid}", {"colour": axn.spec.colour})

    async def finalize(self, axn: Axn[Lamp]) -> None:
        await call("DELETE", f"/lamps/{axn.uid}")
