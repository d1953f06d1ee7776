"""Bug: a call to the external service that fails is logged and forgotten."""

import logging

from aiohttp import ClientError

from bonny import Axn, Controller

from .lamp import Lamp, call

log = logging.getLogger(__name__)


class LampController(Controller[Lamp]):
    async def reconcile(self, axn: Axn[Lamp]) -> None:
        try:
            await call("PUT", f"/lamps/{axn.uid}", {"colour": axn.spec.colour})
        except ClientError:
            log.warning("the service did not answer")

    async def finalize(self, axn: Axn[Lamp]) -> None:
        await call("DELETE", f"/lamps/{axn.uid}")
