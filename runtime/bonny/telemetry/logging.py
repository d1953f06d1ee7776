"""Logging: one line of JSON for each event, a constant message with key/values.

Object bodies and tokens never reach a log call. A text of more than 16 Ki characters is logged without its middle.
Characters that are not printable are logged as escapes: a terminal would obey them, and UTF-8 cannot encode all of
them. The traceback of an error is written once in an hour: until then, lines about errors of its type that were raised
at the same place count them instead.

Every line that is logged during a reconcile names its object, because the worker called `about` before. All lines of
one reconcile have the same `reconcile_id`, which is unique.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import secrets
import sys
import traceback
from collections.abc import Callable, Mapping
from contextvars import Context, ContextVar
from datetime import UTC, datetime
from typing import Final, TextIO, TypeAlias

import msgspec

from ..resource import printable

# The attributes of every LogRecord; all others came by `extra`.
STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


# The level debug is for the operator; its libraries log at info or above.
LIBRARIES: Final = ("aiohttp", "asyncio", "invoke", "kubernetes", "opentelemetry", "urllib3")
# An error may quote megabytes.
LONGEST: Final = 16 * 1024
# Errors repeat with each retry and each object.
TRACEBACK_SECONDS: Final = 3600.0
KNOWN_ERRORS: Final = 100
# A person at a terminal sees which lines belong together; a log collector needs the fields.
FOR_MACHINES: Final = frozenset({"reconcile_id", "reasons"})

Form: TypeAlias = Callable[[TextIO], logging.Formatter]
"""Makes the formatter for a stream."""

# Part of every reconcile id of this process, so that ids are unique among processes.
_MARK: Final = secrets.token_hex(4)
_numbers: Final = itertools.count(1)
_handled: ContextVar[tuple[int, Mapping[str, object]] | None] = ContextVar("handled", default=None)


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


def configure(form: Form | None = None, *, level: int = logging.INFO, stream: TextIO | None = None) -> None:
    """Write the logs of this process to `stream` (default stderr), as JSON or in `form`. `bonny.main` calls it once."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.addFilter(_add_fields)
    handler.setFormatter(_Json() if form is None else form(handler.stream))
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


def extras(record: logging.LogRecord) -> dict[str, object]:
    """The keys and values of a record beside its message."""
    return {name: value for name, value in vars(record).items() if name not in STANDARD}


class Formatter(logging.Formatter):
    """Counts errors of one type that were raised at the same place, since the traceback of the first was written."""

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[int, tuple[float, int]] = {}

    def occurrences(self, record: logging.LogRecord) -> int:
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


class _Json(Formatter):
    """One JSON document a line."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **extras(record),
        }
        if (count := self.occurrences(record)) > 1:
            line["occurrences"] = count
        elif record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        with contextlib.suppress(Exception):
            encoded = msgspec.json.encode(line, enc_hook=str)
            if len(encoded) <= LONGEST:
                return printable(encoded.decode())
        plain = {bounded(k): v if isinstance(v, int | float | None) else bounded(v) for k, v in line.items()}
        return printable(msgspec.json.encode(plain).decode())


def bounded(value: object) -> str:
    """The text of `value`, bounded, with escapes for characters that cannot be encoded."""
    text = str(value)
    if len(text) > LONGEST:
        half, left_out = LONGEST // 2, len(text) - LONGEST
        text = f"{text[:half]}... ({left_out} characters left out) ...{text[-half:]}"
    return text.encode(errors="backslashreplace").decode()
