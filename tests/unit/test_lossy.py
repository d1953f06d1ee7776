"""Lossy watches: what is left of their lines (bonny_dev.testing.lossy)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

from bonny_dev.testing.lossy import Coalesce, Lose, coalesced


def line(what: str, uid: str, size: int = 0) -> bytes:
    return json.dumps({"type": what, "object": {"metadata": {"uid": uid}, "size": size}}).encode() + b"\n"


def bookmark(version: str) -> bytes:
    return json.dumps({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": version}}}).encode() + b"\n"


def shown(lines: list[bytes]) -> list[tuple[str, str, int]]:
    events = [json.loads(each) for each in coalesced(lines)]
    return [(each["type"], each["object"]["metadata"].get("uid"), each["object"].get("size")) for each in events]


def test_the_last_of_several_changes_is_shown_in_the_order_of_the_last_ones() -> None:
    lines = [line("MODIFIED", "a", 1), line("MODIFIED", "b", 1), line("MODIFIED", "a", 2)]

    assert shown(lines) == [("MODIFIED", "b", 1), ("MODIFIED", "a", 2)]


def test_an_object_that_was_created_and_changed_is_shown_as_created() -> None:
    assert shown([line("ADDED", "a", 1), line("MODIFIED", "a", 2)]) == [("ADDED", "a", 2)]


def test_an_object_that_was_created_and_deleted_is_not_shown() -> None:
    assert shown([line("ADDED", "a"), line("MODIFIED", "a"), line("DELETED", "a")]) == []


def test_an_object_that_was_deleted_and_created_again_is_shown_as_both() -> None:
    assert shown([line("DELETED", "a"), line("ADDED", "b")]) == [("DELETED", "a", 0), ("ADDED", "b", 0)]


def test_bookmarks_and_errors_stay() -> None:
    lines = [line("MODIFIED", "a", 1), bookmark("1"), bookmark("2")]

    assert coalesced(lines) == lines


async def given(lines: list[bytes], before: asyncio.Event | None = None) -> AsyncIterator[bytes]:
    for each in lines:
        yield each
        if before is not None:
            await before.wait()


def passed(effect: Coalesce | Lose, lines: list[bytes]) -> list[bytes]:
    written: list[bytes] = []

    async def write(data: bytes) -> None:
        written.append(data)

    asyncio.run(effect.pass_back(given(lines), write))
    return written


def test_a_period_ends_with_one_event_of_each_object() -> None:
    lines = [line("ADDED", "a", 1), line("MODIFIED", "a", 2), line("ADDED", "b", 1)]

    assert passed(Coalesce(0.0), lines) == coalesced(lines)


def test_lines_are_lost_only_while_it_is_set() -> None:
    effect, lines = Lose(), [line("ADDED", "a"), line("ADDED", "b")]

    assert passed(effect, lines) == lines
    effect.lost.set()
    assert passed(effect, lines) == []
