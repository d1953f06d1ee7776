"""Webhooks: the part of a process that answers the API server; it is loaded only by operators that have webhooks.

Every replica answers, whether it leads or not. The server starts before the first list: a list may need a conversion.
The certificate comes later, perhaps from this replica; until then it is not ready, unless no replica makes one.
"""

from __future__ import annotations

import asyncio
import time
from typing import Final

from ..client.api import Client
from ..operator import Operator
from ..tls.issuer import Issuer
from ..tls.serving import ServingCertificate
from ..webhooks import names
from ..webhooks.app import WebhookApp
from ..webhooks.ca_bundles import SPREAD_SECONDS, CaBundles
from .config import Config
from .http_server import WEBHOOKS, HttpServer

# A leader that makes certificates fills an empty Secret within 40 s. One of a release without webhooks never does, and
# its pod stays until this replica is ready.
PATIENCE_SECONDS: Final = 60.0


class Webhooks:
    """The server of the webhooks of one operator, and its certificate."""

    def __init__(self, operator: Operator, config: Config, client: Client, *, namespace: str) -> None:
        self.app = WebhookApp(operator, client)
        self._secret, folder = names.secret(operator, namespace), config.webhook_certificate
        self.certificate = ServingCertificate(client, self._secret, operator.watch_options, folder=folder)
        host, port, context = config.http_host, config.webhook_port, self.certificate.context
        self.server = HttpServer(self.app, host, port, WEBHOOKS, context=context)
        self.draining = False
        self._seconds = config.drain
        self._client = client
        self._bundles = CaBundles(client, operator, namespace=namespace)
        self._own = folder is None and self._secret.own
        self._began = time.monotonic()
        self._led = False

    def issuers(self) -> list[Issuer]:
        """The maker of the certificate for a new term of this replica, unless it is made elsewhere."""
        if not self._own:
            return []
        self._led = True
        return [Issuer(self._client, self._secret, spread=SPREAD_SECONDS, registry=self._bundles)]

    @property
    def ready(self) -> bool:
        """Whether the API server should call this replica, or an update of the Deployment should go on without."""
        lasting = self._own and not self._led and time.monotonic() - self._began > PATIENCE_SECONDS
        return (self.certificate.ready or lasting) and not self.draining

    @property
    def notes(self) -> list[str]:
        """Lines for /readyz."""
        return [line for line in (self.certificate.problem, "webhooks: stopping" if self.draining else "") if line]

    async def drain(self, stop: asyncio.Event, drained: asyncio.Event) -> None:
        """After `stop`, answer for some seconds more, until API servers know that this replica goes; set `drained`."""
        await stop.wait()
        self.draining = True
        self.server.drain()
        await asyncio.sleep(self._seconds)
        drained.set()
