"""Terms of whole operators: what becomes of their work at the stop, and when the lease is lost."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from bonny.sandbox import Sandbox
from tests.conftest import Start

STUBBORN: Final = Path(__file__).parents[1] / "support" / "stubborn.py"
GRACE_SECONDS: Final = 1.0
# What a pod is given after the grace period: `manifest.deployment`.
STOP_SECONDS: Final = 4.5


def test_handlers_that_swallow_their_cancellation_do_not_hold_up_the_stop(
    sandbox: Sandbox, start_operator: Start
) -> None:
    """Regression: the process waited for a periodic task, or a server, until it was killed, and kept its lease."""
    at_work = start_operator(
        [sys.executable, str(STUBBORN)],
        BONNY_LEADER_ELECTION="true",
        BONNY_POD_NAMESPACE="default",
        BONNY_GRACE_SECONDS=str(GRACE_SECONDS),
    )
    Sandbox.eventually(lambda: {"the task runs", "the server runs"} <= {*at_work.text.splitlines()})

    code, seconds = at_work.stop()

    assert code == 0, at_work.text
    assert seconds < GRACE_SECONDS + STOP_SECONDS
    assert at_work.lines("a handler that would not end was abandoned")
    lease = sandbox.get("coordination.k8s.io/v1", "Lease", "stubborn")
    assert lease is not None
    assert lease["spec"]["holderIdentity"] == ""
