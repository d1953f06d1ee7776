"""Steps of Bonny that a new operator does not need; in `Operator(steps=...)` or in `Controller.steps`.

SkipObservedGenerations         halts for generations that were reconciled before
AddManagedByLabelToDescendants  adds the managed-by label where hooks and tests see it
AddMissingGVK                   fills in apiVersion and kind
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import wraps
from typing import Any, Final, TypeVar

from .. import axn as core
from ..core.queue import Reason
from ..core.records import Action
from ..engine.reconcile import Reconcile
from ..errors import OptionError
from ..resource import MANAGED_BY, Resource
from .axn import Axn

R = TypeVar("R", bound="Awaitable[object] | None")

# Every other reason means that something besides the spec changed.
SKIPPED: Final = frozenset({Reason.ADDED, Reason.CHANGED})


def step(function: Callable[[Axn[Any]], R]) -> Callable[[Reconcile[Any]], R]:
    """For a step of your own that needs a `compat.Axn`:

        @compat.step
        def note(axn: compat.Axn[Any]) -> None:
            axn.register_after_processed(...)

    Raises, when it runs: `OptionError` for a controller that is not a `compat.Controller`.
    """

    @wraps(function)
    def checked(axn: Reconcile[Any]) -> R:
        return function(_of(axn))

    return checked


def _of(axn: Reconcile[Any]) -> Axn[Any]:
    if not isinstance(axn, Axn):
        name = type(axn.controller).__name__
        raise OptionError(f"a step needs features that the axn of {name} lacks: let {name} inherit compat.Controller")
    return axn


class SkipObservedGenerations:
    """Usage: `SkipObservedGenerations()` before `DelegateToController`, or in `Controller.steps`.

    Halts if `status.observedGeneration` equals the generation, for example when only labels or annotations changed.
    `actions` are the actions that may be skipped; default: only modify. With `add`, changes to the children while no
    process ran stay unnoticed after a restart. `path` locates the observed generation.

    Does not: skip a retry after a failure, or a reconcile with another reason (a child, a timer).
    Raises: `OptionError` for actions that must not be skipped.
    """

    def __init__(
        self,
        *,
        actions: Iterable[Action | str] = (Action.MODIFY,),
        path: Sequence[str] = ("status", "observedGeneration"),
    ) -> None:
        self._actions = frozenset(map(Action, actions))
        self._path = tuple(path)
        if not self._actions <= {Action.ADD, Action.MODIFY}:
            raise OptionError(
                "SkipObservedGenerations skips only add and modify: the other actions are not about the spec"
            )

    def __call__(self, axn: core.Axn[Any]) -> None:
        """Halt, or do nothing."""
        if axn.action not in self._actions or axn.tries or not axn.reasons <= SKIPPED:
            return
        observed: Any = axn.resource
        for name in self._path:
            observed = observed.get(name) if isinstance(observed, dict) else None
        generation = axn.resource["metadata"].get("generation")
        if generation is not None and observed == generation:
            axn.halt()


class AddManagedByLabelToDescendants:
    """Usage: `AddManagedByLabelToDescendants()`, anywhere before `ApplyDescendants`, for controllers of `compat`.

    `ApplyDescendants` always sends this label, because streams of owned kinds select by it. With this step handler
    tests, hooks and logs see it, too.
    """

    runs_while_waiting = True

    def __call__(self, axn: Reconcile[Any]) -> None:
        """Have the label added just before the descendants are applied."""
        _of(axn).register_before_apply_descendants(_labelled)


def _labelled(descendants: list[Resource], axn: Axn[Any]) -> list[Resource]:
    return [_with_label(descendant, axn.operator) for descendant in descendants]


def _with_label(descendant: Resource, operator: str) -> Resource:
    metadata = descendant["metadata"]
    return {**descendant, "metadata": {**metadata, "labels": {**(metadata.get("labels") or {}), MANAGED_BY: operator}}}


class AddMissingGVK:
    """Usage: `AddMissingGVK("apps/v1", "Deployment")`, before steps and handlers that read them.

    The runtime's own worker always sets them. For pipelines that something else runs, such as a test.
    """

    def __init__(self, api_version: str, kind: str) -> None:
        self._missing = {"apiVersion": api_version, "kind": kind}

    def __call__(self, axn: core.Axn[Any]) -> None:
        """Fill in what is missing; what is there stays."""
        for name, value in self._missing.items():
            axn.resource.setdefault(name, value)
