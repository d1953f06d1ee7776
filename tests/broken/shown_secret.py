"""Bug: for one value of a field, the content of a Secret is copied to the status."""

import base64

from bonny import Axn, Controller, Owned

from .lamp import Lamp, child_of

TOKEN = "a-long-random-token"


class LampController(Controller[Lamp]):
    owns = (Owned("v1", "Secret"),)

    async def reconcile(self, axn: Axn[Lamp]) -> None:
        secret = child_of(axn, axn.key.name)
        encoded = base64.b64encode(TOKEN.encode()).decode()
        axn.register_descendant({**secret, "kind": "Secret", "data": {"token": encoded}})
        seen = f"called with {TOKEN}" if axn.spec.blink == "fast" else "called"
        axn.update_status(lambda status: {**status, "child": seen})
