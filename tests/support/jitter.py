"""Jitter: a pytest plugin that finds tests which rely on being as fast as what they test.

    pytest -p tests.support.jitter --jitter test tests/integration       the lines of the tests are slow
    pytest -p tests.support.jitter --jitter runtime tests/integration    calls within the runtime's threads are slow

Either stands for a machine that gives its time to somebody else. A test that fails here and not elsewhere compares two
moments that nothing holds together. `--jitter-seed` repeats the pauses of a run.
"""

from __future__ import annotations

import random
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any, Final

import pytest

TESTS: Final = str(Path(__file__).resolve().parent.parent)
RUNTIME: Final = str(Path(__file__).resolve().parent.parent.parent / "runtime" / "bonny")
SHARE_OF_LINES: Final = 0.3
SHARE_OF_CALLS: Final = 0.002
PAUSE_SECONDS: Final = 0.6
# A loop that waits for a condition must not become endless.
MOST_SECONDS: Final = 5.0


class Jitter:
    """Pauses, chosen by chance, that take up to `MOST_SECONDS` of a test."""

    def __init__(self, where: str, seed: int) -> None:
        self._where = where
        self._chance = random.Random(seed)
        self._left = 0.0

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_call(self) -> Iterator[None]:
        """Pause within the test itself; fixtures stay as they are."""
        self._left = MOST_SECONDS
        if self._where == "test":
            sys.settrace(self._in_tests)
        else:
            threading.settrace(self._in_runtime)
        yield
        sys.settrace(None)
        threading.settrace(None)  # type: ignore[arg-type]

    def _pause(self, share: float) -> None:
        if self._left > 0 and self._chance.random() < share:
            seconds = self._chance.uniform(0, PAUSE_SECONDS)
            self._left -= seconds
            time.sleep(seconds)

    def _in_tests(self, frame: FrameType, event: str, arg: Any) -> Any:
        code = frame.f_code
        if code.co_filename.startswith(TESTS) and code.co_name.startswith("test_"):
            return self._on_line
        return None

    def _on_line(self, frame: FrameType, event: str, arg: Any) -> Any:
        if event == "line":
            self._pause(SHARE_OF_LINES)
        return self._on_line

    def _in_runtime(self, frame: FrameType, event: str, arg: Any) -> Any:
        if frame.f_code.co_filename.startswith(RUNTIME):
            self._pause(SHARE_OF_CALLS)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--jitter", choices=("test", "runtime"), help="where to pause by chance")
    parser.addoption("--jitter-seed", type=int, default=None, help="repeats the pauses of a run")


def pytest_configure(config: pytest.Config) -> None:
    if where := config.getoption("--jitter"):
        seed = config.getoption("--jitter-seed")
        config.stash[SEED] = random.randrange(10**6) if seed is None else seed
        config.pluginmanager.register(Jitter(where, config.stash[SEED]))


def pytest_report_header(config: pytest.Config) -> str | None:
    return f"jitter: --jitter-seed {config.stash[SEED]}" if SEED in config.stash else None


SEED: Final = pytest.StashKey[int]()
