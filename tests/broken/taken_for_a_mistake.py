"""Bug: a record that is there already, from a call whose answer was lost, is taken for a mistake of the user."""

from aiohttp import ClientResponseError

from bonny import Axn, Controller, Owned, Terminal

from .lamp import Lamp, call, child_of


class LampController(Controller[Lamp]):
    owns = (Owned("v1", "ConfigMap"),)

    async def reconcile(self, axn: Axn[Lamp]) -> None:
        axn.register_descendant(child_of(axn, axn.key.name))
        try:
            await call("PUT", f"/lamps/{axn.uid}", {"colour": axn.spec.colour})
        except ClientResponseError as error:
            if error.status == 409:
                raise Terminal("another lamp has this name") from error
            raise

    async def finalize(self, axn: Axn[Lamp]) -> None:
        await call("DELETE", f"/lamps/{axn.uid}")
