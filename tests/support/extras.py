"""Extras: the part of an extra in a run of a process, by its type."""

from __future__ import annotations

from typing import TypeVar

from bonny.extras import ExtraRun
from bonny.run.process import Process

R = TypeVar("R", bound=ExtraRun)


def find_run(process: Process, kind: type[R]) -> R | None:
    """The part of that type; None if the operator does not use its extra."""
    return next((each for each in process.extras if isinstance(each, kind)), None)


def run_of(process: Process, kind: type[R]) -> R:
    """The part of that type."""
    found = find_run(process, kind)
    assert found is not None
    return found
