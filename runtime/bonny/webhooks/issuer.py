"""Issuer: fills and rotates the Secret of a certificate, and registers its CAs, while this replica leads.

You need it only with `Deploy(certificates="own")`, the default. Elsewhere: which step is next (`rotation`), how a
certificate is made (`certificates`), who serves it (`serving`).

Guarantees: of configurations and CRDs it writes nothing but a caBundle that differs. It looks every 30 seconds, and
every 3 while one of them does not exist: a GET for each, and one for the Secret.
Does not: create the Secret. The manifest has it, empty.
RBAC: get and patch of the Secret, of both webhook configurations, and of the CRDs with conversion: `permissions`.
For /metrics nothing is registered: scrapers read the CAs in the Secret.
"""

from __future__ import annotations

import asyncio
import logging
import time
from base64 import b64decode, b64encode
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from ..client.api import Client
from ..client.errors import Conflict, NotFound
from ..errors import ApiError, UsageError
from ..kinds import Kind
from ..resource import Resource
from . import names
from .permissions import trusting

if TYPE_CHECKING:
    from ..operator import Operator
    from .rotation import Decision, Rotation

SECRET: Final = Kind("v1", "Secret")

REST_SECONDS: Final = 30.0
# Until then, writes of users are refused.
MISSING_SECONDS: Final = 3.0
# prometheus-operator writes a new CA into files of Prometheus, where the kubelet puts them a minute or two later.
SCRAPERS_SPREAD_SECONDS: Final = 600.0
# Another tool may remove a caBundle as soon as it is written.
PAUSE_SECONDS: Final = 1.0

log = logging.getLogger("bonny.webhooks.issuer")


class Issuer:
    """The certificates of one operator, during one term of its leader."""

    def __init__(
        self,
        client: Client,
        operator: Operator,
        *,
        namespace: str,
        rotation: Rotation | None = None,
        purpose: names.Purpose = "webhook",
    ) -> None:
        """`namespace` is that of the Secret. Default rotation: certificates for the Service, valid for a year."""
        self.decision: Decision | None = None
        """The last one; it has the certificate that is served."""

        self.error: str = ""
        """Why the last look failed."""

        self._client = client
        self._purpose = purpose
        self._secret = namespace, names.secret(operator.name, purpose)
        self._hosts = names.host_names(operator.name, namespace, purpose)
        self._rotation = rotation
        self._stopped = asyncio.Event()
        trusted = trusting(operator) if purpose == "webhook" else {}
        self._registered = [(kind, name) for kind, named in trusted.items() for name in named]

    def __str__(self) -> str:
        return f"the {self._purpose} certificates"

    def stop(self) -> None:
        self._stopped.set()

    async def run(self) -> None:
        while not self._stopped.is_set():
            previous, self.error = self.error, ""
            try:
                seconds = await self._step()
            except Conflict:
                seconds = PAUSE_SECONDS
            except (ApiError, UsageError) as error:
                seconds, self.error = MISSING_SECONDS, str(error)
            if self.error not in ("", previous):
                then = "if something is missing, apply the manifest again"
                extra = {"purpose": self._purpose, "error": self.error, "then": then}
                log.error("certificates are not kept up", extra=extra)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopped.wait(), seconds)

    async def _step(self) -> float:
        """Carry out one step. Returns: the seconds until the next one."""
        from .rotation import SPREAD_SECONDS, Rotation, Step  # noqa: PLC0415  loaded by the leader only

        spread = SPREAD_SECONDS if self._purpose == "webhook" else SCRAPERS_SPREAD_SECONDS
        self._rotation = self._rotation or Rotation(self._hosts, spread=spread)
        secret = await self._client.get(SECRET, self._secret)
        data = {name: b64decode(value) for name, value in (secret.get("data") or {}).items()}
        found = [(kind, live) for kind, name in self._registered if _clients(live := await self._get(kind, name))]
        bundles = [b64decode(each.get("caBundle") or "") for _, live in found for each in _clients(live).values()]
        self.decision = self._rotation.decide(data, bundles, now=datetime.now(UTC), clock=time.monotonic())
        if self.decision.step is Step.REST:
            missing = len(found) < len(self._registered)
            return min(self.decision.seconds, MISSING_SECONDS if missing else REST_SECONDS)
        log.info("certificate rotation", extra={"purpose": self._purpose, "step": self.decision.step.value})
        if self.decision.step is Step.INJECT:
            bundle = b64encode(self.decision.bundle).decode()
            patches = [self._inject(kind, live, bundle) for kind, live in found]
            for result in await asyncio.gather(*patches, return_exceptions=True):
                if result is not None:
                    raise result
        else:
            await self._store(secret, self.decision.data)
        return PAUSE_SECONDS

    async def _get(self, kind: Kind, name: str) -> Resource:
        try:
            return await self._client.get(kind, name)
        except NotFound:
            return {}

    async def _store(self, secret: Resource, data: Mapping[str, bytes]) -> None:
        """Make `data` the content of the Secret. Raises: `Conflict` when it has changed."""
        changes: dict[str, str | None] = dict.fromkeys(secret.get("data") or ())
        changes |= {name: b64encode(value).decode() for name, value in data.items()}
        version = {"resourceVersion": secret["metadata"]["resourceVersion"]}
        await self._client.merge_patch(SECRET, self._secret, {"metadata": version, "data": changes})

    async def _inject(self, kind: Kind, live: Resource, bundle: str) -> None:
        """Set the caBundles of `live` that differ. Raises: `Conflict` when it has changed.

        Not by server-side apply: that owns each webhook, so that none could be removed by a later manifest.
        """
        differs = [path for path, client in _clients(live).items() if client.get("caBundle") != bundle]
        patch = [{"op": "add", "path": f"{path}/caBundle", "value": bundle} for path in differs]
        if patch:
            metadata = live["metadata"]
            version = {"op": "replace", "path": "/metadata/resourceVersion", "value": metadata["resourceVersion"]}
            await self._client.json_patch(kind, metadata["name"], [version, *patch])


def _clients(live: Resource) -> dict[str, Any]:
    """The `clientConfig` of each webhook in a configuration, or in a CRD that has one, by its JSON pointer."""
    found = {f"/webhooks/{n}/clientConfig": each["clientConfig"] for n, each in enumerate(live.get("webhooks") or ())}
    conversion = live.get("spec", {}).get("conversion", {})
    if conversion.get("strategy") == "Webhook":
        found["/spec/conversion/webhook/clientConfig"] = conversion["webhook"]["clientConfig"]
    return found
