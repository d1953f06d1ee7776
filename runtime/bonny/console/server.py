"""Server: answers the requests of the console, on the loopback address.

    GET /overview                                       the process, and one request of each sort of RBAC
    GET /outcomes?since=VERSION                         the last run of each object that ran since an earlier answer
    GET /object?kind=RESOURCE&namespace=NAME&name=NAME  one object, with `controller` where several have its kind

A browser on this machine runs pages of strangers, too: a request needs a Host that is this machine, no Origin, and the
token, if there is one. Answers have no CORS headers, so that no page of a browser can read them.
"""

from __future__ import annotations

import hmac
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl

import msgspec

from ..extras import ExtraRun
from ..resource import Key
from ..run.probes import Answer, Probes, Request
from ..telemetry import attach, detach, tracing
from . import snapshot
from .runs import History
from .settings import ConsoleSettings

if TYPE_CHECKING:
    from ..run.process import Process

HOSTS: Final = ("127.0.0.1", "localhost")


class ConsoleRun(ExtraRun):
    """The console of `process`."""

    def __init__(self, process: Process) -> None:
        settings = process.config.of(ConsoleSettings)
        self._process, self._token, self._history = process, settings.token, History(None)
        self.server = Probes(self, HOSTS[0], settings.port or 0)
        self.server.purpose, self.server.variable = "the console", "BONNY_CONSOLE_PORT"

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        self._history.inner = tracing.spans
        await self.server.start()
        tracing.switch(self._history)
        attach(f"console {id(self)}", "bonny.client.request.answered", self._history.hear)
        try:
            yield
        finally:
            detach(f"console {id(self)}")
            tracing.switch(self._history.inner)
            await self.server.stop()

    def started(self) -> dict[str, object]:
        return {"console_port": self.server.port}

    def answer(self, request: Request) -> Answer:
        """Answer one request."""
        refused = self._refused(request)
        found = None if refused else self._found(request.path, dict(parse_qsl(request.query)))
        status = refused or (HTTPStatus.NOT_FOUND if found is None else HTTPStatus.OK)
        return status, msgspec.json.encode(found or {"error": status.phrase}), "application/json"

    def _refused(self, request: Request) -> HTTPStatus | None:
        given, wanted = request.headers.get("authorization", ""), f"Bearer {self._token}"
        if request.headers.get("host", "").partition(":")[0] not in HOSTS or "origin" in request.headers:
            return HTTPStatus.FORBIDDEN
        if self._token and not hmac.compare_digest(given.encode(), wanted.encode()):
            return HTTPStatus.UNAUTHORIZED
        return None if request.method == "GET" else HTTPStatus.METHOD_NOT_ALLOWED

    def _found(self, path: str, query: Mapping[str, str]) -> dict[str, Any] | None:
        workers, wanted, since = self._process.workers, query.get("controller"), query.get("since", "")
        if path == "/overview":
            return snapshot.overview(self._process, self._history)
        if path == "/outcomes":
            return snapshot.outcomes(workers, self._history, int(since) if since.isdecimal() else 0)
        worker = next((w for w in workers if w.kind.resource == query.get("kind") and wanted in (None, w.name)), None)
        if worker is None or path != "/object":
            return None
        return snapshot.one(worker, Key(query.get("namespace", ""), query.get("name", "")), self._history)
