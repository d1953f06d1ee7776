"""Probes: the HTTP server of /healthz, /readyz and /metrics. The body of a probe gives the reasons (`run.health`)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from aiohttp import web

from ..errors import UsageError

__all__ = ["Probes", "Report"]


@dataclass(frozen=True, slots=True)
class Report:
    """The answer to one probe: whether it is green, and lines with the reasons."""

    ok: bool
    lines: tuple[str, ...]


class Probes:
    """The HTTP server. After `start`, `port` is the port that it listens on."""

    def __init__(
        self,
        *,
        host: str,
        port: int,
        health: Callable[[], Report],
        readiness: Callable[[], Report],
        metrics: Callable[[str], tuple[bytes, str]],
    ) -> None:
        self.port = port
        self._host = host
        app = web.Application()
        app.router.add_get("/healthz", _handler(health))
        app.router.add_get("/readyz", _handler(readiness))
        app.router.add_get("/metrics", _scraped(metrics))
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)

    async def start(self) -> None:
        """Raises: `UsageError` when the port is taken."""
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, self._host, self.port).start()
        except OSError as error:
            await self._runner.cleanup()
            raise UsageError(
                f"port {self.port} for the probes is not free ({error.strerror or error}): "
                "set BONNY_HTTP_PORT to another port, or to 0 for any free one"
            ) from error
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        await self._runner.cleanup()


def _handler(report: Callable[[], Report]) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def handle(_: web.Request) -> web.StreamResponse:
        current = report()
        status = 200 if current.ok else 503
        return web.Response(status=status, text="\n".join(("ok" if current.ok else "not ok", *current.lines, "")))

    return handle


def _scraped(metrics: Callable[[str], tuple[bytes, str]]) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def handle(request: web.Request) -> web.StreamResponse:
        body, content_type = metrics(request.headers.get("Accept", ""))
        return web.Response(body=body, headers={"Content-Type": content_type})

    return handle
