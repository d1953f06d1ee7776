"""The steps that come with the runtime; `Operator(steps=...)` puts them, and your own, in order.

    DelegateToController   calls the controller's handler
    ApplyDescendants       makes the cluster hold what the handler registered
    ApplyStatus            writes the status that the handler registered

Steps only use what `axn` offers, so each can be replaced.
"""

from __future__ import annotations

from .apply_descendants import ApplyDescendants
from .apply_status import ApplyStatus
from .delegate import DelegateToController

__all__ = ["ApplyDescendants", "ApplyStatus", "DelegateToController", "default_steps"]


def default_steps() -> tuple[DelegateToController | ApplyDescendants | ApplyStatus, ...]:
    """The pipeline of an operator that names no steps."""
    return (DelegateToController(), ApplyDescendants(), ApplyStatus())
