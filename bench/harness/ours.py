"""Ours: how our contestants are run.

They connect as in a pod, from a ServiceAccount's files: for a kubeconfig they would load the official client, which
costs 0.1 s of CPU and 10 MB. All other settings are stock, the log included.

- `BENCH_LOOP` is the event loop, `asyncio` or `uvloop`; a baseline that has only that of asyncio ignores it.
- `BENCH_PROFILE` names a file for a profile (`sampling`), `BENCH_COLLECTIONS` one for the garbage collector's times
  (`collector`).
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from bonny import Controller, Operator
from bonny.client.config import InCluster
from bonny.main import defaults, serve
from bonny.run.config import Config
from bonny.scheduler import Scheduler
from bonny.webhooks import Admission

from .collector import Collections
from .sampling import Sampler

__all__ = ["run"]


def run(
    *controllers: type[Controller[Any]] | type[Admission[Any]], schedulers: tuple[type[Scheduler], ...] = ()
) -> int:
    """Serve these until a signal comes; returns the exit code."""
    if "BENCH_PROFILE" in os.environ:
        Sampler(Path(os.environ["BENCH_PROFILE"]))
    if "BENCH_COLLECTIONS" in os.environ:
        Collections(Path(os.environ["BENCH_COLLECTIONS"]))
    operator = Operator(name="bench", group="example.com", controllers=[*controllers, *schedulers])
    cluster = InCluster(os.environ["BENCH_SERVER"], Path(os.environ["BENCH_ACCOUNT"]))
    settings = replace(defaults(operator), event_loop=os.environ["BENCH_LOOP"])
    return serve(operator, Config.from_environment(base=settings), cluster)
