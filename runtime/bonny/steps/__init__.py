"""The steps that come with the runtime; `Operator(steps=...)` lists them, and your own, in order.

In the default pipeline, in this order:

    Logger                          logs each step of a reconcile, at level debug
    Finalizer                       calls the controller's `finalize` before an object is removed
    DelegateToController            calls the controller's handler
    ApplyDescendants                applies the descendants that the handler registered
    PruneDescendants                deletes descendants that it no longer registers
    ApplyStatus                     writes the status that the handler registered

Steps use only the axn, which is a `Reconcile` for them, so each can be replaced.
"""

from __future__ import annotations

from ..engine.reconcile import Reconcile as Reconcile
from ..engine.reconcile import Step
from .apply_descendants import ApplyDescendants as ApplyDescendants
from .apply_status import ApplyStatus as ApplyStatus
from .delegate import DelegateToController as DelegateToController
from .finalizer import Finalizer as Finalizer
from .logger import Logger as Logger
from .prune_descendants import PruneDescendants as PruneDescendants


def default_steps() -> tuple[Step, ...]:
    """The pipeline of an operator that names no steps."""
    return (Logger(), Finalizer(), DelegateToController(), ApplyDescendants(), PruneDescendants(), ApplyStatus())
