"""Schedulers of one's own: choosing nodes for pods, with what kube-scheduler knows about both."""

from .binding import Binding
from .fits import fits
from .scheduler import Scheduler
from .score import balanced, least_allocated, most_allocated, spread

__all__ = ["Binding", "Scheduler", "balanced", "fits", "least_allocated", "most_allocated", "spread"]
