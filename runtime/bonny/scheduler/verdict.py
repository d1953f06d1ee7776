"""Verdict: the sentence that says why a pod has no node, as kube-scheduler writes it.

0/5 nodes are available: 2 node(s) had untolerated taint(s), 3 Insufficient cpu.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from .fits import Fit

__all__ = ["verdict"]

NO_NODES = "no nodes available to schedule pods"


def verdict(fits: Iterable[Fit], *, nodes: int, refusal: str = "") -> str:
    """`fits` says of each of `nodes` nodes why it was not chosen; `refusal`, why none could be."""
    if not nodes:
        return NO_NODES
    if refusal:
        return f"0/{nodes} nodes are available: {refusal}."
    counts = Counter(reason for fit in fits for reason in fit.reasons)
    # Sorted as text, as kube-scheduler does: 10 comes before 2.
    told = ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))
    return f"0/{nodes} nodes are available: {told}."
