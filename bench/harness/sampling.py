"""Sampling: where the processor time of this process goes, looked at a thousand times a second.

A tracing profiler such as cProfile makes code of many small calls look several times dearer than it is; samples do not.
What a function of C takes counts as its caller's own time. Only the main thread is looked at: an event loop's.
"""

from __future__ import annotations

import json
import signal
import time
from collections import Counter
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final

__all__ = ["Sampler", "shown"]

PERIOD_SECONDS: Final = 0.001
# Where an event loop waits, which is no work.
WAITING: Final = "EpollSelector.select"
SHOWN: Final = 25


class Sampler:
    """Samples from its making on; SIGUSR1 writes what came together to `file` and begins anew."""

    def __init__(self, file: Path) -> None:
        self._file = file
        signal.signal(signal.SIGALRM, self._sample)
        signal.signal(signal.SIGUSR1, self._write)
        self._begin()

    def _begin(self) -> None:
        self._own: Counter[CodeType] = Counter()
        self._within: Counter[CodeType] = Counter()
        self._began = time.process_time()
        signal.setitimer(signal.ITIMER_REAL, PERIOD_SECONDS, PERIOD_SECONDS)

    def _sample(self, _: int, frame: FrameType | None) -> None:
        if frame is None or frame.f_code.co_qualname == WAITING:
            return
        self._own[frame.f_code] += 1
        seen = set()
        while frame is not None:
            seen.add(frame.f_code)
            frame = frame.f_back
        self._within.update(seen)

    def _write(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        spent = time.process_time() - self._began
        functions = [[_named(code), self._own[code], count] for code, count in self._within.items()]
        self._file.write_text(json.dumps({"cpu_seconds": spent, "functions": functions}), "utf-8")
        self._begin()


def shown(file: Path, *, objects: int) -> str:
    """What a sampler wrote, as a table: microseconds for each object by function, the most own time first."""
    profile: dict[str, Any] = json.loads(file.read_text("utf-8"))
    functions: list[tuple[str, int, int]] = [tuple(known) for known in profile["functions"]]
    samples = sum(own for _, own, _ in functions)
    each = profile["cpu_seconds"] / objects * 1e6
    lines = [
        f"{each:9.1f} us of CPU for each object, the sampler's own included; {samples} samples",
        "   own us   with callees  function",
    ]
    first = sorted(functions, key=lambda known: known[1], reverse=True)[:SHOWN]
    lines += [f"{own / samples * each:9.1f}{within / samples * each:15.1f}  {name}" for name, own, within in first]
    return "\n".join(lines)


def _named(code: CodeType) -> str:
    """`servers/worker.py:147 Worker._handle`."""
    return f"{'/'.join(Path(code.co_filename).parts[-2:])}:{code.co_firstlineno} {code.co_qualname}"
