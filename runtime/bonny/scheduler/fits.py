"""Fits: whether a pod may run on a node, and if not, why; kube-scheduler's filters, in its order and in its words.

    nodes.fitting(pod)                       # those that pass all of it
    if fits_taints(pod, node): ...           # a part of it, for a selection of one's own

Semantics are those of kube-scheduler v1.36 (pkg/scheduler/framework/plugins). What is not honoured (inter-pod affinity
of the pod itself, volumes, claims and more: docs/scheduler.md) makes the pod fit nowhere, so it is never misplaced.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final, TypeAlias

from .demand import Taint
from .selector import NAME_FIELD, hold
from .views import NodeView, PodView

__all__ = ["Check", "Fit", "fits", "fits_affinity", "fits_ports", "fits_resources", "fits_room",
           "fits_schedulable", "fits_shape", "fits_spec", "fits_taints"]  # fmt: skip


class Fit:
    """True, or why not: `reasons` as kube-scheduler writes them behind a number of nodes.

    `plugin` is the part of kube-scheduler that says so: a label of a metric, so of a closed set.
    """

    __slots__ = ("plugin", "reasons")

    def __init__(self, *reasons: str, plugin: str = "Check") -> None:
        self.reasons = reasons
        self.plugin = plugin

    def __bool__(self) -> bool:
        return not self.reasons

    def __repr__(self) -> str:
        return f"Fit{self.reasons}"


Check: TypeAlias = Callable[[PodView, NodeView], Fit | bool]
"""Decides whether a pod may run on a node."""

FITS: Final = Fit()
CORDONED: Final = Fit("node(s) were unschedulable", plugin="NodeUnschedulable")
NOT_NAMED: Final = Fit("node(s) didn't satisfy plugin(s) [NodeAffinity]", plugin="NodeAffinity")
TAINTED: Final = Fit("node(s) had untolerated taint(s)", plugin="TaintToleration")
OTHER_LABELS: Final = Fit("node(s) didn't match Pod's node affinity/selector", plugin="NodeAffinity")
PORTS_TAKEN: Final = Fit("node(s) didn't have free ports for the requested pod ports", plugin="NodePorts")
REPELLED: Final = Fit("node(s) didn't satisfy existing pods anti-affinity rules", plugin="InterPodAffinity")

EVERY_ADDRESS: Final = "0.0.0.0"  # noqa: S104  how the API says "every address"
# What is to be tolerated where a node is cordoned, whether it has its taint already or not.
CORDON: Final = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")
KEEPING_AWAY: Final = ("NoSchedule", "NoExecute")


def fits(pod: PodView, node: NodeView) -> Fit:
    """All that follows, and what the anti-affinity of pods that run says."""
    fit = fits_shape(pod, node)
    return REPELLED if fit and node.repels(pod) else fit


def fits_shape(pod: PodView, node: NodeView) -> Fit:
    """What is so for all pods with the same demand. The first part that does not hold gives the reasons."""
    fit = fits_spec(pod, node)
    return fit if fit.reasons else fits_room(pod, node)


def fits_spec(pod: PodView, node: NodeView) -> Fit:
    """What is so whatever runs there, for all pods with the same constraints."""
    demand = pod.demand
    if demand.refusal:
        return Fit(demand.refusal, plugin="NotHonoured")
    if demand.names is not None and node.name not in demand.names:
        return NOT_NAMED
    for part in (fits_schedulable, fits_taints, fits_affinity):
        fit = part(pod, node)
        if fit.reasons:
            return fit
    return FITS


def fits_room(pod: PodView, node: NodeView) -> Fit:
    """What pods that run leave free is enough."""
    if pod.demand.ports and not fits_ports(pod, node):
        return PORTS_TAKEN
    return fits_resources(pod, node)


def fits_schedulable(pod: PodView, node: NodeView) -> Fit:
    """The node is not cordoned, or the pod tolerates that."""
    return FITS if not node.unschedulable or _tolerates(pod, CORDON) else CORDONED


def fits_taints(pod: PodView, node: NodeView) -> Fit:
    """The pod tolerates the node's taints with NoSchedule and NoExecute."""
    return FITS if all(_tolerates(pod, taint) for taint in node.taints if taint.effect in KEEPING_AWAY) else TAINTED


def _tolerates(pod: PodView, taint: Taint) -> bool:
    return any(toleration.tolerates(taint) for toleration in pod.demand.tolerations)


def fits_affinity(pod: PodView, node: NodeView) -> Fit:
    """The node has what nodeSelector and required node affinity ask for."""
    demand = pod.demand
    if not hold(demand.selector, node.labels):
        return OTHER_LABELS
    if demand.terms is None:
        return FITS
    fields = {NAME_FIELD: node.name}
    return (
        FITS
        if any(hold(term.match_expressions, node.labels) and hold(term.match_fields, fields) for term in demand.terms)
        else OTHER_LABELS
    )


def fits_ports(pod: PodView, node: NodeView) -> Fit:
    """The host ports that the pod asks for are free."""
    ports = pod.demand.ports
    taken = node.usage.ports if ports else ()
    for address, *wanted in ports:
        for other, *used in taken:
            if wanted == used and (address == other or EVERY_ADDRESS in (address, other)):
                return PORTS_TAKEN
    return FITS


def fits_resources(pod: PodView, node: NodeView) -> Fit:
    """What the pod requests is free, and so is a place for one more pod."""
    usage, allocatable = node.usage, node.allocatable
    requested = usage.requested
    full = len(usage.pods) >= allocatable.get("pods", 0)
    lacking = ["pods"] if full else []
    # Written out, because it is the innermost of all loops: shapes times nodes that changed.
    for name, amount in pod.demand.requests:
        if amount > allocatable.get(name, 0) - requested[name]:
            lacking.append(name)
    return _insufficient(*lacking) if lacking else FITS


@lru_cache(maxsize=1024)
def _insufficient(*names: str) -> Fit:
    reasons = ("Too many pods" if name == "pods" else f"Insufficient {name}" for name in names)
    return Fit(*reasons, plugin="NodeResourcesFit")
