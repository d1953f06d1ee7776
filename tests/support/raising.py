"""Raising: every way in which user code can fail, for tests that go through all of them.

A test of one kind of user code is a row of the table, this module has the columns:

    @pytest.mark.parametrize("raises", RAISED.values(), ids=RAISED)
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final, NoReturn

SECRET: Final = "hunter2"
"""The text of each error that has one: it belongs into the log and nowhere else."""


class PanicException(BaseException):
    """As extensions in Rust raise it."""


class Unprintable(Exception):
    """Has no text."""

    def __str__(self) -> str:
        raise ValueError("this error has no text")


class Hostile(Exception):
    """Whoever looks at it gets what no `except Exception` catches."""

    def __str__(self) -> str:
        raise PanicException("from __str__")

    def __repr__(self) -> str:
        raise PanicException("from __repr__")


class UnprintablePanic(PanicException):
    """Both."""

    __str__ = Unprintable.__str__


@dataclass(frozen=True)
class Frozen(Exception):
    """Takes no notes: a frozen dataclass refuses each new attribute."""

    code: int = 3


def _raise(error: Callable[[], BaseException]) -> NoReturn:
    raise error()


def recurse() -> NoReturn:
    """Until Python stops it."""
    recurse()


def cancel_own_task() -> None:
    """Of an `async def` the cancellation arrives with its next await."""
    task = asyncio.current_task()
    assert task is not None
    task.cancel()


ERRORS: Final[dict[str, Callable[[], BaseException]]] = {
    "Exception": lambda: ValueError(SECRET),
    "SystemExit": lambda: SystemExit(3),
    "KeyboardInterrupt": KeyboardInterrupt,
    "GeneratorExit": GeneratorExit,
    "CancelledError": asyncio.CancelledError,
    "StopIteration": StopIteration,
    "StopAsyncIteration": StopAsyncIteration,
    "PanicException": lambda: PanicException(SECRET),
    "BaseExceptionGroup": lambda: BaseExceptionGroup(SECRET, [SystemExit(3), KeyboardInterrupt()]),
    "MemoryError": MemoryError,
    "Unprintable": Unprintable,
    "Hostile": Hostile,
    "UnprintablePanic": UnprintablePanic,
    "Frozen": Frozen,
    "1 MB": lambda: ValueError("x" * 1_000_000),
}

RAISED: Final[dict[str, Callable[[], None]]] = {
    **{name: partial(_raise, error) for name, error in ERRORS.items()},
    "RecursionError": recurse,
}
"""For user code anywhere: in a `def`, in a thread or on the loop, and in an `async def`."""

CANCELS: Final = "current_task().cancel()"
RAISED_ON_THE_LOOP: Final[dict[str, Callable[[], None]]] = {**RAISED, CANCELS: cancel_own_task}
"""For an `async def`, which awaits something afterwards."""
