"""DelegateToController: calls the controller's handler for the action.

`add` and `modify` call `reconcile` unless the controller defines them; `delete` without a handler does nothing. The
controller's own `steps` run before the handler; a step that halts ends the whole pipeline. The step `Finalizer` calls
`finalize`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..controller import Controller
from ..core.records import Action
from ..engine.reconcile import Reconcile
from ..pipeline import call_handler, run_step


class DelegateToController:
    """Usage: `DelegateToController()`, before the steps that apply."""

    async def __call__(self, axn: Reconcile[Any]) -> None:
        """Raises: what the handler raises; `HandlerTimeout`."""
        controller = axn.controller
        for step in controller.steps:
            await run_step(axn, step)
            if axn.halted:
                return
        if axn.action is Action.FINALIZE or not controller.handles(axn.action):
            return
        _ = axn.spec  # what does not fit the schema does not get to the handler
        controller.validate(axn.resource)
        name = f"{axn.action} of {type(controller).__name__}"
        await call_handler(_handler(controller, axn.action), axn, seconds=controller.timeout, name=name)


def _handler(controller: Controller[Any], action: Action) -> Callable[[Reconcile[Any]], Any]:
    """The method for `action`, spelled out so that a search for its name leads here."""
    own = {Action.ADD: controller.add, Action.MODIFY: controller.modify, Action.DELETE: controller.delete}
    return controller.reconcile if controller.falls_back(action) else own.get(action, controller.reconcile)
