"""Secure metrics: /metrics over TLS, for clients that may read it; loaded only where it is asked for.

Every replica serves it, whether it leads or not. Until the leader, or cert-manager, has made a certificate, handshakes
fail; the operator works meanwhile.
Elsewhere: who may read it (`run.scrapers`), what it says (`run.metrics`), the certificate (`tls.serving`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Final

from ..client.api import Client
from ..operator import Operator
from ..tls.issuer import Issuer
from ..tls.serving import ServingCertificate
from .config import Config
from .http_server import SECURE_METRICS, HttpServer, Message, Send
from .probes import Metrics, Pages, respond
from .scrapers import Scrapers, metrics_secret

# prometheus-operator writes a new CA into files of Prometheus, where the kubelet puts them a minute or two later.
SPREAD_SECONDS: Final = 600.0


class SecureMetrics(HttpServer):
    """The server of `metrics` over TLS, and its certificate. `asking` is the client that asks who may read them."""

    def __init__(
        self, operator: Operator, config: Config, client: Client, asking: Client, metrics: Metrics, *, namespace: str
    ) -> None:
        self._secret = metrics_secret(operator, namespace)
        self.certificate = ServingCertificate(client, self._secret, operator.watch_options)
        port, context = config.secure_metrics_port or 0, self.certificate.context
        super().__init__(self._serve, config.http_host, port, SECURE_METRICS, context=context)
        self._pages = Pages({}, metrics)
        self._scrapers = Scrapers(asking)
        self._client = client

    def issuers(self) -> list[Issuer]:
        """The maker of the certificate for a new term of this replica, unless cert-manager makes it."""
        return [Issuer(self._client, self._secret, spread=SPREAD_SECONDS)] if self._secret.own else []

    async def _serve(self, request: Message, receive: Callable[[], Awaitable[Message]], send: Send) -> None:
        if request["path"] == "/metrics":
            address, _ = request["client"] or ("", 0)
            verdict = await self._scrapers.verdict(request["headers"], address=address)
            if verdict.status is not HTTPStatus.OK:
                await respond(send, verdict.status, f"{verdict.status.value}: {verdict.text}\n".encode())
                return
        await self._pages(request, receive, send)
