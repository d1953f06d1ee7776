"""Lifespans: the base, which does nothing, as for an operator without one."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable

from ..lifespan import HasLifespan


class Lifespans:
    """The lifespans of one process (`bonny.lifespan`); the extra `lifespan` enters and leaves them."""

    failed = False
    """Whether one could not be entered, or ended by itself."""

    def __init__(self) -> None:
        self.stop = asyncio.Event()
        """Set when one fails."""

    async def enter(self, parts: Iterable[HasLifespan]) -> None:
        """Enter the lifespans of `parts`; return when they are, or at a stop."""

    async def leave(self, parts: Collection[HasLifespan] | None = None) -> None:
        """Leave the lifespans of `parts`; None for all."""

    def waiting(self) -> Iterable[str]:
        """The names of the parts whose lifespans are not entered yet."""
        return ()
