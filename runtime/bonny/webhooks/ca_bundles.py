"""CA bundles: the `caBundle`s of webhook configurations and CRDs: they say which certificates API servers trust.

The leader reads and writes them (`bonny.tls.issuer`), unless cert-manager does.

Guarantees: of configurations and CRDs it writes nothing but a caBundle that differs.
RBAC: get and patch of both webhook configurations, and of the CRDs with conversion: `names.certificate_rules`.
"""

from __future__ import annotations

import asyncio
from base64 import b64decode, b64encode
from collections.abc import Awaitable, Iterator
from typing import TYPE_CHECKING, Any, Final

from ..client.api import Client
from ..client.errors import NotFound
from ..kinds import Kind
from ..resource import Resource
from ..tls.issuer import Registry
from .names import trusting

if TYPE_CHECKING:
    from ..operator import Operator

SPREAD_SECONDS: Final = 60.0
"""API servers learn of a change within a fraction of a second; one that is overloaded takes longer."""


class CaBundles(Registry):
    """The objects that register the webhooks of the operator in `namespace`."""

    def __init__(self, client: Client, operator: Operator, *, namespace: str) -> None:
        self._client = client
        self._namespace = namespace
        trusted = trusting(operator, namespace=namespace)
        self._names = [(kind, name) for kind, named in trusted.items() for name in named]
        self._ours: list[tuple[Kind, Resource, dict[str, Any]]] = []
        """Kind, metadata and `client_configs` of each."""

    async def read(self) -> list[bytes]:
        self.missing, self._ours = False, []
        for kind, name in self._names:
            try:
                live = await self._client.get(kind, name)
            except NotFound:
                live = {"metadata": {}}
            configs = client_configs(live)
            self.missing |= not configs
            # A CRD may call the Service of another installation, whose certificate is another one.
            services = [config["service"] for config in configs.values() if "service" in config]
            if all(service["namespace"] == self._namespace for service in services):
                self._ours.append((kind, live["metadata"], configs))
        return [b64decode(config.get("caBundle") or "") for *_, configs in self._ours for config in configs.values()]

    async def write(self, bundle: bytes) -> None:
        encoded = b64encode(bundle).decode()
        for result in await asyncio.gather(*self._requests(encoded), return_exceptions=True):
            if isinstance(result, BaseException):
                raise result

    def _requests(self, bundle: str) -> Iterator[Awaitable[Resource]]:
        """Requests that set the caBundles that differ.

        Not by server-side apply: that owns each webhook, so that none could be removed by a later manifest.
        """
        for kind, metadata, configs in self._ours:
            differs = [path for path, config in configs.items() if config.get("caBundle") != bundle]
            if differs:
                version = {"op": "replace", "path": "/metadata/resourceVersion", "value": metadata["resourceVersion"]}
                patch = [{"op": "add", "path": f"{path}/caBundle", "value": bundle} for path in differs]
                yield self._client.json_patch(kind, metadata["name"], [version, *patch])


def client_configs(live: Resource) -> dict[str, Any]:
    """The `clientConfig` of each webhook in a configuration, or in a CRD that has one, by its JSON pointer."""
    found = {f"/webhooks/{n}/clientConfig": each["clientConfig"] for n, each in enumerate(live.get("webhooks") or ())}
    conversion = live.get("spec", {}).get("conversion", {})
    if conversion.get("strategy") == "Webhook":
        found["/spec/conversion/webhook/clientConfig"] = conversion["webhook"]["clientConfig"]
    return found
