"""Testing: builders, assertions and fixtures for tests of an operator.

`axn` builds the token for a handler test without a server, `handle` passes it through the handler, and the functions
that begin with `assert_` check what the handler registered; `child_of` makes a child for `observed`. `run_task` and
`reconcile` do the same for periodic tasks and reconcilers, `schedule` asks a scheduler for a node, `review` asks an
admission webhook about a write, `round_trip` checks conversion functions. `record_permissions` compares used
permissions with the manifest. `plugin` holds pytest fixtures for tests with a real server: `running_operator` is a
`RunningOperator`.
"""

from __future__ import annotations

from ..manifest.recorder import Comparison, PermissionRecorder, record_permissions
from .admission import Reviewed, review
from .answers import Answers, Request
from .assertions import (
    assert_condition,
    assert_descendant,
    assert_event,
    assert_no_descendant,
    assert_no_event,
    assert_pruned,
    assert_requeued,
    assert_status,
)
from .conversion import round_trip
from .running import RunningOperator, is_ready
from .scheduling import schedule
from .servers import reconcile, run_task
from .shown import child_of
from .token import Handled, axn, handle

__all__ = [
    "Answers",
    "Comparison",
    "Handled",
    "PermissionRecorder",
    "Request",
    "Reviewed",
    "RunningOperator",
    "assert_condition",
    "assert_descendant",
    "assert_event",
    "assert_no_descendant",
    "assert_no_event",
    "assert_pruned",
    "assert_requeued",
    "assert_status",
    "axn",
    "child_of",
    "handle",
    "is_ready",
    "reconcile",
    "record_permissions",
    "review",
    "round_trip",
    "run_task",
    "schedule",
]
