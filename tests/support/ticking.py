"""A process with one periodic task; it writes the seconds from its start to each run."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any, cast

from bonny.servers.periodic import PeriodicTask, PeriodicTasks, TaskRun

ROOT = Path(__file__).resolve().parents[2]
INTERVAL = 0.4


async def main() -> None:
    began = time.monotonic()

    async def tick(run: TaskRun) -> None:
        print(time.monotonic() - began)

    await PeriodicTasks(cast("Any", None), [PeriodicTask("tick", tick, interval=INTERVAL)]).run()


if __name__ == "__main__":
    asyncio.run(main())
