"""Log: what the operator under test wrote, read as it comes and summed up, since a soak writes too much to keep."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any, Final

__all__ = ["OperatorLog"]

# Enough to see what went wrong.
MOST_COMPLAINTS: Final = 20


class OperatorLog:
    """Sums of the lines so far; `read` takes in the new ones."""

    def __init__(self, file: Path) -> None:
        self.messages: Counter[str] = Counter()
        """How often each constant message came."""

        self.seen: set[str] = set()
        """UIDs that were given to the handler."""

        self.deleted: Counter[str] = Counter()
        """How often the `delete` handler ran, by UID."""

        self.complaints: list[str] = []
        """Lines that no fault excuses: errors, tracebacks, and what did not come through the log at all."""

        self.latest: dict[str, dict[str, Any]] = {}
        """The latest line of each message."""

        self._file = file
        self._offset = 0

    def read(self) -> OperatorLog:
        """Take in what was written since; half a line is left for the next time."""
        if not self._file.exists():
            return self
        with self._file.open("rb") as stream:
            stream.seek(self._offset)
            new = stream.read()
        whole = new.rfind(b"\n") + 1
        self._offset += whole
        for line in new[:whole].decode("utf-8").splitlines():
            self._take(line)
        return self

    def _take(self, text: str) -> None:
        try:
            line = json.loads(text)
        except ValueError:
            self._complain(text)
            return
        message = line["message"]
        self.messages[message] += 1
        self.latest[message] = line
        match message:
            case "seen":
                self.seen.add(line["uid"])
            case "deleted":
                self.deleted[line["uid"]] += 1
        if line["level"] in ("error", "critical") or "exception" in line or "please report" in text:
            self._complain(text)

    def _complain(self, text: str) -> None:
        if len(self.complaints) < MOST_COMPLAINTS:
            self.complaints.append(text)
