"""Stages: the parts of a long set-up, as conditions in a fixed order; a handler enters them with `axn.stage`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from ..core.conditions import ReconcileFailure, condition
from ..errors import OptionError
from ..resource import Resource, printable


class Stages:
    """The stages that one reconcile has entered."""

    def __init__(self, names: Sequence[str], *, controller: str) -> None:
        self._names = names
        self._controller = controller
        self._current: str | None = None
        self._passed = 0
        self._failed = False

    @contextmanager
    def enter(self, name: str, *, must_be_open: Callable[[], None]) -> Iterator[None]:
        """Surrounds the stage `name`. Raises: `OptionError` when another one is due."""
        must_be_open()
        if self._current is not None or name not in self._names[self._passed :][:1]:
            raise OptionError(
                f"the stage {printable(name[:60])} is out of order: enter each stage of {self._controller} once, "
                f"in this order: {', '.join(self._names) or 'it has none'}"
            )
        self._current = name
        try:
            yield
        except BaseException:
            self._failed = True
            raise
        must_be_open()
        self._current, self._passed = None, self._passed + 1

    def conditions(self, why: ReconcileFailure | None, *, generation: int | None) -> list[Resource]:
        """The conditions of the stages that began, and of stages that wait for one of them.

        `why`: the reason why the reconcile is not complete.
        """
        found = [condition(name, True, generation=generation) for name in self._names[: self._passed]]
        if self._current is not None and (self._failed or why is not None):
            reason, message = (None, None) if why is None else (why.reason, why.message)
            found.append(condition(self._current, False, reason=reason, message=message, generation=generation))
            later, reason = self._names[self._passed + 1 :], f"WaitingFor{self._current}"
            found += [condition(name, None, reason=reason, generation=generation) for name in later]
        return found
