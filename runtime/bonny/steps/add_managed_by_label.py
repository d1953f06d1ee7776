"""AddManagedByLabelToDescendants: adds the label app.kubernetes.io/managed-by to every registered descendant.

`ApplyDescendants` always sends this label, because streams of owned kinds select by it. With this step handler tests,
hooks and logs see it, too.
"""

from __future__ import annotations

from typing import Any

from ..axn import Axn
from ..resource import MANAGED_BY, Resource


class AddManagedByLabelToDescendants:
    """Usage: `AddManagedByLabelToDescendants()`, anywhere before `ApplyDescendants`."""

    runs_while_waiting = True

    def __call__(self, axn: Axn[Any]) -> None:
        """Have the label added just before the descendants are applied."""
        axn.register_before_apply_descendants(_labelled)


def _labelled(descendants: list[Resource], axn: Axn[Any]) -> list[Resource]:
    return [_with_label(descendant, axn.operator) for descendant in descendants]


def _with_label(descendant: Resource, operator: str) -> Resource:
    metadata = descendant["metadata"]
    return {**descendant, "metadata": {**metadata, "labels": {**(metadata.get("labels") or {}), MANAGED_BY: operator}}}
