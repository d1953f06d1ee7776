"""Testing: what tests of an operator need.

`axn` builds the token for a handler test without a server, and `round_trip` checks conversion functions. `plugin` holds
pytest fixtures for tests with a server: `running_operator` is a `RunningOperator`.
"""

from __future__ import annotations

from .conversion import round_trip
from .running import RunningOperator, is_ready
from .token import axn

__all__ = ["RunningOperator", "axn", "is_ready", "round_trip"]
