"""Probes: answers /healthz, /readyz and /metrics. The body of a probe gives the reasons (`run.health`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import formatdate
from http import HTTPStatus
from typing import Final, TypeAlias

from .http_server import PROBES, HttpServer, Message, Send

TEXT: Final = "text/plain; charset=utf-8"
Metrics: TypeAlias = Callable[[str], tuple[bytes, str]]
"""Text and content type for the Accept header of a request."""


@dataclass(frozen=True, slots=True)
class Report:
    """The answer to one probe: whether it is green, and lines with the reasons."""

    ok: bool
    lines: tuple[str, ...]


class Probes(HttpServer):
    """The server of the three paths; `reports` are the answers of the probes by their paths."""

    def __init__(self, host: str, port: int, reports: Mapping[str, Callable[[], Report]], metrics: Metrics) -> None:
        super().__init__(self._serve, host, port, limits=PROBES, purpose="the probes", variable="BONNY_HTTP_PORT")
        self._reports = reports
        self._metrics = metrics

    async def _serve(self, request: Message, _: object, send: Send) -> None:
        status, body, content_type = self._answer(request)
        headers = {"content-type": content_type, "content-length": str(len(body)), "date": formatdate(usegmt=True)}
        if status is HTTPStatus.METHOD_NOT_ALLOWED:
            headers["allow"] = "GET, HEAD"
        encoded = [(name.encode(), value.encode()) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": status, "headers": encoded})
        await send({"type": "http.response.body", "body": body})

    def _answer(self, request: Message) -> tuple[HTTPStatus, bytes, str]:
        """Status, body and content type."""
        path = request["path"]
        if path != "/metrics" and path not in self._reports:
            return HTTPStatus.NOT_FOUND, b"404: Not Found", TEXT
        if request["method"] not in {"GET", "HEAD"}:
            return HTTPStatus.METHOD_NOT_ALLOWED, b"405: Method Not Allowed", TEXT
        if path == "/metrics":
            accept = b",".join(value for name, value in request["headers"] if name == b"accept")
            return HTTPStatus.OK, *self._metrics(accept.decode("latin-1"))
        report = self._reports[path]()
        lines = "ok" if report.ok else "not ok", *report.lines, ""
        return (HTTPStatus.OK if report.ok else HTTPStatus.SERVICE_UNAVAILABLE), "\n".join(lines).encode(), TEXT
