"""Testing: builders, assertions and fixtures for tests of an operator.

`axn` builds the token for a handler test without a server, `handle` passes it through the handler, and the functions
that begin with `assert_` check the registered state; `child_of` makes a child for `observed`. `Ticks` reconciles
again and again, until the controller rests; `External` lets each call to another system fail. `run_task` and
`reconcile` are like `handle`, for periodic tasks and reconcilers,
`schedule` returns the choice of a scheduler, `review` calls an admission webhook for a write, `round_trip` checks
conversion functions, `check_samples` the files in `samples/`.
`record_permissions` compares used permissions with the manifest. `plugin` holds pytest fixtures for tests with a real
server: `running_operator` is a `RunningOperator`, `workloads` is a `Workloads`.
"""

from __future__ import annotations

from bonny.readiness import is_ready as is_ready

from ..manifest.recorder import Comparison as Comparison
from ..manifest.recorder import PermissionRecorder as PermissionRecorder
from ..manifest.recorder import record_permissions as record_permissions
from ..sandbox.workloads import Workloads as Workloads
from .admission import Reviewed as Reviewed
from .admission import review as review
from .answers import Answers as Answers
from .answers import SentRequest as SentRequest
from .assertions import assert_condition as assert_condition
from .assertions import assert_descendant as assert_descendant
from .assertions import assert_event as assert_event
from .assertions import assert_no_descendant as assert_no_descendant
from .assertions import assert_no_event as assert_no_event
from .assertions import assert_pruned as assert_pruned
from .assertions import assert_requeued as assert_requeued
from .assertions import assert_status as assert_status
from .conversion import round_trip as round_trip
from .external import External as External
from .running import RunningOperator as RunningOperator
from .samples import check_samples as check_samples
from .scheduling import schedule as schedule
from .servers import reconcile as reconcile
from .servers import run_task as run_task
from .shown import child_of as child_of
from .shown import ready as ready
from .ticks import Ticks as Ticks
from .token import Handled as Handled
from .token import axn as axn
from .token import handle as handle
