"""Ours: how our contestants are run.

They connect as in a pod, from a ServiceAccount's files: for a kubeconfig they would load the official client, which
costs 0.1 s of CPU and 10 MB. All other settings are stock, the log included.

- `BENCH_LOOP` is the event loop, `asyncio` or `uvloop`, whatever the runtime would choose.
- `BENCH_PROFILE` names a file for a profile (`sampling`), `BENCH_COLLECTIONS` one for the garbage collector's times
  (`collector`).
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

from bonny import Controller, Operator, Scheduler
from bonny.client.config import InCluster
from bonny.main import defaults, serve
from bonny.run.config import Config

from .collector import Collections
from .sampling import Sampler

__all__ = ["choose_loop", "run"]


def run(*controllers: type[Controller[Any]], schedulers: tuple[type[Scheduler], ...] = ()) -> int:
    """Serve these until a signal comes; returns the exit code."""
    choose_loop(os.environ["BENCH_LOOP"])
    if "BENCH_PROFILE" in os.environ:
        Sampler(Path(os.environ["BENCH_PROFILE"]))
    if "BENCH_COLLECTIONS" in os.environ:
        Collections(Path(os.environ["BENCH_COLLECTIONS"]))
    operator = Operator(name="bench", group="example.com", controllers=controllers, schedulers=schedulers)
    cluster = InCluster(os.environ["BENCH_SERVER"], Path(os.environ["BENCH_ACCOUNT"]))
    return serve(operator, Config.from_environment(base=defaults(operator)), cluster)


def choose_loop(name: str) -> None:
    """Let loops that are made from now on be of uvloop, or else keep uvloop from being imported."""
    if name == "uvloop":
        import uvloop  # noqa: PLC0415  the other variant is measured without it

        asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    else:
        # Python raises ImportError for a module that is None here.
        sys.modules["uvloop"] = None  # type: ignore[assignment]
