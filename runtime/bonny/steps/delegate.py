"""DelegateToController: calls the handler that fits the action.

`add` and `modify` call `reconcile` unless the controller defines them; `delete` without a handler does nothing.
An `async def` handler runs on the loop and is cancelled when its time is over. A `def` handler runs in a thread, which
nobody can cancel: its axn is sealed, and its object is not handled again until the thread returns.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any

from ..axn import Action, Axn
from ..controller import Controller
from ..errors import BonnyError

__all__ = ["DelegateToController", "HandlerTimeout"]


class HandlerTimeout(BonnyError, TimeoutError):
    """A handler did not return in time. `thread` is what still runs of it, for `def` handlers."""

    def __init__(self, seconds: float, thread: asyncio.Future[None] | None) -> None:
        super().__init__(f"the handler did not return within {seconds:g} s")
        self.thread = thread


class DelegateToController:
    """Usage: `DelegateToController()`, before the steps that apply."""

    async def __call__(self, axn: Axn[Any]) -> None:
        """Raises: what the handler raises; `HandlerTimeout`."""
        controller = axn.controller
        if not isinstance(controller, Controller):
            raise TypeError(f"{axn.identifier()} came without a controller")
        if not controller.handles(axn.action):
            return
        axn.validate()
        handler = _handler(controller, axn.action)
        if inspect.iscoroutinefunction(handler):
            await _on_the_loop(handler, axn, seconds=controller.timeout)
        else:
            await _in_a_thread(handler, axn, seconds=controller.timeout)


def _handler(controller: Controller[Any], action: Action) -> Callable[[Axn[Any]], Any]:
    """The method for `action`, spelled out so that a search for its name leads here."""
    if controller.falls_back(action):
        return controller.reconcile
    match action:
        case Action.ADD:
            return controller.add
        case Action.MODIFY:
            return controller.modify
        case Action.RECONCILE:
            return controller.reconcile
        case Action.DELETE:
            return controller.delete


async def _on_the_loop(handler: Callable[[Axn[Any]], Awaitable[None]], axn: Axn[Any], *, seconds: float) -> None:
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            await handler(axn)
    except TimeoutError as error:
        # A TimeoutError of the handler's own is an error like any other.
        if limit.expired():
            axn.seal()
            raise HandlerTimeout(seconds, None) from error
        raise


async def _in_a_thread(handler: Callable[[Axn[Any]], None], axn: Axn[Any], *, seconds: float) -> None:
    loop = asyncio.get_running_loop()
    axn.lend_loop(loop)
    thread = loop.run_in_executor(None, handler, axn)
    done, _ = await asyncio.wait({thread}, timeout=seconds)
    if not done:
        axn.seal()
        raise HandlerTimeout(seconds, thread)
    await thread
