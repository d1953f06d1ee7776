"""Contestants: who takes part. kube-scheduler is built when it is not there yet, which takes minutes."""

from __future__ import annotations

import os
import sys
from functools import partial
from typing import Final

from bench.harness.contestants import BONNY, BONNY_UVLOOP, ROOT, Contestant, Makers, bonny
from bonny_dev.sandbox.binaries import obtain

__all__ = ["KUBE_SCHEDULER", "LEAN", "MAKERS"]

KUBE_SCHEDULER: Final = "kube-scheduler"
LEAN: Final = "kube-scheduler-lean"


def kube_scheduler(name: str) -> Contestant:
    """The real one, with its default profile, or (`LEAN`) with one that scores as ours does."""
    program = obtain(["kube-scheduler"])["kube-scheduler"]
    path = os.pathsep.join((str(ROOT / "runtime"), str(ROOT)))
    settings = {"PYTHONPATH": path, "BENCH_PROGRAM": str(program), "BENCH_LEAN": "1" if name == LEAN else ""}
    return Contestant(name, (sys.executable, "-m", "bench.scheduler.kube_scheduler"), settings)


MAKERS: Final[Makers] = {
    BONNY: partial(bonny, "bench.scheduler.bonny_operator"),
    BONNY_UVLOOP: partial(bonny, "bench.scheduler.bonny_operator", BONNY_UVLOOP),
    KUBE_SCHEDULER: partial(kube_scheduler, KUBE_SCHEDULER),
    LEAN: partial(kube_scheduler, LEAN),
}
