"""Logging: one line for each event, a constant message with its key/values, for people or for machines.

`console` is for terminals, `json` for log collectors. Object bodies and tokens never reach a log call.

Every line that is logged while something is handled says what, whoever logs it: `about` was called before. All lines of
one handling have the same `reconcile_id`, and no other has it.
"""

from __future__ import annotations

import itertools
import json
import logging
import os
import secrets
import sys
from collections.abc import Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final, TextIO

import msgspec

__all__ = ["LogFormat", "about", "configure", "reconcile_id"]

# What every LogRecord has; the rest came by `extra`.
STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


# `debug` is for what the operator does; how its libraries do it is nobody's question here.
LIBRARIES: Final = ("aiohttp", "asyncio", "invoke", "kubernetes", "opentelemetry", "urllib3")


# In the ids of all handlings of this process, so that no other process makes the same.
_MARK: Final = secrets.token_hex(4)
_numbers: Final = itertools.count(1)
_handled: ContextVar[tuple[int, Mapping[str, object]] | None] = ContextVar("handled", default=None)


class LogFormat(StrEnum):
    """How log lines look."""

    CONSOLE = "console"
    JSON = "json"


def about(**fields: object) -> None:
    """Let the lines of the current asyncio task, and of the threads and tasks that it starts, tell `fields`.

    A new `reconcile_id` goes with them; what was said before no longer does. A line's own fields beat them.
    """
    _handled.set((next(_numbers), fields))


def reconcile_id() -> str:
    """What is handled here, as the lines of its log call it; empty elsewhere."""
    handled = _handled.get()
    return "" if handled is None else f"{_MARK}-{handled[0]:x}"


def configure(form: LogFormat, *, level: int = logging.INFO, stream: TextIO | None = None) -> None:
    """Send the logs of this process to `stream` (default stderr) in `form`. Called once, by `bonny.main`."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.addFilter(_tell_what_is_handled)
    colour = handler.stream.isatty() and not os.environ.get("NO_COLOR")  # https://no-color.org
    handler.setFormatter(_Json() if form is LogFormat.JSON else _Console(colour=colour))
    logging.basicConfig(level=level, handlers=[handler], force=True)
    for other in LIBRARIES:
        logging.getLogger(other).setLevel(max(level, logging.INFO))
    # What our lines do not show need not be found out for each of them (Python's logging HOWTO, "Optimization").
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False


def _tell_what_is_handled(record: logging.LogRecord) -> bool:
    """A filter that lets everything pass."""
    handled = _handled.get()
    if handled is not None:
        for name, value in (*handled[1].items(), ("reconcile_id", reconcile_id())):
            text = ",".join(sorted(value)) if isinstance(value, frozenset) else str(value)
            vars(record).setdefault(name, text)
    return True


def _extras(record: logging.LogRecord) -> dict[str, object]:
    return {name: value for name, value in vars(record).items() if name not in STANDARD}


class _Json(logging.Formatter):
    """One JSON document a line."""

    def __init__(self) -> None:
        super().__init__()
        self._second, self._spelled = -1, ""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": self._time(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **_extras(record),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return msgspec.json.encode(line, enc_hook=str).decode()

    def _time(self, created: float) -> str:
        """RFC 3339 with milliseconds; the second is spelled once for all lines in it."""
        second = int(created)
        if second != self._second:
            self._second, self._spelled = second, datetime.fromtimestamp(second, UTC).isoformat()[:19]
        return f"{self._spelled}.{int((created - second) * 1000):03}+00:00"


class _Console(logging.Formatter):
    """Time, level, message, then key=value."""

    def __init__(self, *, colour: bool) -> None:
        super().__init__()
        self._colours = {"WARNING": "\033[33m", "ERROR": "\033[31m", "CRITICAL": "\033[31m"} if colour else {}
        self._dim, self._reset = ("\033[2m", "\033[0m") if colour else ("", "")

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created).astimezone().strftime("%H:%M:%S")
        level = f"{self._colours.get(record.levelname, '')}{record.levelname.lower():7}{self._reset}"
        extras = " ".join(f"{self._dim}{name}={self._reset}{_shown(value)}" for name, value in _extras(record).items())
        line = f"{self._dim}{time}{self._reset} {level} {record.getMessage():<24} {extras}".rstrip()
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def _shown(value: object) -> str:
    text = str(value)
    return json.dumps(text, ensure_ascii=False) if " " in text or not text or "\n" in text else text
