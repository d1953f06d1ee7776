"""Logging: one line for each event, a constant message with its key/values, for people or for machines.

`console` is for terminals, `json` for log collectors. Object bodies and tokens never reach a log call.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final, TextIO

import msgspec

__all__ = ["LogFormat", "configure"]

# What every LogRecord has; the rest came by `extra`.
STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


# `debug` is for what the operator does; how its libraries do it is nobody's question here.
LIBRARIES: Final = ("aiohttp", "asyncio", "invoke", "kubernetes")


class LogFormat(StrEnum):
    """How log lines look."""

    CONSOLE = "console"
    JSON = "json"


def configure(form: LogFormat, *, level: int = logging.INFO, stream: TextIO | None = None) -> None:
    """Send the logs of this process to `stream` (default stderr) in `form`. Called once, by `bonny.main`."""
    handler = logging.StreamHandler(stream or sys.stderr)
    colour = handler.stream.isatty()
    handler.setFormatter(_Json() if form is LogFormat.JSON else _Console(colour=colour))
    logging.basicConfig(level=level, handlers=[handler], force=True)
    for other in LIBRARIES:
        logging.getLogger(other).setLevel(max(level, logging.INFO))
    # What our lines do not show need not be found out for each of them (Python's logging HOWTO, "Optimization").
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False


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
