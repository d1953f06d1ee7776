"""Choosing: asks a scheduler for a node, checks its choice, and explains in kube-scheduler's words why a pod has none.

0/5 nodes are available: 2 node(s) had untolerated taint(s), 3 Insufficient cpu.
"""

from __future__ import annotations

import asyncio
import inspect
from collections import Counter
from collections.abc import Iterable
from typing import Any, cast

from ..calling import call
from ..errors import BonnyError
from .fits import FITS, Fit, fits
from .nodes import Nodes
from .scheduler import Choice, Scheduler
from .views import NodeView, PodView


class NoNode(BonnyError):
    """There is no node for a pod; `parked`: nor will there be one before something changes."""

    def __init__(self, message: str, *, parked: bool, plugins: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.parked = parked
        self.plugins = frozenset(plugins)


async def select(scheduler: Scheduler, pod: PodView, nodes: Nodes) -> Choice:
    """The scheduler's choice, unchecked. Raises: whatever the scheduler raises."""
    method: Any = scheduler.select_node_for_pod
    if not inspect.iscoroutinefunction(method):
        return cast("Choice", method(pod, nodes))
    # In a task of its own, so that code that cancels its task does not end this scheduler.
    return cast("Choice", await asyncio.create_task(call(method, pod, nodes, seconds=scheduler.timeout)))


def checked(scheduler: Scheduler, pod: PodView, nodes: Nodes, choice: Choice) -> NodeView:
    """The chosen node. Raises: `NoNode` when there is no choice, or it does not pass the scheduler's check."""
    chosen = ""
    if choice is not None:
        name = choice.name if isinstance(choice, NodeView) else choice["metadata"]["name"]
        chosen, node = f"scheduler {scheduler.name} chose {name}", nodes.named(name)
        if node is None:
            raise NoNode(f"{chosen}, which is not one of its {len(nodes)} nodes", parked=False)
        fit = _judged(scheduler, pod, node)
        if fit:
            return node
        chosen = f"{chosen}: {', '.join(fit.reasons)}"
    raise _nowhere(scheduler, pod, nodes, chosen)


def _judged(scheduler: Scheduler, pod: PodView, node: NodeView) -> Fit:
    check = type(scheduler).check
    fit = check is None or check(pod, node)
    failed = Fit(f"node(s) didn't pass the check of scheduler {scheduler.name}")
    return fit if isinstance(fit, Fit) else FITS if fit else failed


def _nowhere(scheduler: Scheduler, pod: PodView, nodes: Nodes, chosen: str) -> NoNode:
    """The reasons why no node fits; or, if one does, why the chosen one (`chosen`) does not."""
    standard = type(scheduler).check is fits
    judged = (fit for _, fit in nodes.judged(pod)) if standard else (_judged(scheduler, pod, node) for node in nodes)
    not_chosen = Fit(f"node(s) were not chosen by scheduler {scheduler.name}", plugin="Selection")
    reasons = [not_chosen if fit else fit for fit in judged]
    if chosen and not_chosen in reasons:
        return NoNode(chosen, parked=False)
    message = verdict(reasons, nodes=len(nodes), refusal=pod.demand.refusal if standard else "")
    return NoNode(message, parked=True, plugins=(fit.plugin for fit in reasons))


def verdict(fits: Iterable[Fit], *, nodes: int, refusal: str = "") -> str:
    """The sentence for a pod that fits none of `nodes` nodes: by the reasons in `fits`, or because of `refusal`."""
    if not nodes:
        return "no nodes available to schedule pods"
    counts = Counter(reason for fit in fits for reason in fit.reasons)
    # Sorted as text, as kube-scheduler does: 10 comes before 2.
    reasons = refusal or ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))
    return f"0/{nodes} nodes are available: {reasons}."
