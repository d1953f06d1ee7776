"""SkipObservedGenerations: halts for objects whose generation was handled before."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from ..axn import Action, Axn
from ..core.queue import Reason
from ..errors import OptionError

# With any other of them something besides the spec wants to be looked at.
SKIPPED: Final = frozenset({Reason.ADDED, Reason.CHANGED})


class SkipObservedGenerations:
    """Usage: `SkipObservedGenerations()` before `DelegateToController`, or in `Controller.steps`.

    Halts when `status.observedGeneration` equals the generation: for a modify that labels or annotations caused, say.
    `actions` are those that are skipped; default: modify alone. With `add`, what happened to the children while no
    process ran stays unnoticed after a restart. `path` is where the observed generation is.

    Does not: skip another try after a failure, or what has another reason (a child, a timer).
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
            raise OptionError("SkipObservedGenerations skips add and modify only: the others have causes of their own")

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
