"""Console log: the lines of the log for people, in colours on a terminal.

`invoke run-local` uses it. Where the developer tools are installed, `python -m <package>` finds it by its entry point,
which the wheel has (`bonny.carried.of_tools`). Elsewhere: JSON lines (`bonny.telemetry.logging`).

Each reconcile is one aligned line: result, object, reasons, duration. Long texts and characters that are not printable
are written as in the JSON lines.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final, TextIO

import bonny
from bonny.resource import printable
from bonny.telemetry.logging import FOR_MACHINES, Formatter, bounded, extras

RUNTIME: Final = str(Path(bonny.__file__).parent)
# Codes of a terminal (ECMA-48, SGR).
BOLD, DIM, RED, GREEN, YELLOW = "1", "2", "31", "32", "33"
LEVELS: Final = {"DEBUG": DIM, "INFO": DIM, "WARNING": YELLOW, "ERROR": RED, "CRITICAL": RED}
# The result of a reconcile or of a scheduler's decision, by the message and its level.
WORKER: Final = "bonny.engine.worker"
SCHEDULER: Final = "bonny.scheduler.server"
OUTCOMES: Final = {
    ("bound", logging.DEBUG): ("bound", GREEN),
    ("no node", logging.DEBUG): ("pending", YELLOW),
    ("reconciled", logging.INFO): ("applied", GREEN),
    ("reconciled", logging.DEBUG): ("unchanged", DIM),
    ("waiting", logging.INFO): ("waiting", YELLOW),
    ("waiting", logging.DEBUG): ("waiting", DIM),
    ("retry requested", logging.INFO): ("retry", YELLOW),
    ("stopped until the object changes", logging.WARNING): ("stopped", YELLOW),
    ("reconcile failed", logging.WARNING): ("failed", RED),
}
# Columns of the line of a reconcile, and their minimum widths.
COLUMNS: Final = {"controller": 0, "object": 0, "action": len("reconcile"), "reasons": len("changed")}
# A longer name shifts the rest of its own line only.
WIDEST: Final = 40


def console(stream: TextIO) -> logging.Formatter:
    """The formatter for `stream`."""
    return Console(colour=stream.isatty() and not os.environ.get("NO_COLOR"))  # https://no-color.org


class Console(Formatter):
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
            fields = ((name, value) for name, value in extras(record).items() if name not in FOR_MACHINES)
            shown = ((f"{_in_one_line(name)}=", _shown(value)) for name, value in fields)
            pairs = " ".join(f"{self._painted(name, DIM, 0)}{value}" for name, value in shown)
            line = f"{level} {_in_one_line(record.getMessage()):<24} {pairs}".rstrip()
        line = f"{self._painted(time, DIM, 0)} {line}"
        if (count := self.occurrences(record)) > 1:
            return f"{line}{self._painted(f'; traceback above, occurrence {count}', DIM, 0)}"
        if record.exc_info:
            line += "\n" + printable(bounded(self.formatException(record.exc_info)), kept="\n\t")
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


def _shown(value: object) -> str:
    text = bounded(value)
    plain = text and text.isprintable() and " " not in text
    return text if plain else printable(json.dumps(text, ensure_ascii=False))


def _in_one_line(value: object) -> str:
    return printable(bounded(value))
