"""Choosing: calls a scheduler for a node, checks its choice, and explains in kube-scheduler's words why a pod has none.

0/5 nodes are available: 2 node(s) had untolerated taint(s), 3 Insufficient cpu.
"""

from __future__ import annotations

import asyncio
import inspect
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, cast

from ..calling import call
from ..errors import BonnyError
from .nodes import Fit, Nodes, Refusal
from .scheduler import Choice, Scheduler
from .views import NodeView, PodView


class NoNode(BonnyError):
    """There is no node for a pod; `parked`: nor will there be one before something changes."""

    def __init__(self, message: str, *, parked: bool, plugins: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.parked = parked
        self.plugins = frozenset(plugins)


async def select(scheduler: Scheduler, pod: PodView, nodes: Nodes) -> Choice:
    """The scheduler's choice, unchecked. Raises: the errors of the scheduler."""
    method: Any = scheduler.select_node_for_pod
    if not inspect.iscoroutinefunction(method):
        return cast("Choice", method(pod, nodes))
    # In a task of its own, so that code that cancels its task does not end this scheduler.
    return cast("Choice", await asyncio.create_task(call(method, pod, nodes, seconds=scheduler.timeout)))


def checked(scheduler: Scheduler, pod: PodView, nodes: Nodes, choice: Choice) -> NodeView:
    """The chosen node. Raises: `NoNode` when there is no choice, or it does not pass the check of `nodes`."""
    check, chosen = nodes.check, ""
    if choice is not None:
        name = choice.name if isinstance(choice, NodeView) else choice["metadata"]["name"]
        chosen, node = f"scheduler {scheduler.name} chose {name}", nodes.named(name)
        if node is None:
            raise NoNode(f"{chosen}, which is not one of its {len(nodes)} nodes", parked=False)
        fit = check(pod, node)
        if fit:
            return node
        chosen = f"{chosen}: {', '.join(fit.reasons)}"
    # The reasons why no node fits; or, if one does, why the chosen one does not.
    not_chosen = Fit(f"node(s) were not chosen by scheduler {scheduler.name}", plugin="Selection")
    fits = [fit and not_chosen for _, fit in check.judged(pod, nodes)]
    if chosen and not_chosen in fits:
        raise NoNode(chosen, parked=False)
    raise NoNode(verdict(fits), parked=True, plugins=(fit.plugin for fit in fits))


def verdict(fits: Sequence[Fit]) -> str:
    """The sentence for a pod that fits on no node; `fits` has the result of each node."""
    if not fits:
        return "no nodes available to schedule pods"
    refusals = [fit.reasons[0] for fit in fits if isinstance(fit, Refusal)]
    counts = Counter(reason for fit in fits for reason in fit.reasons)
    # Sorted as text, as kube-scheduler does: 10 comes before 2.
    reasons = refusals[:1] or sorted(f"{count} {reason}" for reason, count in counts.items())
    return f"0/{len(fits)} nodes are available: {', '.join(reasons)}."
