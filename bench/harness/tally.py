"""Tally: how a contestant tells what its handler saw, for the price of two look-ups in a mapping for each call.

Each object has a size: a number that it carries, or how often it was handled. Once all `BENCH_OBJECTS` objects were
seen at one size, nothing was missed: the file `BENCH_TALLY` gets a line at the first and at the last of them:
`<size> <objects seen at it> <seconds since 1970>`. `controller_runtime/widget/tally.go` does the same in Go.
Only the standard library: kopf's environment has no other.
"""

from __future__ import annotations

import os
import threading
import time

__all__ = ["Tally"]


class Tally:
    """Counts the objects that were seen at each size."""

    def __init__(self) -> None:
        self._file = os.environ["BENCH_TALLY"]
        self._wanted = int(os.environ["BENCH_OBJECTS"])
        self._sizes: dict[str, int] = {}
        self._counts: dict[int, int] = {}
        # kopf calls what is no coroutine in threads.
        self._lock = threading.Lock()

    def note(self, name: str, size: int) -> None:
        """The handler was called for the object `name` and saw `size`; being called again for it does not count."""
        with self._lock:
            if self._sizes.get(name) != size:
                self._seen(name, size)

    def handled(self, name: str) -> None:
        """The handler was called for the object `name` once more; its size is how often."""
        with self._lock:
            self._seen(name, self._sizes.get(name, 0) + 1)

    def _seen(self, name: str, size: int) -> None:
        self._sizes[name] = size
        count = self._counts[size] = self._counts.get(size, 0) + 1
        if count in (1, self._wanted):
            with open(self._file, "a", encoding="utf-8") as file:  # noqa: PTH123  no more imports than needed
                file.write(f"{size} {count} {time.time():.6f}\n")
