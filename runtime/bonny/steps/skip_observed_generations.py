"""SkipObservedGenerations: halts for objects whose generation was reconciled before."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from ..axn import Axn
from ..core.queue import Reason
from ..core.records import Action
from ..errors import OptionError

# Every other reason means that something besides the spec changed.
SKIPPED: Final = frozenset({Reason.ADDED, Reason.CHANGED})


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

    def __call__(self, axn: Axn[Any]) -> None:
        """Halt, or do nothing."""
        if axn.action not in self._actions or axn.tries or not axn.reasons <= SKIPPED:
            return
        observed: Any = axn.resource
        for name in self._path:
            observed = observed.get(name) if isinstance(observed, dict) else None
        generation = axn.resource["metadata"].get("generation")
        if generation is not None and observed == generation:
            axn.halt()
