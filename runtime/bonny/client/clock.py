"""Clock: seconds that also pass while the machine is suspended, for deadlines after which nothing may be written.

You need it for the lease and for writes within its term. For durations and waits `time.monotonic` is enough.
"""

from __future__ import annotations

import sys
import time

__all__ = ["clock"]


def clock() -> float:
    """Monotonic seconds, suspend included; but only on Linux.

    Elsewhere a computer that was put to sleep wakes up as the leader that it was, for what was left of its term.
    """
    return time.clock_gettime(time.CLOCK_BOOTTIME) if sys.platform == "linux" else time.monotonic()
