"""DelegateToController: calls the controller's handler for the action.

`add` and `modify` call `reconcile` unless the controller defines them; `delete` without a handler does nothing. The
controller's own `steps` run before; one that halts ends the whole pipeline. The step `Finalizer` calls `finalize`.
"""

from __future__ import annotations

from typing import Any

from ..engine.reconcile import Reconcile
from ..pipeline import call_handler, run_step


class DelegateToController:
    """Usage: `DelegateToController()`, before the steps that apply."""

    async def __call__(self, axn: Reconcile[Any]) -> None:
        """Raises: the errors of the handler; `HandlerTimeout`."""
        controller = axn.controller
        for step in controller.steps:
            await run_step(axn, step)
            if axn.halted:
                return
        handler = controller.handlers_by_action.get(axn.action)
        if handler is not None:
            _ = axn.spec  # an object that does not fit the schema does not get to the handler
            controller.validate(axn.resource)
            name = f"{axn.action} of {type(controller).__name__}"
            await call_handler(handler, axn, seconds=controller.timeout, name=name)
