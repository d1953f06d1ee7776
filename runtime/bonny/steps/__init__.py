"""The steps that come with the runtime; `Operator(steps=...)` lists them, and your own, in order.

In the default pipeline, in this order:

    Logger                          logs each step of a reconcile, at level debug
    Finalizer                       calls the controller's `finalize` before an object is removed
    DelegateToController            calls the controller's handler
    ApplyDescendants                applies the descendants that the handler registered
    PruneDescendants                deletes descendants that it no longer registers
    ApplyStatus                     writes the status that the handler registered

Others, for operators or for one controller (`Controller.steps`):

    SkipObservedGenerations         halts for generations that were reconciled before
    AddManagedByLabelToDescendants  adds the managed-by label where hooks and tests see it
    AddMissingGVK                   fills in apiVersion and kind

Steps use only the axn, which is a `Reconcile` for them, so each can be replaced.
"""

from __future__ import annotations

from ..engine.reconcile import Reconcile, Step
from .add_managed_by_label import AddManagedByLabelToDescendants
from .add_missing_gvk import AddMissingGVK
from .apply_descendants import ApplyDescendants
from .apply_status import ApplyStatus
from .delegate import DelegateToController
from .finalizer import Finalizer
from .logger import Logger
from .prune_descendants import PruneDescendants
from .skip_observed_generations import SkipObservedGenerations

__all__ = [
    "AddManagedByLabelToDescendants",
    "AddMissingGVK",
    "ApplyDescendants",
    "ApplyStatus",
    "DelegateToController",
    "Finalizer",
    "Logger",
    "PruneDescendants",
    "Reconcile",
    "SkipObservedGenerations",
    "default_steps",
]


def default_steps() -> tuple[Step, ...]:
    """The pipeline of an operator that names no steps."""
    return (Logger(), Finalizer(), DelegateToController(), ApplyDescendants(), PruneDescendants(), ApplyStatus())
