"""Custom schedulers: choose nodes for pods, with the filters and scores of kube-scheduler."""

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
