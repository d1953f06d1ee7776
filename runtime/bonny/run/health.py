"""Health: the two probes of a running operator, with reasons.

Liveness is red when a restart would help: a part makes no progress. Readiness is red while the operator does no work.
An error that a restart would not fix (a missing CRD or permission) is listed, and makes readiness red only when every
stream has one.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Iterable
from typing import Any, Final, TypeAlias

from ..core.watch import LONGEST_ADVICE_SECONDS, WatchOptions
from ..engine.stream import Stream
from ..engine.worker import Worker
from ..servers.visitor import ObjectVisitor
from .probes import Report

# A list or watch that is silent for this much longer than any of its requests may take is stuck.
SILENT_SECONDS: Final = 60.0
Slots: TypeAlias = Worker | ObjectVisitor
# An API server that is replaced is back within half a minute.
BEHIND_SECONDS: Final = 30.0


def liveness(
    options: WatchOptions, streams: Iterable[Stream], workers: Iterable[Slots], parts: Iterable[asyncio.Task[Any]]
) -> Report:
    """Red when a stream makes no request within its deadline, all slots are stuck, or one of `parts` ended."""
    now = time.monotonic()
    longest = max(options.timeout[1] + options.grace, LONGEST_ADVICE_SECONDS * 1.25) + SILENT_SECONDS
    ended = [f"{part.get_name()} ended" for part in parts if part.done()]
    silent = [(stream, now - stream.last_contact) for stream in streams]
    stuck = [f"{stream}: silent for {seconds:.0f} s" for stream, seconds in silent if seconds > longest]
    full = [f"{worker}: every slot is stuck" for worker in workers if worker.stuck]
    return Report(not (ended or stuck or full), tuple(ended + stuck + full))


def readiness(
    streams: Collection[Stream], *, started: bool, notes: Iterable[str] = (), dropped: Collection[str] = ()
) -> Report:
    """Green when every stream is in sync or blocked, unless all are blocked or a part was `dropped`.

    A stream is blocked while a CRD or a permission is missing. A stream that was in sync counts as in sync for as long
    as a restart of the API server takes. `notes` are lines to add.
    """
    since = time.monotonic() - BEHIND_SECONDS
    ready = all(
        stream.blocked or (stream.synced and (stream.error is None or stream.error.since > since)) for stream in streams
    )
    useless = bool(streams) and all(stream.blocked for stream in streams)
    return Report(started and ready and not (useless or dropped), (*map(_state, streams), *notes, *dropped))


def _state(stream: Stream) -> str:
    if stream.error is None:
        return f"{stream}: {'in sync' if stream.synced else 'syncing'}, {len(stream.store)} objects"
    error = stream.error
    return f"{stream}: {error.kind.value} ({error.verb} {error.status}: {error.message})"
