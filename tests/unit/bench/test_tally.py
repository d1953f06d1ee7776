"""The tally: what contestants tell of their handlers, and how the bench reads it."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.harness.run import all_calls, first_call, largest_size
from bench.harness.tally import Tally


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of a tally that waits for two objects."""
    monkeypatch.setenv("BENCH_OBJECTS", "2")
    monkeypatch.setenv("BENCH_TALLY", str(tmp_path / "tally"))
    return tmp_path / "tally"


def test_all_objects_were_seen_once_the_last_of_them_was(told: Path) -> None:
    tally = Tally()
    tally.note("w0", 1)
    assert all_calls(told.read_text("utf-8"), size=1, objects=2) is None

    tally.note("w1", 1)

    calls = all_calls(told.read_text("utf-8"), size=1, objects=2)
    assert calls is not None
    assert calls.first <= calls.last


def test_a_second_call_for_the_same_size_does_not_make_up_for_another_object(told: Path) -> None:
    tally = Tally()
    tally.note("w0", 1)
    tally.note("w0", 1)

    assert all_calls(told.read_text("utf-8"), size=1, objects=2) is None


def test_the_first_call_is_known_before_all_objects_were_seen(told: Path) -> None:
    tally = Tally()
    assert first_call("", size=1) is None
    tally.note("w0", 1)

    first = first_call(told.read_text("utf-8"), size=1)

    assert first is not None
    assert first_call(told.read_text("utf-8"), size=2) is None
    tally.note("w1", 1)
    assert first_call(told.read_text("utf-8"), size=1) == first


def test_an_object_that_is_handled_often_does_not_make_up_for_one_that_is_not(told: Path) -> None:
    tally = Tally()
    for name in ("w0", "w0", "w0", "w1"):
        tally.handled(name)

    text = told.read_text("utf-8")
    assert all_calls(text, size=1, objects=2) is not None
    assert all_calls(text, size=2, objects=2) is None
    assert largest_size(text) == 3


def test_nothing_was_seen_before_anything_was_told() -> None:
    assert (all_calls("", size=1, objects=2), largest_size("")) == (None, 0)
