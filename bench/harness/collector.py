"""Collector: how long Python's garbage collector stopped this process, and how long a full collection takes."""

from __future__ import annotations

import gc
import json
import signal
import time
from pathlib import Path
from typing import Any, Final

__all__ = ["Collections"]

OLDEST: Final = 2


class Collections:
    """Counts from its creation on; SIGUSR1 writes the sums to `file`, and with them the time of one full collection."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._began = 0.0
        self._seconds = 0.0
        self._full = 0
        self._frozen = gc.get_freeze_count()  # Python 3.12 freezes some objects itself
        gc.callbacks.append(self._note)
        signal.signal(signal.SIGUSR1, self._write)

    def _note(self, phase: str, info: dict[str, int]) -> None:
        if gc.get_freeze_count() <= self._frozen:
            # The runtime collects once at its start, before it freezes what its modules made.
            return
        if phase == "start":
            self._began = time.perf_counter()
            return
        self._seconds += time.perf_counter() - self._began
        self._full += info["generation"] == OLDEST

    def _write(self, *_: Any) -> None:
        gc.callbacks.remove(self._note)
        began = time.perf_counter()
        gc.collect()
        sums = {"ms": self._seconds * 1e3, "full": self._full, "ms of a full one": (time.perf_counter() - began) * 1e3}
        unfinished = self._file.with_suffix(".new")
        unfinished.write_text(json.dumps(sums), "utf-8")
        unfinished.replace(self._file)
