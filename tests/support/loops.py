"""Loops: the event loops that an operator can run on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

import uvloop

__all__ = ["LOOPS"]

LOOPS: Final[dict[str, Callable[[], asyncio.AbstractEventLoop]]] = {
    "asyncio": asyncio.new_event_loop,
    "uvloop": uvloop.new_event_loop,
}
