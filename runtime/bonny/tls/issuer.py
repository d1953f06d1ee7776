"""Issuer: fills and rotates the Secret of a certificate, and registers its CAs, while this replica leads.

You need it only with `Deploy(certificates="own")`, the default. Elsewhere: which step is next (`rotation`), how a
certificate is made (`certificates`), who serves it (`serving`).

Guarantees: it writes nothing but the Secret, and a bundle that differs to what its `Registry` names. It looks every 30
seconds, and every 3 while something that is registered does not exist: a GET for each, and one for the Secret.
Does not: create the Secret. The manifest has it, empty.
RBAC: get and patch of the Secret (`TlsSecret.rule`), and what its `Registry` needs.
"""

from __future__ import annotations

import asyncio
import logging
import time
from base64 import b64decode, b64encode
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from ..client.api import Client
from ..client.clock import pause
from ..client.errors import Conflict
from ..errors import ApiError, UsageError
from ..resource import Resource
from .secret import SECRET, TlsSecret

if TYPE_CHECKING:
    from .rotation import Rotation, RotationDecision

REST_SECONDS: Final = 30.0
# Until then, clients may not trust the server.
MISSING_SECONDS: Final = 3.0
# Another tool may remove a bundle as soon as it is written.
PAUSE_SECONDS: Final = 1.0

log = logging.getLogger("bonny.tls.issuer")


class Registry:
    """The objects by which clients learn which CAs to trust; here none: clients read the CAs in the Secret."""

    missing: bool = False
    """Whether an object did not exist at the last `read`."""

    async def read(self) -> list[bytes]:
        """The bundles in the objects that exist, empty where there is none. Raises: `ApiError`, `UsageError`."""
        return []

    async def write(self, bundle: bytes) -> None:
        """Set the bundles that differed at the last `read`. Raises: as `read`; `Conflict` for a changed object."""


class Issuer:
    """The certificates of one server, during one term of the operator's leader."""

    def __init__(self, client: Client, secret: TlsSecret, *, spread: float, registry: Registry | None = None) -> None:
        """`spread` are the seconds in which all clients learn of a CA that was registered."""
        self.decision: RotationDecision | None = None
        """The last one; it has the certificate that is served."""

        self.error: str = ""
        """Why the last look failed."""

        self._client = client
        self._secret = secret
        self._spread = spread
        self._registry = registry or Registry()
        self._rotation: Rotation | None = None
        self._stopped = asyncio.Event()

    def __str__(self) -> str:
        return f"the {self._secret.purpose} certificates"

    def stop(self) -> None:
        """End after the step in progress."""
        self._stopped.set()

    async def run(self) -> None:
        """Renew the certificate in time until `stop`. Errors are logged, kept in `error`, and tried again."""
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
                extra = {"purpose": self._secret.purpose, "error": self.error, "then": then}
                log.error("cannot renew the certificate", extra=extra)
            await pause(seconds, wake=self._stopped)

    async def _step(self) -> float:
        """Carry out one step. Returns: the seconds until the next one."""
        from .rotation import Rotation, RotationStep  # noqa: PLC0415  loaded by the leader only

        self._rotation = self._rotation or Rotation(self._secret.hosts, spread=self._spread)
        secret = await self._client.get(SECRET, self._secret.key)
        data = {name: b64decode(value) for name, value in (secret.get("data") or {}).items()}
        registered = await self._registry.read()
        self.decision = self._rotation.decide(data, registered, now=datetime.now(UTC), clock=time.monotonic())
        if self.decision.step is RotationStep.REST:
            return min(self.decision.seconds, MISSING_SECONDS if self._registry.missing else REST_SECONDS)
        log.info("certificate rotation", extra={"purpose": self._secret.purpose, "step": self.decision.step.value})
        if self.decision.step is RotationStep.INJECT:
            await self._registry.write(self.decision.bundle)
        else:
            await self._store(secret, self.decision.data)
        return PAUSE_SECONDS

    async def _store(self, secret: Resource, data: Mapping[str, bytes]) -> None:
        """Make `data` the content of the Secret. Raises: `Conflict` when it has changed."""
        changes: dict[str, str | None] = dict.fromkeys(secret.get("data") or ())
        changes |= {name: b64encode(value).decode() for name, value in data.items()}
        version = {"resourceVersion": secret["metadata"]["resourceVersion"]}
        await self._client.merge_patch(SECRET, self._secret.key, {"metadata": version, "data": changes})
