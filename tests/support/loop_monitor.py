"""Loop monitor: how long a process's event loop was held by one thing, and by what.

It ticks on the loop every 5 ms. A tick that comes late was held up by what ran before it; a thread of its own looks at
the loop's stack meanwhile. A busy machine does not count: of a delay, only the CPU time is taken that the loop's own
thread used, or the garbage collector in whichever thread. What lasted longer than 20 ms is written to a file, a JSON
document a line.

You need it in an operator under test: `asyncio.create_task(LoopMonitor(path).run())` from code that runs on the loop.
The test reads the file with `holds`.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import threading
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, Final

__all__ = ["Hold", "LoopMonitor", "holds"]

TICK_SECONDS: Final = 0.005
# Shorter ones are nobody's concern, and would fill the file.
TOLD_SECONDS: Final = 0.020
# Deep enough to reach from asyncio's or msgspec's insides to a function of ours.
FRAMES: Final = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """One time that the loop was held. Times are seconds."""

    at: float
    """When it ended, as `time.time()`."""

    seconds: float
    """How late the tick was, at most the CPU time that was used meanwhile."""

    late: float
    """How late the tick was."""

    collecting: float
    """The CPU time that the garbage collector used, which is part of it."""

    stacks: dict[str, int] = field(default_factory=dict)
    """What the loop was seen to do, innermost function first, and how often."""

    def __str__(self) -> str:
        seen = "; ".join(f"{count} x {stack}" for stack, count in self.stacks.items()) or "not seen"
        times = f"{self.seconds * 1000:.0f} ms ({self.late * 1000:.0f} late, {self.collecting * 1000:.0f} collecting)"
        return f"{time.strftime('%H:%M:%S', time.localtime(self.at))} {times}: {seen}"


def holds(path: Path, *, since: float = 0.0) -> list[Hold]:
    """What a monitor wrote to `path`, the longest first; only what ended after `since` (as `time.time()`)."""
    told = [Hold(**json.loads(line)) for line in path.read_text("utf-8").splitlines()]
    return sorted((hold for hold in told if hold.at >= since), key=lambda hold: hold.seconds, reverse=True)


class LoopMonitor:
    """See the module."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._ticked = time.monotonic()
        self._stacks: Counter[str] = Counter()
        self._collecting = 0.0
        self._collecting_elsewhere = 0.0
        self._collection_began = 0.0
        self._loop_thread = 0

    async def run(self) -> None:
        """Tick until cancelled."""
        self._loop_thread = threading.get_ident()
        gc.callbacks.append(self._collected)
        looker = threading.Thread(target=self._look, name="loop monitor", daemon=True)
        with self._path.open("a", encoding="utf-8") as file:
            looker.start()
            while True:
                self._ticked, used = time.monotonic(), time.thread_time()
                self._stacks.clear()
                self._collecting = self._collecting_elsewhere = 0.0
                await asyncio.sleep(TICK_SECONDS)
                late = time.monotonic() - self._ticked - TICK_SECONDS
                held = min(late, time.thread_time() - used + self._collecting_elsewhere)
                if held > TOLD_SECONDS:
                    hold = Hold(
                        at=time.time(),
                        seconds=held,
                        late=late,
                        collecting=self._collecting,
                        stacks=dict(self._stacks.most_common(3)),
                    )
                    file.write(json.dumps(asdict(hold)) + "\n")
                    file.flush()

    def _look(self) -> None:
        """In a thread of its own: look at the loop's stack whenever its tick is overdue."""
        while True:
            time.sleep(TICK_SECONDS)
            frame = sys._current_frames().get(self._loop_thread)
            if frame is None:
                return
            if time.monotonic() - self._ticked > 2 * TICK_SECONDS:
                self._stacks[described(frame)] += 1

    def _collected(self, phase: str, _: dict[str, Any]) -> None:
        if phase == "start":
            self._collection_began = time.thread_time()
            return
        seconds = time.thread_time() - self._collection_began
        self._collecting += seconds
        if threading.get_ident() != self._loop_thread:
            self._collecting_elsewhere += seconds


def described(frame: FrameType | None) -> str:
    """The innermost functions of a stack."""
    names = []
    while frame is not None and len(names) < FRAMES:
        code = frame.f_code
        names.append(f"{Path(code.co_filename).name}:{frame.f_lineno} {code.co_name}")
        frame = frame.f_back
    return " < ".join(names)
