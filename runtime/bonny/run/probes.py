"""Probes: answers /healthz, /readyz and /metrics. The body of a probe gives the reasons (`run.health`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import formatdate
from http import HTTPStatus
from typing import Final, TypeAlias

from .http_server import Message, Send

TEXT: Final = "text/plain; charset=utf-8"
# RFC 9110, 15.5: headers that belong to a status.
HEADERS: Final = {
    HTTPStatus.METHOD_NOT_ALLOWED: {"allow": "GET, HEAD"},
    HTTPStatus.UNAUTHORIZED: {"www-authenticate": "Bearer"},
}
Metrics: TypeAlias = Callable[[str], tuple[bytes, str]]
"""Text and content type for the Accept header of a request."""


@dataclass(frozen=True, slots=True)
class Report:
    """The answer to one probe: whether it is green, and lines with the reasons."""

    ok: bool
    lines: tuple[str, ...]


async def respond(send: Send, status: HTTPStatus, body: bytes, content_type: str = TEXT) -> None:
    """Send an answer with the headers that belong to it."""
    headers = {"content-type": content_type, "content-length": str(len(body)), "date": formatdate(usegmt=True)}
    encoded = [(name.encode(), value.encode()) for name, value in (headers | HEADERS.get(status, {})).items()]
    await send({"type": "http.response.start", "status": status, "headers": encoded})
    await send({"type": "http.response.body", "body": body})


class Pages:
    """The ASGI app of the probes in `reports`, which has their answers by path, and of /metrics, if there are any."""

    def __init__(self, reports: Mapping[str, Callable[[], Report]], metrics: Metrics | None) -> None:
        self._reports = reports
        self.metrics = metrics

    async def __call__(self, request: Message, _: object, send: Send) -> None:
        await respond(send, *self._answer(request))

    def _answer(self, request: Message) -> tuple[HTTPStatus, bytes, str]:
        """Status, body and content type."""
        path = request["path"]
        metrics = self.metrics if path == "/metrics" else None
        if metrics is None and path not in self._reports:
            return HTTPStatus.NOT_FOUND, b"404: Not Found", TEXT
        if request["method"] not in {"GET", "HEAD"}:
            return HTTPStatus.METHOD_NOT_ALLOWED, b"405: Method Not Allowed", TEXT
        if metrics is not None:
            accept = b",".join(value for name, value in request["headers"] if name == b"accept")
            return HTTPStatus.OK, *metrics(accept.decode("latin-1"))
        report = self._reports[path]()
        lines = "ok" if report.ok else "not ok", *report.lines, ""
        return (HTTPStatus.OK if report.ok else HTTPStatus.SERVICE_UNAVAILABLE), "\n".join(lines).encode(), TEXT
