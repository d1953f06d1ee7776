"""Secure metrics: /metrics over TLS, for clients that may read it; loaded only where it is asked for.

Every replica serves it, whether it leads or not. Until the leader, or cert-manager, has made a certificate, handshakes
fail; the operator works meanwhile.
Elsewhere: who may read it (`run.scrapers`), what it says (`run.metrics`), the certificate (`webhooks.serving`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import TYPE_CHECKING

from ..client.api import Client
from ..operator import Operator
from ..webhooks.serving import ServingCertificate
from .config import Config
from .http_server import PROBES, HttpServer, Message, Send
from .probes import Metrics, Pages, respond
from .scrapers import Scrapers

if TYPE_CHECKING:
    from ..webhooks.issuer import Issuer


class SecureMetrics(HttpServer):
    """The server of `metrics` over TLS, and its certificate. `asking` is the client that asks who may read them."""

    def __init__(
        self,
        operator: Operator,
        config: Config,
        client: Client,
        asking: Client,
        metrics: Metrics,
        *,
        namespace: str,
    ) -> None:
        self.certificate = ServingCertificate(client, operator, namespace=namespace, purpose="metrics")
        variable, context = "BONNY_SECURE_METRICS_PORT", self.certificate.context
        host, port = config.http_host, config.secure_metrics_port or 0
        super().__init__(
            self._serve, host, port, limits=PROBES, context=context, purpose="secure metrics", variable=variable
        )
        self._pages = Pages({}, metrics)
        self._scrapers = Scrapers(asking)
        self._operator, self._client, self._namespace = operator, client, namespace

    def issuers(self) -> list[Issuer]:
        """The maker of the certificate for a new term of this replica, unless cert-manager makes it."""
        if self._operator.deploy.certificates != "own":
            return []
        from ..webhooks.issuer import Issuer  # noqa: PLC0415  loaded only where it is needed

        return [Issuer(self._client, self._operator, namespace=self._namespace, purpose="metrics")]

    async def _serve(self, request: Message, receive: Callable[[], Awaitable[Message]], send: Send) -> None:
        if request["path"] == "/metrics":
            address, _ = request["client"] or ("", 0)
            verdict = await self._scrapers.verdict(request["headers"], address=address)
            if verdict.status is not HTTPStatus.OK:
                await respond(send, verdict.status, f"{verdict.status.value}: {verdict.text}\n".encode())
                return
        await self._pages(request, receive, send)
