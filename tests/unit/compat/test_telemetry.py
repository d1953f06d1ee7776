"""Spans, durations and the log of events, as Elixir's `:telemetry` and `Bonny.Sys` have them."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from bonny import compat, telemetry
from tests.support.heard import Heard, heard


def test_measure_gives_the_seconds_and_the_result() -> None:
    measurements, result = compat.measure(lambda: 42)
    assert result == 42
    assert set(measurements) == {"duration"}
    assert 0 <= measurements["duration"] < 1


@pytest.fixture
def spans() -> Iterator[Heard]:
    with heard("mine.span.start", "mine.span.stop", "mine.span.exception") as listener:
        yield listener


def test_a_span_tells_its_start_and_its_end_with_what_was_found_meanwhile(spans: Heard) -> None:
    with compat.span("mine.span", {"object": "w"}) as found:
        found["result"] = "ok"

    start, stop = spans.events
    assert (start.name, start.metadata, list(start.measurements)) == (
        "mine.span.start",
        {"object": "w"},
        ["system_time"],
    )
    assert (stop.name, stop.metadata) == ("mine.span.stop", {"object": "w", "result": "ok"})
    assert stop.measurements["duration"] >= 0


def test_a_span_that_raises_tells_of_the_error_and_raises_it(spans: Heard) -> None:
    error = ValueError("no")
    with pytest.raises(ValueError, match="no"), compat.span("mine.span"):
        raise error

    assert spans.names == ["mine.span.start", "mine.span.exception"]
    assert spans.events[1].metadata == {"error": error}


# --- the logger -------------------------------------------------------------------------------------------------------


def test_the_logger_writes_a_line_for_each_event_and_failures_are_warnings(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    compat.attach_logger()

    telemetry.execute("bonny.task.succeeded", {"duration": 0.5}, {"task": "t"})
    telemetry.execute("bonny.task.failed", {"duration": 0.5}, {"task": "t", "name": "n", "message": "m"})

    assert [(record.getMessage(), record.levelname) for record in caplog.records] == [
        ("bonny.task.succeeded", "DEBUG"),
        ("bonny.task.failed", "WARNING"),
    ]
    said = vars(caplog.records[1])
    assert (said["duration"], said["task"], said["name_"], said["message_"]) == (0.5, "t", "n", "m")
    assert telemetry.detach(compat.LOGGER_ID)
