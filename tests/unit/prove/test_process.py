"""Process: the failure of a reconcile is read in the log, as long as it lasts."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from bonny_dev.prove.process import FAILURES, Process

NOW = 1_700_000_000.0


def entry(message: str, *, object: str = "n1/desk", ago: float = 0.0, wait: float = 0.5) -> str:  # noqa: A002  its name
    moment = datetime.fromtimestamp(NOW - ago, UTC).isoformat(timespec="milliseconds")
    line = {"time": moment, "message": message, "controller": "LampController", "object": object}
    more = {"error": "KeyError: 'fast'", "retry_in_seconds": wait} if message == "reconcile failed" else {}
    return json.dumps({**line, **more})


def process(tmp_path: Path, *lines: str) -> Process:
    anything: Any = None
    made = Process(anything, anything, kubeconfig=tmp_path, service="")
    made._log = tmp_path / "log"
    made._log.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return made


FAILED = entry("reconcile failed")


def test_the_error_of_a_traceback_is_named_with_its_type(tmp_path: Path) -> None:
    traceback = "Traceback (most recent call last):\n  File x\nKeyError: 'fast'\nin step DelegateToController"
    first = {**json.loads(FAILED), "exception": traceback, "error": "'fast'"}

    assert process(tmp_path, json.dumps(first), FAILED).failure(now=NOW) == ("KeyError: 'fast'", False)


@pytest.mark.parametrize(
    ("lines", "again"),
    [([FAILED], False), ([FAILED] * (FAILURES - 1), False), ([FAILED] * FAILURES, True)],
)
def test_a_reconcile_fails_each_time_after_a_few_failures(tmp_path: Path, lines: list[str], again: bool) -> None:
    assert process(tmp_path, "no JSON", "1", *lines).failure(now=NOW) == ("KeyError: 'fast'", again)


@pytest.mark.parametrize("end", ["reconciled", "waiting", "retry requested", "stopped until the object changes"])
def test_a_failure_is_over_with_another_end_of_the_reconcile_of_that_object(tmp_path: Path, end: str) -> None:
    failures = [FAILED] * FAILURES

    assert process(tmp_path, *failures, entry(end)).failure(now=NOW) == ("", False)
    assert process(tmp_path, *failures, entry(end, object="n1/other")).failure(now=NOW) == ("KeyError: 'fast'", True)


def test_a_failure_is_over_when_no_other_one_follows_in_time(tmp_path: Path) -> None:
    late = entry("reconcile failed", ago=3.0, wait=0.5)

    assert process(tmp_path, *[late] * FAILURES).failure(now=NOW) == ("", False)
    longer = entry("reconcile failed", ago=3.0, wait=2.0)
    assert process(tmp_path, longer).failure(now=NOW) == ("KeyError: 'fast'", False)


def test_failures_before_a_chapter_do_not_count_in_it(tmp_path: Path) -> None:
    made = process(tmp_path, *[FAILED] * FAILURES)

    made.mark()

    assert made.failure(now=NOW) == ("", False)
