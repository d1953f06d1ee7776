"""Webhooks: the part of a process that answers the API server; it is loaded only by operators that have webhooks.

Every replica answers, whether it leads or not. The server starts before the first list: a list may need a conversion.
The certificate comes later, perhaps from this replica; until then it is not ready.
"""

from __future__ import annotations

import asyncio

from ..client.api import Client
from ..operator import Operator
from ..webhooks.app import WebhookApp
from ..webhooks.serving import ServingCertificate
from .config import Config
from .http_server import WEBHOOKS, HttpServer


class Webhooks:
    """The server of the webhooks of one operator, its certificate, and who makes that."""

    def __init__(self, operator: Operator, config: Config, client: Client, *, namespace: str) -> None:
        self.app = WebhookApp(operator, client)
        self.certificate = ServingCertificate(client, operator, namespace=namespace, folder=config.webhook_certificate)
        self.server = HttpServer(
            self.app,
            config.http_host,
            config.webhook_port,
            limits=WEBHOOKS,
            context=self.certificate.context,
            purpose="webhooks",
            variable="BONNY_WEBHOOK_PORT",
        )
        self.draining = False
        self._seconds = config.drain

    @property
    def ready(self) -> bool:
        """Whether the API server should call this replica."""
        return self.certificate.ready and not self.draining

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
