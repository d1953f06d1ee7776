"""External: the HTTP service of a life, and the state that it answers with."""

from __future__ import annotations

from pathlib import Path

from bonny_dev.prove.external import External


def test_one_read_is_answered_with_the_state_before_the_last_change() -> None:
    service = External(ca_file=Path(), folder=Path())
    service.answer("PUT", "/lamps/1", {"size": 1})
    service.answer("PUT", "/lamps/1", {"size": 2})

    service.look_back()

    assert service.answer("GET", "/lamps/1", None) == (200, {"size": 1})
    assert service.answer("GET", "/lamps/1", None) == (200, {"size": 2})


def test_a_new_record_is_not_there_for_one_read() -> None:
    service = External(ca_file=Path(), folder=Path())
    made = service.answer("POST", "/lamps", {"size": 1})[1]["path"]

    service.look_back()

    assert service.answer("GET", "/lamps", None) == (404, None)
    assert service.answer("GET", "/lamps", None) == (200, {made: {"size": 1}})


def test_an_old_answer_does_not_outlast_its_life() -> None:
    service = External(ca_file=Path(), folder=Path())
    service.answer("PUT", "/lamps/1", {"size": 1})
    service.look_back()

    service.reset()

    service.answer("PUT", "/lamps/1", {"size": 3})
    assert service.answer("GET", "/lamps/1", None) == (200, {"size": 3})
