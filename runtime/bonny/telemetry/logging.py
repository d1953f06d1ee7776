"""Logging: one line for each event, a constant message with its key/values, for people or for machines.

`console` is for terminals, where each handling is one line: applied or unchanged or failed, what, why, how long. `json`
is for log collectors. Object bodies and tokens never reach a log call. A text of more than 16 Ki characters is logged
without its middle. What UTF-8 cannot encode is logged as an escape.

Every line that is logged while something is handled says what, whoever logs it: `about` was called before. All lines of
one handling have the same `reconcile_id`, and no other has it.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import logging
import os
import secrets
import sys
from collections.abc import Mapping
from contextvars import Context, ContextVar
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, TextIO

import msgspec

__all__ = ["LogFormat", "about", "configure", "reconcile_id", "subject_of"]

# What every LogRecord has; the rest came by `extra`.
STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


# `debug` is for what the operator does; how its libraries do it is nobody's question here.
LIBRARIES: Final = ("aiohttp", "asyncio", "invoke", "kubernetes", "opentelemetry", "urllib3")


RUNTIME: Final = str(Path(__file__).parents[1])
# How a terminal is told (ECMA-48, SGR).
BOLD, DIM, RED, GREEN, YELLOW = "1", "2", "31", "32", "33"
LEVELS: Final = {"DEBUG": DIM, "INFO": DIM, "WARNING": YELLOW, "ERROR": RED, "CRITICAL": RED}
# What became of a handling, by the worker's message and its level; the words are as long as the longest level or more.
WORKER: Final = "bonny.engine.worker"
OUTCOMES: Final = {
    ("reconciled", logging.INFO): ("applied", GREEN),
    ("reconciled", logging.DEBUG): ("unchanged", DIM),
    ("retry requested", logging.INFO): ("waits", YELLOW),
    ("stopped until the object changes", logging.WARNING): ("stopped", YELLOW),
    ("reconcile failed", logging.WARNING): ("failed", RED),
}
# Columns of such a line, and how wide each is at least.
COLUMNS: Final = {"controller": 0, "object": 0, "action": len("reconcile"), "reasons": len("changed")}
# A longer name moves what follows it in its own line only.
WIDEST: Final = 40
# An error may quote megabytes. Its beginning and its end say most; those of a traceback, too.
LONGEST: Final = 16 * 1024
# Which lines belong together is seen at a terminal; a collector of logs needs to be told.
FOR_MACHINES: Final = frozenset({"reconcile_id", "reasons"})


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


def subject_of(context: Context) -> str:
    """What the code with this context handles, as `controller=... object=...`; empty where it handles nothing."""
    handled = context.get(_handled, None)
    if handled is None:
        return ""
    return " ".join(f"{name}={value}" for name, value in handled[1].items() if name not in FOR_MACHINES)


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
        with contextlib.suppress(Exception):
            encoded = msgspec.json.encode(line, enc_hook=str)
            if len(encoded) <= LONGEST:
                return encoded.decode()
        plain = {_text(k): v if isinstance(v, int | float | None) else _text(v) for k, v in line.items()}
        return msgspec.json.encode(plain).decode()

    def _time(self, created: float) -> str:
        """RFC 3339 with milliseconds; the second is spelled once for all lines in it."""
        second = int(created)
        if second != self._second:
            self._second, self._spelled = second, datetime.fromtimestamp(second, UTC).isoformat()[:19]
        return f"{self._spelled}.{int((created - second) * 1000):03}+00:00"


class _Console(logging.Formatter):
    """For a person: what became of each handling in one aligned line; of all else time, level, message, key=value."""

    def __init__(self, *, colour: bool) -> None:
        super().__init__()
        self._colour = colour
        self._widths = dict(COLUMNS)

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created).astimezone().strftime("%H:%M:%S")
        outcome = OUTCOMES.get((record.msg, record.levelno)) if record.name == WORKER else None
        if outcome is not None:
            line = f"{self._painted(*outcome)} {self._handling(vars(record))}"
        else:
            level = self._painted(record.levelname.lower(), LEVELS.get(record.levelname, ""))
            extras = ((name, value) for name, value in _extras(record).items() if name not in FOR_MACHINES)
            told = " ".join(f"{self._painted(f'{_text(name)}=', DIM, 0)}{_shown(value)}" for name, value in extras)
            line = f"{level} {_text(record.getMessage()):<24} {told}".rstrip()
        line = f"{self._painted(time, DIM, 0)} {line}"
        return f"{line}\n{_text(self.formatException(record.exc_info))}" if record.exc_info else line

    def _handling(self, fields: Mapping[str, Any]) -> str:
        """Which object, by whom, why, how long, and what comes next. A column is as wide as its widest so far."""
        for name in COLUMNS:
            self._widths[name] = min(max(self._widths[name], len(fields.get(name, ""))), WIDEST)
        told = "  ".join(f"{fields.get(name, ''):{width}}" for name, width in self._widths.items())
        if "seconds" in fields:
            told += f"  {fields['seconds'] * 1000:5.0f} ms"
        if "error" in fields:
            # The step is in the traceback, where there is one.
            error = _in_one_line(_text(fields["error"].partition("; in step ")[0]))
            told += f"  {self._painted(error, BOLD, 0)}"
        if "retry_in_seconds" in fields:
            told += self._painted(f"; next try in {fields['retry_in_seconds']:.1f} s", DIM, 0)
        return told.rstrip()

    def formatException(self, ei: Any) -> str:  # noqa: N802  the name is logging's
        """Without the runtime's own way from the loop to the handler, which is the same for all."""
        kind, error, trace = ei
        while trace is not None and trace.tb_frame.f_code.co_filename.startswith(RUNTIME):
            trace = trace.tb_next
        return super().formatException((kind, error, trace or ei[2]))

    def _painted(self, text: str, code: str, width: int = 9) -> str:
        return f"\033[{code}m{text:{width}}\033[0m" if self._colour and code else f"{text:{width}}"


def _text(value: object) -> str:
    """Its text, bounded, without what cannot be encoded."""
    text = str(value)
    if len(text) > LONGEST:
        half, left_out = LONGEST // 2, len(text) - LONGEST
        text = f"{text[:half]}... ({left_out} characters left out) ...{text[-half:]}"
    return text.encode(errors="backslashreplace").decode()


def _shown(value: object) -> str:
    text = _text(value)
    return json.dumps(text, ensure_ascii=False) if " " in text or not text or "\n" in text else text


def _in_one_line(text: str) -> str:
    """Line breaks and control characters escaped, as in JSON; quotes as they are."""
    return json.dumps(text, ensure_ascii=False)[1:-1].replace('\\"', '"')
