"""Bug: a call to the external service goes on after the reconcile, so a later call can overtake it."""

import asyncio

from bonny import Axn, Controller

from .lamp import Lamp, call

ongoing = set[asyncio.Task[None]]()


class LampController(Controller[Lamp]):
    async def reconcile(self, axn: Axn[Lamp]) -> None:
        task = asyncio.create_task(call("PUT", f"/lamps/{axn.uid}", {"colour": axn.spec.colour}))
        ongoing.add(task)
        task.add_done_callback(ongoing.discard)

    async def finalize(self, axn: Axn[Lamp]) -> None:
        await call("DELETE", f"/lamps/{axn.uid}")
