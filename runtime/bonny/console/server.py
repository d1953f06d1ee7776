"""Server: answers the requests of the console, on the loopback address.

    GET /overview                                            the process
    GET /outcomes?controller=NAME                            the last run of each of its objects
    GET /object?controller=NAME&namespace=NAME&name=NAME     one object

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
from ..telemetry import tracing
from . import snapshot
from .runs import History
from .settings import ConsoleSettings

if TYPE_CHECKING:
    from ..run.process import Process

HOST: Final = "127.0.0.1"
HOSTS: Final = (HOST, "localhost")


class ConsoleServer(Probes):
    """The server of the console, with the limits of the probes."""

    purpose, variable = "the console", "BONNY_CONSOLE_PORT"


class ConsoleRun(ExtraRun):
    """The console of `process`."""

    def __init__(self, process: Process) -> None:
        settings = process.config.of(ConsoleSettings)
        self._process, self._token, self._history = process, settings.token, History(None)
        self.server = ConsoleServer(self, HOST, settings.port or 0)

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        self._history.inner = tracing.spans
        await self.server.start()
        tracing.switch(self._history)
        try:
            yield
        finally:
            tracing.switch(self._history.inner)
            await self.server.stop()

    def started(self) -> dict[str, object]:
        return {"console_port": self.server.port}

    def answer(self, request: Request) -> Answer:
        """Answer one request."""
        status, answer = self._refused(request), None
        if status is HTTPStatus.OK:
            answer = self._found(request.path, dict(parse_qsl(request.query)))
            status = HTTPStatus.NOT_FOUND if answer is None else status
        return status, msgspec.json.encode(answer or {"error": status.phrase}), "application/json"

    def _refused(self, request: Request) -> HTTPStatus:
        """`OK` for a request that is answered."""
        given, wanted = request.headers.get("authorization", ""), f"Bearer {self._token}"
        if request.headers.get("host", "").partition(":")[0] not in HOSTS or "origin" in request.headers:
            return HTTPStatus.FORBIDDEN
        if self._token and not hmac.compare_digest(given.encode(), wanted.encode()):
            return HTTPStatus.UNAUTHORIZED
        return HTTPStatus.OK if request.method == "GET" else HTTPStatus.METHOD_NOT_ALLOWED

    def _found(self, path: str, query: Mapping[str, str]) -> dict[str, Any] | None:
        if path == "/overview":
            return snapshot.overview(self._process, self._history)
        worker = next((each for each in self._process.workers if each.name == query.get("controller")), None)
        if worker is None or path not in ("/outcomes", "/object"):
            return None
        if path == "/outcomes":
            return snapshot.outcomes(worker, self._history)
        return snapshot.one(worker, Key(query.get("namespace", ""), query.get("name", "")), self._history)
