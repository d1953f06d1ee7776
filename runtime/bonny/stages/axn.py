"""StagedAxn: the token with the stages of its controller, which a handler enters with `axn.stage`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property, partial, reduce
from typing import Protocol, TypeVar, cast

from ..client.clock import timestamp
from ..core.conditions import ReconcileFailure, condition, with_condition
from ..engine.reconcile import Reconcile
from ..errors import OptionError
from ..resource import Resource, printable

V_co = TypeVar("V_co", covariant=True)


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


class HasStages(Protocol):
    """A `StagedController`."""

    @property
    def stages(self) -> tuple[str, ...]:
        """The stages, in order."""


class StagedAxn(Reconcile[V_co]):
    """One reconcile, as the handler of a `StagedController` sees it."""

    @cached_property
    def _stages(self) -> Stages:
        controller = cast("HasStages", self.controller)
        return Stages(controller.stages, controller=type(controller).__name__)

    def stage(self, name: str) -> AbstractContextManager[None]:
        """Surrounds a part of a long set-up: `with axn.stage("DatabaseReady"): ...`; `name` is one of `stages`.

        The condition `name` becomes True when the part ends. When it raises, the condition becomes False with the
        reason and message of `Reconciled` (`Waiting` for `Wait`), and the later stages become Unknown. Stages
        are entered in their order. A stage that is not entered keeps its condition.
        Raises: `OptionError` for another name or order; `AlreadyApplied`.
        """
        return self._stages.enter(name, must_be_open=self._must_be_open)

    def set_condition(
        self,
        type: str,  # noqa: A002  the API's own word
        status: bool | None,
        *,
        message: str | None = None,
        reason: str | None = None,
    ) -> None:
        """As in `Axn`. Raises: also `OptionError` for a stage."""
        if type in cast("HasStages", self.controller).stages:
            raise OptionError(f"{type} is a stage: axn.stage sets its condition")
        super().set_condition(type, status, message=message, reason=reason)

    def with_own_conditions(self, status: Resource) -> Resource:
        """`status` with the conditions of the stages that began."""
        staged = self._stages.conditions(self.unfinished, generation=self.shown.meta.generation)
        return reduce(partial(with_condition, at=timestamp()), staged, super().with_own_conditions(status))
