"""Clock: a monotonic clock that also runs while the machine is suspended, for deadlines of writes.

You need it for the lease and for writes within its term. For durations and waits `time.monotonic` is enough.
"""

from __future__ import annotations

import sys
import time


def clock() -> float:
    """Monotonic seconds; they include suspend only on Linux.

    On other systems a leader that was suspended stays leader after it wakes up, for the rest of its lease.
    """
    return time.clock_gettime(time.CLOCK_BOOTTIME) if sys.platform == "linux" else time.monotonic()
