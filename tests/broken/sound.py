"""No bug: children by the runtime, and an external record under the UID, after the finalizer and until it goes."""

from bonny import Axn, Controller, Owned

from .lamp import Lamp, call, child_of


class LampController(Controller[Lamp]):
    owns = (Owned("v1", "ConfigMap"),)

    async def reconcile(self, axn: Axn[Lamp]) -> None:
        note = {"note": axn.spec.note} if axn.spec.note else {}
        axn.register_descendant(child_of(axn, axn.key.name, **note))
        await call("PUT", f"/lamps/{axn.uid}", {"colour": axn.spec.colour})

    async def finalize(self, axn: Axn[Lamp]) -> None:
        await call("DELETE", f"/lamps/{axn.uid}")
