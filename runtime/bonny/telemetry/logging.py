"""Logging: one line for each event, a constant message with key/values, for people (console) or machines (json).

In the console format each reconcile is one aligned line: result, object, reasons, duration. Object bodies and tokens
never reach a log call. A text of more than 16 Ki characters is logged without its middle. Characters that are not
printable are logged as escapes: a terminal would obey them, and UTF-8 cannot encode all of them. The traceback of an
error is written once in an hour: until then, lines about errors of its type that were raised at the same place count
them instead.

Every line that is logged during a reconcile names its object, because the worker called `about` before. All lines of
one reconcile have the same `reconcile_id`, which is unique.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import logging
import os
import secrets
import sys
import traceback
from collections.abc import Mapping
from contextvars import Context, ContextVar
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, TextIO

import msgspec

from ..resource import printable

# The attributes of every LogRecord; all others came by `extra`.
STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


# The level debug is for the operator; its libraries log at info or above.
LIBRARIES: Final = ("aiohttp", "asyncio", "invoke", "kubernetes", "opentelemetry", "urllib3")


RUNTIME: Final = str(Path(__file__).parents[1])
# Codes of a terminal (ECMA-48, SGR).
BOLD, DIM, RED, GREEN, YELLOW = "1", "2", "31", "32", "33"
LEVELS: Final = {"DEBUG": DIM, "INFO": DIM, "WARNING": YELLOW, "ERROR": RED, "CRITICAL": RED}
# The result of a reconcile or of a scheduler's decision, by the message and its level.
WORKER: Final = "bonny.engine.worker"
SCHEDULER: Final = "bonny.scheduler.server"
OUTCOMES: Final = {
    ("bound", logging.DEBUG): ("bound", GREEN),
    ("no node", logging.DEBUG): ("waits", YELLOW),
    ("reconciled", logging.INFO): ("applied", GREEN),
    ("reconciled", logging.DEBUG): ("unchanged", DIM),
    ("waiting", logging.INFO): ("waiting", YELLOW),
    ("waiting", logging.DEBUG): ("waiting", DIM),
    ("retry requested", logging.INFO): ("waits", YELLOW),
    ("stopped until the object changes", logging.WARNING): ("stopped", YELLOW),
    ("reconcile failed", logging.WARNING): ("failed", RED),
}
# Columns of the line of a reconcile, and their minimum widths.
COLUMNS: Final = {"controller": 0, "object": 0, "action": len("reconcile"), "reasons": len("changed")}
# A longer name shifts the rest of its own line only.
WIDEST: Final = 40
# An error may quote megabytes. The beginning and the end of an error or a traceback say most.
LONGEST: Final = 16 * 1024
# Errors repeat with each retry and each object. An hour later their traceback may be out of reach of the reader.
TRACEBACK_SECONDS: Final = 3600.0
KNOWN_ERRORS: Final = 100
# A person at a terminal sees which lines belong together; a log collector needs the fields.
FOR_MACHINES: Final = frozenset({"reconcile_id", "reasons"})


# Part of every reconcile id of this process, so that ids are unique among processes.
_MARK: Final = secrets.token_hex(4)
_numbers: Final = itertools.count(1)
_handled: ContextVar[tuple[int, Mapping[str, object]] | None] = ContextVar("handled", default=None)


class LogFormat(StrEnum):
    """The format of log lines."""

    CONSOLE = "console"
    JSON = "json"


def about(**fields: object) -> None:
    """Add `fields` and a new `reconcile_id` to the lines of this asyncio task and of threads and tasks that it starts.

    They replace the fields of the last call. Fields of a line itself take precedence.
    """
    _handled.set((next(_numbers), fields))


def reconcile_id() -> str:
    """The `reconcile_id` of the log lines of this asyncio task; empty outside of a reconcile."""
    handled = _handled.get()
    return "" if handled is None else f"{_MARK}-{handled[0]:x}"


def subject_of(context: Context) -> str:
    """The controller and object that the code with this context handles, as `controller=... object=...`, or nothing."""
    handled = context.get(_handled, None)
    if handled is None:
        return ""
    return " ".join(f"{name}={value}" for name, value in handled[1].items() if name not in FOR_MACHINES)


def configure(form: LogFormat, *, level: int = logging.INFO, stream: TextIO | None = None) -> None:
    """Write the logs of this process to `stream` (default stderr) in `form`. Called once, by `bonny.main`."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.addFilter(_add_fields)
    colour = handler.stream.isatty() and not os.environ.get("NO_COLOR")  # https://no-color.org
    handler.setFormatter(_Json() if form is LogFormat.JSON else _Console(colour=colour))
    logging.basicConfig(level=level, handlers=[handler], force=True)
    for other in LIBRARIES:
        logging.getLogger(other).setLevel(max(level, logging.INFO))
    # Our lines do not show these, so skip collecting them (Python's logging HOWTO, "Optimization").
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False


def _add_fields(record: logging.LogRecord) -> bool:
    """Add the fields of `about`; a filter that lets every record pass."""
    handled = _handled.get()
    if handled is not None:
        for name, value in (*handled[1].items(), ("reconcile_id", reconcile_id())):
            text = ",".join(sorted(value)) if isinstance(value, frozenset) else str(value)
            vars(record).setdefault(name, text)
    return True


def _extras(record: logging.LogRecord) -> dict[str, object]:
    return {name: value for name, value in vars(record).items() if name not in STANDARD}


class _Formatter(logging.Formatter):
    """Counts errors of one type that were raised at the same place, since the traceback of the first was written."""

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[int, tuple[float, int]] = {}

    def _occurrences(self, record: logging.LogRecord) -> int:
        """The number of this error, from 1; 0 if `record` has no error."""
        if not record.exc_info or record.exc_info[1] is None:
            return 0
        kind, _, trace = record.exc_info
        lines = ((frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(trace))
        place = hash((kind.__module__, kind.__qualname__, *lines))
        since, count = self._known.pop(place, (record.created, 0))
        if record.created - since > TRACEBACK_SECONDS:
            since, count = record.created, 0
        self._known[place] = since, count + 1
        if len(self._known) > KNOWN_ERRORS:
            del self._known[next(iter(self._known))]
        return count + 1


class _Json(_Formatter):
    """One JSON document a line."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **_extras(record),
        }
        if (count := self._occurrences(record)) > 1:
            line["occurrences"] = count
        elif record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        with contextlib.suppress(Exception):
            encoded = msgspec.json.encode(line, enc_hook=str)
            if len(encoded) <= LONGEST:
                return printable(encoded.decode())
        plain = {_text(k): v if isinstance(v, int | float | None) else _text(v) for k, v in line.items()}
        return printable(msgspec.json.encode(plain).decode())


class _Console(_Formatter):
    """For people: an aligned line for each reconcile; for other events time, level, message and key=value."""

    def __init__(self, *, colour: bool) -> None:
        super().__init__()
        self._colour = colour
        self._widths = dict(COLUMNS)

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created).astimezone().strftime("%H:%M:%S")
        outcome = OUTCOMES.get((record.msg, record.levelno)) if record.name in (WORKER, SCHEDULER) else None
        if outcome is not None:
            line = f"{self._painted(*outcome)} {self._reconcile(vars(record))}"
        else:
            level = self._painted(record.levelname.lower(), LEVELS.get(record.levelname, ""))
            extras = ((name, value) for name, value in _extras(record).items() if name not in FOR_MACHINES)
            shown = ((f"{_in_one_line(name)}=", _shown(value)) for name, value in extras)
            pairs = " ".join(f"{self._painted(name, DIM, 0)}{value}" for name, value in shown)
            line = f"{level} {_in_one_line(record.getMessage()):<24} {pairs}".rstrip()
        line = f"{self._painted(time, DIM, 0)} {line}"
        if (count := self._occurrences(record)) > 1:
            return f"{line}{self._painted(f'; traceback above, occurrence {count}', DIM, 0)}"
        if record.exc_info:
            line += "\n" + printable(_text(self.formatException(record.exc_info)), kept="\n\t")
        return line

    def _reconcile(self, fields: Mapping[str, Any]) -> str:
        """Object, controller, reasons, duration, next try. A column is as wide as its widest value so far.

        Of a decision: scheduler, pod, and the node or why there is none.
        """
        if "scheduler" in fields:
            columns = {"controller": fields["scheduler"], "object": _in_one_line(fields["pod"])}
            fields = {"because": fields.get("node") or fields["why"]}
        else:
            columns = {name: _in_one_line(fields.get(name, "")) for name in COLUMNS}
        for name, text in columns.items():
            self._widths[name] = min(max(self._widths[name], len(text)), WIDEST)
        line = "  ".join(f"{text:{self._widths[name]}}" for name, text in columns.items())
        if "seconds" in fields:
            line += f"  {fields['seconds'] * 1000:5.0f} ms"
        if "error" in fields:
            # The traceback shows the step.
            error = _in_one_line(fields["error"].partition("; in step ")[0])
            line += f"  {self._painted(error, BOLD, 0)}"
        if "at" in fields:
            line += f"  at {os.path.relpath(fields['at'])}"
        if "because" in fields:
            line += f"  {_in_one_line(fields['because'])}"
        if "retry_in_seconds" in fields:
            line += self._painted(f"; next try in {fields['retry_in_seconds']:.1f} s", DIM, 0)
        return line.rstrip()

    def formatException(self, ei: Any) -> str:  # noqa: N802  the name is logging's
        """The traceback from the handler on; the frames of the runtime before it are always the same."""
        kind, error, trace = ei
        while trace is not None and trace.tb_frame.f_code.co_filename.startswith(RUNTIME):
            trace = trace.tb_next
        return super().formatException((kind, error, trace or ei[2]))

    def _painted(self, text: str, code: str, width: int = 9) -> str:
        return f"\033[{code}m{text:{width}}\033[0m" if self._colour and code else f"{text:{width}}"


def _text(value: object) -> str:
    """The text of `value`, bounded, with escapes for characters that cannot be encoded."""
    text = str(value)
    if len(text) > LONGEST:
        half, left_out = LONGEST // 2, len(text) - LONGEST
        text = f"{text[:half]}... ({left_out} characters left out) ...{text[-half:]}"
    return text.encode(errors="backslashreplace").decode()


def _shown(value: object) -> str:
    text = _text(value)
    plain = text and text.isprintable() and " " not in text
    return text if plain else printable(json.dumps(text, ensure_ascii=False))


def _in_one_line(value: object) -> str:
    return printable(_text(value))
