"""DelegateToController: calls the handler that fits the action.

`add` and `modify` call `reconcile` unless the controller defines them; `delete` without a handler does nothing.
An `async def` handler runs on the loop and is cancelled when its time is over. A `def` handler runs in a thread, which
nobody can cancel: its axn is sealed, and its object is not handled again until the thread returns.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from ..axn import Action, Axn
from ..controller import Controller
from ..errors import BonnyError, OptionError

__all__ = ["THREADS", "DelegateToController", "HandlerTimeout"]

THREADS: Final = "handler"
"""How the names of the threads of `def` handlers begin."""


class HandlerTimeout(BonnyError, TimeoutError):
    """A handler did not return in time. `thread` is what still runs of it, for `def` handlers."""

    def __init__(self, seconds: float, thread: asyncio.Future[object] | None) -> None:
        super().__init__(f"the handler did not return within {seconds:g} s")
        self.thread = thread


class DelegateToController:
    """Usage: `DelegateToController()`, before the steps that apply."""

    def __init__(self) -> None:
        self._threads: dict[type, ThreadPoolExecutor] = {}

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
            return
        threads = self._threads_of(controller)
        returned = await _in_a_thread(handler, axn, threads=threads, seconds=controller.timeout)
        if inspect.iscoroutine(returned):
            returned.close()
            raise OptionError(
                f"{axn.action} of {type(controller).__name__} is a `def` that returned a coroutine, perhaps by a "
                "decorator: make that an `async def` with await, too"
            )

    def _threads_of(self, controller: Controller[Any]) -> ThreadPoolExecutor:
        """As many threads as the controller has slots: with fewer, a handler's time would run while it waits."""
        if type(controller) not in self._threads:
            name = f"{THREADS} {type(controller).__name__}"
            pool = ThreadPoolExecutor(max_workers=controller.max_concurrent, thread_name_prefix=name)
            self._threads[type(controller)] = pool
        return self._threads[type(controller)]


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


async def _in_a_thread(
    handler: Callable[[Axn[Any]], object], axn: Axn[Any], *, threads: ThreadPoolExecutor, seconds: float
) -> object:
    loop = asyncio.get_running_loop()
    axn.lend_loop(loop)
    thread = loop.run_in_executor(threads, handler, axn)
    done, _ = await asyncio.wait({thread}, timeout=seconds)
    if not done:
        axn.seal()
        raise HandlerTimeout(seconds, thread)
    return await thread
