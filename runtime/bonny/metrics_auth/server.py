"""Server: /metrics over TLS, for clients that may read it.

Every replica serves it, whether it leads or not. Until the leader, or cert-manager, has made a certificate, handshakes
fail; the operator works meanwhile.
Elsewhere: the clients that may read it (`scrapers`), the metrics (`run.metrics`), the certificate (`tls.serving`).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from ..extras import ExtraRun
from ..run.probes import LIMITS, TEXT, Pages, Request
from ..tls.http_server import Message, Send, ServerOptions, respond
from ..tls.issuer import Issuer
from ..tls.server import TlsServer
from ..tls.serving import ServingCertificate
from .scrapers import Scrapers, metrics_secret
from .settings import MetricsSettings

if TYPE_CHECKING:
    from ..run.process import Process

SERVER: Final = ServerOptions(
    "secure metrics",
    "BONNY_SECURE_METRICS_PORT",
    request_bytes=LIMITS.request_bytes,
    answer=LIMITS.seconds,
    request=LIMITS.seconds,
    connections=LIMITS.connections,
)
# prometheus-operator writes a new CA into files of Prometheus, where the kubelet puts them a minute or two later.
SPREAD_SECONDS: Final = 600.0


class MetricsRun(ExtraRun):
    """The server of the metrics of `process` over TLS, and its certificate."""

    replaces_metrics = True

    def __init__(self, process: Process) -> None:
        operator, port = process.operator, process.config.of(MetricsSettings).port
        self._secret = metrics_secret(operator, process.own_namespace)
        self.certificate = ServingCertificate(process.client, self._secret, operator.watch_options)
        self.lasting = (self.certificate,)
        host, context = process.config.http_host, self.certificate.context
        self.server = TlsServer(self._serve, host, port or 0, SERVER, context=context)
        self._pages = Pages({}, process.exposition)
        self._process = process
        self._scrapers: Scrapers  # set before the server starts

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        # A client of its own: a standby asks, too, for which it sends a POST, and nothing else waits behind reviews.
        async with self._process.connected() as asking:
            self._scrapers = Scrapers(asking)
            await self.server.start()
            try:
                yield
            finally:
                await self.server.stop()

    def term(self) -> Iterable[Issuer]:
        """The maker of the certificate, unless cert-manager makes it."""
        return (Issuer(self._process.client, self._secret, spread=SPREAD_SECONDS),) if self._secret.own else ()

    def started(self) -> dict[str, object]:
        return {"metrics_port": self.server.port}

    def problems(self) -> tuple[Sequence[str], Sequence[str]]:
        return [line for line in (self.certificate.problem,) if line], ()

    async def _serve(self, request: Message, receive: Callable[[], Awaitable[Message]], send: Send) -> None:  # noqa: ARG002
        if request["path"] == "/metrics":
            address, _ = request["client"] or ("", 0)
            verdict = await self._scrapers.verdict(request["headers"], address=address)
            if verdict.status is not HTTPStatus.OK:
                await respond(send, (verdict.status, f"{verdict.status.value}: {verdict.text}\n".encode(), TEXT))
                return
        accept = b",".join(value for name, value in request["headers"] if name == b"accept").decode("latin-1")
        await respond(send, self._pages.answer(Request(request["method"], request["path"], "", {"accept": accept})))
