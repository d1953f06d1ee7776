"""Bug: the finalizer is removed while the cleanup still runs."""

import asyncio

from bonny import Axn, Controller

from .lamp import Lamp, call

TASKS: set[asyncio.Task[None]] = set()


async def clean_up(uid: str) -> None:
    await asyncio.sleep(0.3)  # the lamp has to cool down
    await call("DELETE", f"/lamps/{uid}")


class LampController(Controller[Lamp]):
    async def reconcile(self, axn: Axn[Lamp]) -> None:
        await call("PUT", f"/lamps/{axn.uid}", {"colour": axn.spec.colour})

    async def finalize(self, axn: Axn[Lamp]) -> None:
        TASKS.add(asyncio.create_task(clean_up(axn.uid)))
