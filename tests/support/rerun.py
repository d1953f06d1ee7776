"""Rerun: a pytest plugin by which every failing test says the one line that runs it again.

You need it where a run is long and each test has many rows: the name of a row alone is hard to type.
"""

from __future__ import annotations

import shlex
from collections.abc import Generator

import pytest

__all__ = ["pytest_runtest_makereport"]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the line to the report of a setup, call or teardown that failed."""
    report = yield
    if report.failed:
        seed = item.config.getoption("hypothesis_seed")
        words = f"--hypothesis-profile=random --hypothesis-seed={seed} " if seed else ""
        report.sections.append(("this row alone", f"re-run: .venv/bin/pytest {words}{shlex.quote(item.nodeid)}"))
    return report
