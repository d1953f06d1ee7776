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

__all__ = ["LogFormat", "configure"]

# What every LogRecord has; the rest came by `extra`.
STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


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


def _extras(record: logging.LogRecord) -> dict[str, object]:
    return {name: value for name, value in vars(record).items() if name not in STANDARD}


class _Json(logging.Formatter):
    """One JSON document a line."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **_extras(record),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str, ensure_ascii=False)


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
