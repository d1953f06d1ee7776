"""Bug: two controllers write the same field of one object, each once and with another value, so the last one wins."""

from typing import Any

from bonny import Axn, Controller, Kind

from .lamp import ALL_OF_CONFIG_MAPS, CONFIG_MAP, Lamp


async def write_once(axn: Axn[Any], writer: str) -> None:
    for shared in await axn.client.list(CONFIG_MAP, namespace=axn.key.namespace):
        if writer in [fields["manager"] for fields in shared["metadata"]["managedFields"]]:
            return
    owner = {"apiVersion": axn.kind.api_version, "kind": axn.kind.kind, "name": axn.key.name, "uid": axn.uid}
    metadata = {"name": "shared", "namespace": axn.key.namespace, "ownerReferences": [owner]}
    shared = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"writer": writer}}
    await axn.client.apply(CONFIG_MAP, shared, manager=writer)


class LampController(Controller[Lamp]):
    rules = ALL_OF_CONFIG_MAPS

    async def reconcile(self, axn: Axn[Lamp]) -> None:
        await write_once(axn, "lamps")


class AccountController(Controller[Any]):
    resource = Kind("v1", "ServiceAccount")
    rules = ALL_OF_CONFIG_MAPS

    async def reconcile(self, axn: Axn[Any]) -> None:
        await write_once(axn, "accounts")
