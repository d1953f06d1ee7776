"""Health: what the two probes say of a running operator, and why.

Liveness asks whether a restart would help: it is red only when something that should go on does not. Readiness asks
whether work is being done: trouble that a restart would not mend (a missing CRD, a missing permission) is listed, and
red only where nothing else is left.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Iterable
from typing import Any, Final, TypeAlias

from ..core.watch import LONGEST_ADVICE_SECONDS, WatchOptions
from ..engine.stream import Reflector
from ..engine.worker import Worker
from ..servers.server import Server
from .probes import Report

__all__ = ["liveness", "readiness"]

# A list or watch that gave no sign for so much longer than any request of its may take is stuck.
STUCK_SECONDS: Final = 60.0
Slots: TypeAlias = Worker | Server
# An API server that is replaced is back within half a minute.
BEHIND_SECONDS: Final = 30.0


def liveness(
    options: WatchOptions, streams: Iterable[Reflector], workers: Iterable[Slots], parts: Iterable[asyncio.Task[Any]]
) -> Report:
    """Red when a stream makes no attempt within its deadline, all slots are stuck, or one of `parts` ended."""
    now = time.monotonic()
    longest = max(options.timeout[1] + options.grace, LONGEST_ADVICE_SECONDS * 1.25) + STUCK_SECONDS
    ended = [f"{part.get_name()} ended" for part in parts if part.done()]
    stuck = [
        f"{stream}: no sign for {now - stream.last_contact:.0f} s"
        for stream in streams
        if now - stream.last_contact > longest
    ]
    full = [f"{worker}: every slot is stuck" for worker in workers if worker.stuck]
    return Report(not (ended or stuck or full), tuple(ended + stuck + full))


def readiness(
    streams: Collection[Reflector], *, started: bool, notes: Iterable[str] = (), dropped: Collection[str] = ()
) -> Report:
    """Green when every stream is in sync or waits for a person, unless all of them wait, or a part was `dropped` for
    good; `notes` are lines to add.

    A stream that was in sync stays so for as long as a restart of the API server takes.
    """
    since = time.monotonic() - BEHIND_SECONDS
    ready = all(
        stream.blocked or (stream.synced and (stream.trouble is None or stream.trouble.since > since))
        for stream in streams
    )
    useless = bool(streams) and all(stream.blocked for stream in streams)
    return Report(started and ready and not (useless or dropped), (*map(_state, streams), *notes, *dropped))


def _state(stream: Reflector) -> str:
    if stream.trouble is None:
        return f"{stream}: {'in sync' if stream.synced else 'syncing'}, {len(stream.store)} objects"
    trouble = stream.trouble
    return f"{stream}: {trouble.kind.value} ({trouble.verb} {trouble.status}: {trouble.message})"
