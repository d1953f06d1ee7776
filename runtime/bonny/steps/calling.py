"""Calling: runs a handler with its axn, which is sealed when its time is over: it takes nothing more then."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

from ..axn import Axn
from ..calling import call

__all__ = ["call_handler"]


async def call_handler(handler: Callable[[Axn[Any]], Any], axn: Axn[Any], *, seconds: float, name: str) -> None:
    """Call `handler`; `name` says in messages what it is. Raises: what it raises; `HandlerTimeout`."""
    if not inspect.iscoroutinefunction(handler):
        axn.lend_loop(asyncio.get_running_loop())
    await call(handler, axn, seconds=seconds, name=name, late=axn.seal)
