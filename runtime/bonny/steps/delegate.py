"""DelegateToController: calls the controller's handler for the action.

`add` and `modify` call `reconcile` unless the controller defines them; `delete` without a handler does nothing. The
controller's own `steps` run before the handler; a step that halts ends the whole pipeline. The step `Finalizer` calls
`finalize`.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

from ..engine.reconcile import Reconcile
from ..pipeline import call_handler, run_step


class DelegateToController:
    """Usage: `DelegateToController()`, before the steps that apply."""

    def __call__(self, axn: Reconcile[Any]) -> Awaitable[object] | None:
        """Raises: what the handler raises; `HandlerTimeout`."""
        return _after_own_steps(axn) if axn.controller.steps else _handled(axn)


async def _after_own_steps(axn: Reconcile[Any]) -> None:
    for step in axn.controller.steps:
        await run_step(axn, step)
        if axn.halted:
            return
    if (rest := _handled(axn)) is not None:
        await rest


def _handled(axn: Reconcile[Any]) -> Awaitable[object] | None:
    controller = axn.controller
    handler = controller.handlers_by_action.get(axn.action)
    if handler is None:
        return None
    _ = axn.spec  # what does not fit the schema does not get to the handler
    controller.validate(axn.resource)
    name = f"{axn.action} of {type(controller).__name__}"
    return call_handler(handler, axn, seconds=controller.timeout, name=name)
