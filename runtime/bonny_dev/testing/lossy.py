"""Lossy: watches that show some changes late, and others not at all, and never a change that was not made.

Each is an effect of `bonny_dev.testing.faults`, for requests that are watches. It passes back lines that a slower
API server could have sent: lines late, lines left out up to a list, or several changes of an object as one.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterable, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final, TypeAlias

Lines: TypeAlias = AsyncIterable[bytes]
Write: TypeAlias = Callable[[bytes], Awaitable[None]]

ADDED: Final = "ADDED"
DELETED: Final = "DELETED"


@dataclass(frozen=True, slots=True)
class Late:
    """Each line of a watch comes so many seconds late. Bookmarks are as late as the events before them."""

    seconds: float

    async def pass_back(self, lines: Lines, write: Write) -> None:
        """Pass lines back: the reader does not wait for the writer."""
        waiting: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

        async def read() -> None:
            try:
                async for line in lines:
                    waiting.put_nowait((time.monotonic() + self.seconds, line))
            finally:
                waiting.put_nowait((0.0, b""))

        reader = asyncio.create_task(read())
        try:
            while (due := await waiting.get())[1]:
                await asyncio.sleep(max(0.0, due[0] - time.monotonic()))
                await write(due[1])
        finally:
            reader.cancel()
            await asyncio.wait([reader])


@dataclass(frozen=True, slots=True)
class Coalesce:
    """Of all events of an object within so many seconds a watch shows the last one.

    An object that was created and deleted in that time is not shown at all. One that was deleted and created again has
    another UID, so both events are shown.
    """

    seconds: float

    async def pass_back(self, lines: Lines, write: Write) -> None:
        """Collect lines, and pass them back at the end of each period in which there were some."""
        held: list[bytes] = []
        some, ended = asyncio.Event(), False

        async def read() -> None:
            nonlocal ended
            try:
                async for line in lines:
                    held.append(line)
                    some.set()
            finally:
                ended = True
                some.set()

        reader = asyncio.create_task(read())
        try:
            while not ended:
                await some.wait()
                some.clear()
                await asyncio.sleep(self.seconds)
                kept = coalesced(held)
                held.clear()
                for line in kept:
                    await write(line)
        finally:
            reader.cancel()
            await asyncio.wait([reader])


@dataclass(frozen=True, slots=True)
class Lose:
    """While `lost` is set, the lines of a watch are left out. The caller clears it and resets the watch, so that
    the client lists again."""

    lost: threading.Event = field(default_factory=threading.Event)

    async def pass_back(self, lines: Lines, write: Write) -> None:
        """Pass lines back, except the lost lines."""
        async for line in lines:
            if not self.lost.is_set():
                await write(line)


def coalesced(lines: list[bytes]) -> list[bytes]:
    """The lines of a watch with one event for each object: the last one, in the order of these."""
    kept: dict[object, tuple[str, bytes]] = {}
    for number, line in enumerate(lines):
        event = json.loads(line)
        uid = event["object"].get("metadata", {}).get("uid")
        if not uid:  # a bookmark or an error
            kept[number] = (event["type"], line)
            continue
        before = kept.pop(uid, None)
        if before is None or before[0] != ADDED:
            kept[uid] = (event["type"], line)
        elif event["type"] != DELETED:
            kept[uid] = (ADDED, json.dumps({**event, "type": ADDED}).encode() + b"\n")
    return [line for _, line in kept.values()]
