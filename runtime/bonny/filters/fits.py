"""Fits: checks whether a pod may run on a node, with kube-scheduler's filters, in its order and in its words.

    nodes.fitting(pod)                       # the nodes that pass all filters
    if fits_taints(pod, node): ...           # a single filter, for a selection of your own

Semantics as in kube-scheduler v1.36 (pkg/scheduler/framework/plugins). A pod that asks for something that is not
supported (inter-pod affinity of its own, volumes that bind it to nodes, claims and more: `demand`) fits on no node, so
it is never misplaced.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from ..core.selector import hold
from ..scheduler.nodes import FITS, Fit, Refusal
from ..scheduler.views import NodeView, PodView
from .demand import Taint, demand
from .room import Room

CORDONED: Final = Fit("node(s) were unschedulable", plugin="NodeUnschedulable")
NOT_NAMED: Final = Fit("node(s) didn't satisfy plugin(s) [NodeAffinity]", plugin="NodeAffinity")
TAINTED: Final = Fit("node(s) had untolerated taint(s)", plugin="TaintToleration")
OTHER_LABELS: Final = Fit("node(s) didn't match Pod's node affinity/selector", plugin="NodeAffinity")
PORTS_TAKEN: Final = Fit("node(s) didn't have free ports for the requested pod ports", plugin="NodePorts")
REPELLED: Final = Fit("node(s) didn't satisfy existing pods anti-affinity rules", plugin="InterPodAffinity")

EVERY_ADDRESS: Final = "0.0.0.0"  # noqa: S104  the API's form of "every address"
# Cordoned nodes have this taint, possibly with a delay.
CORDON: Final = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")
KEEPING_AWAY: Final = ("NoSchedule", "NoExecute")


def fits_shape(pod: PodView, node: NodeView) -> Fit:
    """The filters that depend on node and demand alone. The first one that fails gives the reasons."""
    return fits_spec(pod, node) and fits_room(pod, node)


def fits_spec(pod: PodView, node: NodeView) -> Fit:
    """The filters that depend on the node alone, not on its pods, and on the pod's constraints."""
    asked = demand(pod)
    if asked.refusal:
        return Refusal(asked.refusal, plugin="NotHonoured")
    if asked.names is not None and node.name not in asked.names:
        return NOT_NAMED
    return fits_schedulable(pod, node) and fits_taints(pod, node) and fits_affinity(pod, node)


def fits_room(pod: PodView, node: NodeView) -> Fit:
    """The room that running pods leave is enough."""
    return fits_resources(pod, node) if not demand(pod).ports or fits_ports(pod, node) else PORTS_TAKEN


def fits_schedulable(pod: PodView, node: NodeView) -> Fit:
    """The node is not cordoned, or the pod tolerates it."""
    return FITS if not node.derived(Room).unschedulable or _tolerates(pod, CORDON) else CORDONED


def fits_taints(pod: PodView, node: NodeView) -> Fit:
    """The pod tolerates the node's taints with NoSchedule and NoExecute."""
    return (
        FITS
        if all(_tolerates(pod, taint) for taint in node.derived(Room).taints if taint.effect in KEEPING_AWAY)
        else TAINTED
    )


def _tolerates(pod: PodView, taint: Taint) -> bool:
    return any(toleration.tolerates(taint) for toleration in demand(pod).tolerations)


def fits_affinity(pod: PodView, node: NodeView) -> Fit:
    """The node matches nodeSelector and required node affinity."""
    terms, fields = demand(pod).terms, {"metadata.name": node.name}
    matches = terms is None or any(
        hold(term.match_expressions, node.labels) and hold(term.match_fields, fields) for term in terms
    )
    return FITS if matches and hold(demand(pod).selector, node.labels) else OTHER_LABELS


def fits_ports(pod: PodView, node: NodeView) -> Fit:
    """The host ports that the pod requests are free."""
    for address, *wanted in demand(pod).ports:
        for other, *used in node.derived(Room).usage.ports:
            if wanted == used and (address == other or EVERY_ADDRESS in (address, other)):
                return PORTS_TAKEN
    return FITS


def fits_resources(pod: PodView, node: NodeView) -> Fit:
    """The requested resources are free, and the node can take one more pod."""
    room = node.derived(Room)
    requested, allocatable = room.usage.requested, room.allocatable
    lacking = ["Too many pods"] if len(node.pods) >= allocatable.get("pods", 0) else []
    # A plain loop for speed: it is the innermost one, over shapes and changed nodes.
    for name, amount in demand(pod).requests:
        if amount > allocatable.get(name, 0) - requested[name]:
            lacking.append(f"Insufficient {name}")
    return _insufficient(*lacking) if lacking else FITS


@lru_cache(maxsize=1024)
def _insufficient(*reasons: str) -> Fit:
    return Fit(*reasons, plugin="NodeResourcesFit")
