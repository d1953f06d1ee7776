"""Backoff: how long to wait after the n-th failure in a row.

You need it wherever something is tried again: a stream, a key.
Elsewhere: who counts the failures (`watch`, `queue`).
"""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import OptionError


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """An exponential wait with full jitter between its base and its current bound. Times are seconds."""

    base: float
    """The shortest wait, also the minimum of every later one, so that jitter never causes a busy loop."""

    cap: float
    """The longest wait."""

    def __post_init__(self) -> None:
        if not 0 < self.base <= self.cap:
            raise OptionError(f"Backoff(base={self.base}, cap={self.cap}): use 0 < base <= cap, in seconds")

    def delay(self, failures: int, *, chance: float) -> float:
        """The wait after `failures` (1 or more) in a row; `chance` is a uniform draw from [0, 1)."""
        # 2**63 times any base is beyond any cap; a larger exponent would only overflow.
        bound = min(self.cap, self.base * 2.0 ** min(failures, 63))
        return self.base + chance * (bound - self.base)
