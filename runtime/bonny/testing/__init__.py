"""Testing: what tests of an operator need.

`axn` builds the token for a handler test without a server. `plugin` holds pytest fixtures for tests with a real one:
`running_operator` is a `RunningOperator`.
"""

from __future__ import annotations

from .running import RunningOperator, is_ready
from .token import axn

__all__ = ["RunningOperator", "axn", "is_ready"]
