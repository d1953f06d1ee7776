"""Testing: what tests of an operator need.

`axn` builds the token for a handler test without a server, `handle` lets it pass through the handler, and what begins
with `assert_` reads what is registered then. `run_task` and `reconcile` do the same for periodic tasks and reconcilers,
`schedule` asks a scheduler for a node, `round_trip` checks conversion functions. `record_permissions` compares what is
asked of a server with what the manifest grants. `plugin` holds pytest fixtures for tests with a real server:
`running_operator` is a `RunningOperator`.
"""

from __future__ import annotations

from ..manifest.recorder import Comparison, PermissionRecorder, record_permissions
from .assertions import (
    assert_condition,
    assert_descendant,
    assert_event,
    assert_no_descendant,
    assert_no_event,
    assert_requeued,
    assert_status,
)
from .conversion import round_trip
from .running import RunningOperator, is_ready
from .scheduling import schedule
from .servers import reconcile, run_task
from .token import axn, handle

__all__ = [
    "Comparison",
    "PermissionRecorder",
    "RunningOperator",
    "assert_condition",
    "assert_descendant",
    "assert_event",
    "assert_no_descendant",
    "assert_no_event",
    "assert_requeued",
    "assert_status",
    "axn",
    "handle",
    "is_ready",
    "reconcile",
    "record_permissions",
    "round_trip",
    "run_task",
    "schedule",
]
