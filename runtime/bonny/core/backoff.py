"""Backoff: how long to wait after the n-th failure in a row."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import OptionError


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """An exponential wait between its base and its current bound, with jitter. Times are seconds."""

    base: float
    """The shortest wait, also the minimum of every later one, so that jitter never causes a busy loop."""

    cap: float
    """The longest wait."""

    def __post_init__(self) -> None:
        if not 0 < self.base <= self.cap:
            raise OptionError(f"Backoff(base={self.base}, cap={self.cap}): use 0 < base <= cap, in seconds")

    def delay(self, failures: int, *, chance: float, failing: float | None = None) -> float:
        """The wait after `failures` (1 or more) in a row; `chance` is a uniform draw from [0, 1).

        `failing`: the seconds since the first of these failures. The wait is not longer than that, but may always be
        twice the base: when the cause is gone, the wait that is left is not longer than the cause lasted. Default None:
        full jitter, for callers that only spread their tries.
        """
        # 2**63 times any base is beyond any cap; a larger exponent would only overflow.
        low, bound = self.base, min(self.cap, self.base * 2.0 ** min(failures, 63))
        if failing is not None:
            # A few short draws in a row must not lead to a long wait. Three quarters are fixed, so that there are
            # hardly more tries than with full jitter; the first draws keep keys apart that failed together.
            low = max(low, 0.75 * min(bound, failing))
            bound = min(bound, max(failing, 2 * self.base))
        return low + chance * (bound - low)
