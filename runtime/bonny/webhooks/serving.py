"""Serving: the webhooks of one run of a process, and their certificate.

Every replica answers, whether it leads or not. The server starts before the first list: a list may need a conversion.
The certificate comes later, perhaps from this replica; until then it is not ready, unless no replica makes one.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from ..extras import ExtraRun
from ..telemetry.prometheus import gauge
from ..tls.http_server import ServerOptions
from ..tls.issuer import Issuer
from ..tls.server import TlsServer
from ..tls.serving import ServingCertificate
from . import names
from .app import WebhookApp
from .ca_bundles import SPREAD_SECONDS, CaBundles
from .metrics import families
from .settings import WebhookSettings

if TYPE_CHECKING:
    from prometheus_client.core import Metric

    from ..run.process import Process

# A leader that makes certificates fills an empty Secret within 40 s. One of a release without webhooks never does, and
# its pod stays until this replica is ready.
PATIENCE_SECONDS: Final = 60.0

# An API server waits 30 s for an answer. It uses a connection that was idle for up to 90 s, and a write fails whose
# connection is closed at that moment. The app answers a body of more than 7 MiB with 413: for a client to read that,
# its connection is not aborted before.
SERVER: Final = ServerOptions(
    "webhooks", "BONNY_WEBHOOK_PORT", request_bytes=8 * 2**20, answer=150, request=35, connections=500
)


class WebhookRun(ExtraRun):
    """The server of the webhooks of one operator, and its certificate."""

    def __init__(self, process: Process) -> None:
        operator, client, namespace = process.operator, process.client, process.own_namespace
        settings = process.config.of(WebhookSettings)
        self.app = WebhookApp(operator, client)
        self._secret, folder = names.secret(operator, namespace), settings.certificate
        self.certificate = ServingCertificate(client, self._secret, operator.watch_options, folder=folder)
        self.lasting = (self.certificate,)
        host, context = process.config.http_host, self.certificate.context
        self.server = TlsServer(self.app, host, settings.port, SERVER, context=context)
        self.draining = False
        self._seconds = settings.drain
        self._client = client
        self._bundles = CaBundles(client, operator, namespace=namespace)
        self._own = folder is None and self._secret.own
        self._began = time.monotonic()
        self._led = False

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        await self.server.start()
        try:
            yield
        finally:
            await self.server.stop()

    def term(self) -> Iterable[Issuer]:
        """The maker of the certificate, unless it is made elsewhere."""
        if not self._own:
            return ()
        self._led = True
        return (Issuer(self._client, self._secret, spread=SPREAD_SECONDS, registry=self._bundles),)

    async def drain(self) -> None:
        """Answer for some seconds more, until API servers know that this replica goes."""
        self.draining = True
        self.server.drain()
        await asyncio.sleep(self._seconds)

    @property
    def ready(self) -> bool:
        """Whether the API server should call this replica, or an update of the Deployment should go on without."""
        lasting = self._own and not self._led and time.monotonic() - self._began > PATIENCE_SECONDS
        return (self.certificate.ready or lasting) and not self.draining

    def started(self) -> dict[str, object]:
        return {"webhook_port": self.server.port}

    def problems(self) -> tuple[Sequence[str], Sequence[str]]:
        lines = [line for line in (self.certificate.problem, "webhooks: stopping" if self.draining else "") if line]
        return (lines, ()) if self.ready else ((), lines)

    def families(self) -> Iterator[Metric]:
        yield from families(self.app)
        end, text = self.certificate.not_after, "When the certificate of the webhooks ends, as seconds since 1970."
        ends = {(): end.timestamp()} if end else {}
        yield gauge("bonny_webhook_certificate_expiration_timestamp_seconds", text, (), ends)
