"""Logging: what a line tells, for people and for machines."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from bonny.calling import call
from bonny.core.queue import Reason
from bonny.resource import Key
from bonny.telemetry import logging as ours
from bonny.telemetry.logging import LogFormat, about, configure

log = logging.getLogger("test.logging")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    root, libraries = logging.getLogger(), [logging.getLogger(name) for name in ours.LIBRARIES]
    before = root.handlers[:], root.level, [library.level for library in libraries]
    flags = logging.logThreads, logging.logProcesses, logging.logMultiprocessing
    yield
    root.handlers[:], root.level = before[0], before[1]
    for library, level in zip(libraries, before[2], strict=True):
        library.setLevel(level)
    logging.logThreads, logging.logProcesses, logging.logMultiprocessing = flags


@pytest.fixture
def lines() -> Any:
    stream = io.StringIO()
    configure(LogFormat.JSON, stream=stream)
    return lambda: [json.loads(line) for line in stream.getvalue().splitlines()]


async def test_every_line_of_a_handling_tells_its_object_its_reasons_and_its_id_also_from_threads(lines: Any) -> None:
    def in_a_thread() -> None:
        assert threading.current_thread() is not threading.main_thread()
        log.info("thread")

    async def handle(name: str) -> None:
        about(controller="Widgets", object=Key("n", name), reasons=frozenset({Reason.CHILD, Reason.ADDED}))
        log.info("before")
        await asyncio.sleep(0)
        await call(in_a_thread)
        await asyncio.gather(asyncio.to_thread(in_a_thread))

    await asyncio.gather(asyncio.create_task(handle("a")), asyncio.create_task(handle("b")))
    log.info("nothing is handled here")

    *told, other = lines()
    assert [line["message"] for line in told].count("thread") == 4
    assert {(line["controller"], line["object"], line["reasons"]) for line in told} == {
        ("Widgets", "n/a", "added,child"),
        ("Widgets", "n/b", "added,child"),
    }
    ids = {line["object"]: line["reconcile_id"] for line in told}
    assert len(set(ids.values())) == 2
    assert all(line["reconcile_id"] == ids[line["object"]] for line in told)
    assert not {"controller", "object", "reasons", "reconcile_id"} & set(other)


async def test_what_a_line_says_itself_beats_what_is_known_of_the_handling(lines: Any) -> None:
    async def handle() -> None:
        about(object="n/a", task="t")
        log.info("said", extra={"object": "n/child"})

    await asyncio.create_task(handle())
    (line,) = lines()
    assert (line["object"], line["task"]) == ("n/child", "t")


async def test_a_second_handling_in_the_same_task_has_an_id_of_its_own_and_nothing_of_the_first(lines: Any) -> None:
    async def repeat() -> None:
        about(task="t", state="one")
        log.info("first")
        about(task="t")
        log.info("second")

    await asyncio.create_task(repeat())
    first, second = lines()
    assert first["reconcile_id"] != second["reconcile_id"]
    assert "state" not in second


@pytest.mark.parametrize(("stream", "no_colour", "coloured"), [
    (Terminal, "", True),
    (Terminal, "1", False),
    (io.StringIO, "", False),
])  # fmt: skip
def test_only_a_terminal_gets_colours_and_only_if_it_wants_them(
    monkeypatch: pytest.MonkeyPatch, stream: type[io.StringIO], no_colour: str, coloured: bool
) -> None:
    monkeypatch.setenv("NO_COLOR", no_colour)
    told = stream()
    configure(LogFormat.CONSOLE, stream=told)

    log.warning("it failed", extra={"object": "n/a", "error": "no way"})

    line = told.getvalue()
    assert ("\033[33m" in line) is coloured
    for code in ("\033[33m", "\033[2m", "\033[1m", "\033[0m"):
        line = line.replace(code, "")
    assert line.split(maxsplit=1)[1].split() == ["warning", "it", "failed", "object=n/a", 'error="no', 'way"']
