"""No bug: a child by the runtime, and a webhook, which is not called."""

from bonny import Axn, Controller, Owned
from bonny.webhooks import Admission, Review

from .lamp import Lamp, child_of


class LampController(Controller[Lamp]):
    owns = (Owned("v1", "ConfigMap"),)

    async def reconcile(self, axn: Axn[Lamp]) -> None:
        axn.register_descendant(child_of(axn, axn.key.name))


class LampAdmission(Admission[Lamp]):
    async def validate(self, review: Review[Lamp]) -> None:
        """Accept each Lamp."""
