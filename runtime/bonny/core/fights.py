"""Fights: how long to wait before correcting an object again that another writer keeps changing back.


Rules, each with a test of its name in tests/unit/core/test_fights.py:
- The first 5 corrections of a subject in a row are made at once, as for a person who edits a child.
- Each further one waits after the one before: 1 s, doubling to 60 s. One writer costs a request a minute at most.
- A row ends when the subject was left alone for 10 s after its wait: the next correction is made at once again.
- Only subjects corrected within the last 70 s are remembered.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Final

AT_ONCE: Final = 5
GAP_SECONDS: Final = 10.0
# Short enough to correct the object soon after the other writer stops; 1,000 fights still cost only 17 requests/s.
LONGEST_SECONDS: Final = 60.0


class Fights:
    """See the module. `now` is a monotonic clock in seconds."""

    def __init__(self) -> None:
        self._rows: OrderedDict[Hashable, tuple[int, float]] = OrderedDict()
        """Consecutive corrections, and when the next is allowed; in the order of the last correction."""

    def wait(self, subject: Hashable, *, now: float) -> float:
        """Seconds until `subject` may be corrected again; 0.0 for at once."""
        return max(self._rows.get(subject, (0, now))[1] - now, 0.0)

    def corrected(self, subject: Hashable, *, now: float) -> bool:
        """Remember a correction of `subject`; returns whether it begins a fight, which is reported once."""
        count, due = self._rows.pop(subject, (0, now))
        count = 1 if now - due >= GAP_SECONDS else count + 1
        # The exponent is bounded: a fight may last for months.
        wait = min(2.0 ** min(count - AT_ONCE, 10), LONGEST_SECONDS) if count >= AT_ONCE else 0.0
        self._rows[subject] = (count, now + wait)
        while now - next(iter(self._rows.values()))[1] >= GAP_SECONDS:
            self._rows.popitem(last=False)
        return count == AT_ONCE
