"""Schedulers of one's own: choosing nodes for pods, with what kube-scheduler knows about both."""

from .binding import Binding
from .fits import fits
from .nodes import Nodes
from .scheduler import Choice, Scheduler
from .score import balanced, least_allocated, most_allocated, spread
from .views import NodeView, PodView

__all__ = [
    "Binding",
    "Choice",
    "NodeView",
    "Nodes",
    "PodView",
    "Scheduler",
    "balanced",
    "fits",
    "least_allocated",
    "most_allocated",
    "spread",
]
