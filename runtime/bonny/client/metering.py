"""Metering: counts and times the requests of a client, and reports each as a telemetry event and a trace span."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ..core.meters import Histogram
from ..telemetry import execute, tracing

# Same as client-go, in place of the status when no answer came.
NO_ANSWER: Final = "<error>"


class Requests:
    """The requests of one client."""

    def __init__(self) -> None:
        self.host = ""
        """The address of the server, without scheme and password."""

        self.answers: Counter[tuple[str, str]] = Counter()
        """Counts by method and status; `<error>` when no answer came."""

        self.seconds: dict[str, Histogram] = {}
        """By method: from sending to the end of the answer; for a stream, to the head of its answer."""

        self.throttled_seconds = 0.0
        """Seconds waited after answers with status 429."""

    def under_way(self, method: str, path: str, query: Mapping[str, str] | None = None) -> MeteredRequest:
        """Wrap a request in it: `with requests.under_way("GET", path) as request: ...; request.answered(200)`."""
        return MeteredRequest(self, method, path, query or {})


@dataclass
class MeteredRequest:
    """One request, counted when the answer comes, or when the block ends without one."""

    _requests: Requests
    _method: str
    _path: str
    _query: Mapping[str, str]
    _counted = False
    _end_span: tracing.Ended | None = None

    def __enter__(self) -> MeteredRequest:
        self._began = time.monotonic()
        if tracing.spans is not None:
            self._end_span = tracing.spans.request(self._method, self._path, host=self._requests.host)
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if not self._counted:
            self.answered(None, error)

    def answered(self, status: int | None, error: BaseException | None = None) -> None:
        """Count the answer, or that none came because of `error`."""
        self._counted = True
        code = NO_ANSWER if status is None else str(status)
        self._requests.answers[self._method, code] += 1
        took = time.monotonic() - self._began
        self._requests.seconds.setdefault(self._method, Histogram()).observe(took)
        metadata = {"method": self._method, "path": self._path, "query": self._query, "status": code}
        execute("bonny.client.request.answered", {"duration": took}, metadata)
        if self._end_span is not None:
            self._end_span(status, error)
