"""Virtual time: an event loop that never waits; its clock jumps to the next timer instead.

A `def` handler runs in a thread, which takes real time while the clock jumps on: tests of those use the real clock.
"""

from __future__ import annotations

import asyncio
import selectors
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import pytest

T = TypeVar("T")

# Nothing in virtual time takes longer; what does waits for something that never comes.
PATIENCE_SECONDS = 10.0


class _Jumping(selectors.DefaultSelector):
    """Instead of waiting, it moves the clock."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready or timeout == 0:
            return ready
        if timeout is None:
            ready = super().select(PATIENCE_SECONDS)
            assert ready, "nothing is due any more, and the test has not ended"
            return ready
        # A remainder of rounding would otherwise stand still.
        self._clock.now += max(timeout, 1e-9)
        return super().select(0)


class Clock:
    """The time of a test, as `time.monotonic` and the loop see it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr(time, "monotonic", lambda: self.now)

    def run(self, main: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run `main` to its end, in no time."""
        with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(_Jumping(self))) as runner:
            return runner.run(main())
