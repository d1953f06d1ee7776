"""Converter: the Service that converts the objects of a CRD, as the CRD in a cluster names it."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from bonny.client.api import Client
from bonny.client.errors import Forbidden, NotFound
from bonny.errors import UsageError
from bonny.kinds import Kind
from bonny.resource import Resource, key_of

from .install import CRD

CONFIGURATIONS: Final = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
SERVICE: Final = Kind("v1", "Service")


async def stop_converting(client: Client, documents: Iterable[Resource]) -> list[Resource]:
    """Set the conversion of the CRDs among these to None where it is a webhook; returns those CRDs."""
    patch = {"spec": {"conversion": {"strategy": "None", "webhook": None}}}
    changed = []
    for crd in documents:
        if crd["kind"] == CRD.kind and crd["spec"].get("conversion", {}).get("strategy") == "Webhook":
            with suppress(NotFound):
                changed.append(await client.merge_patch(CRD, key_of(crd), patch))
    return changed


async def check_converter(client: Client, crd: Resource) -> None:
    """Raises: `UsageError` when another installation of the operator converts the kind that `crd` gives to this one."""
    wanted = _service_of(crd)
    live = await converter(client, crd) if wanted else {}
    if live and live["namespace"] != wanted["namespace"]:
        raise UsageError(
            f"{crd['spec']['names']['kind']} is converted by the operator in namespace {live['namespace']}, and a kind "
            f"has one converter: install into that namespace, or delete Service {live['name']} there to replace it"
        )


async def converter(client: Client, crd: Resource) -> Resource:
    """The Service that converts the objects of an installed CRD, as the CRD names it; empty if it does not exist."""
    with suppress(NotFound, Forbidden):
        if service := _service_of(await client.get(CRD, key_of(crd))):
            await client.get(SERVICE, service["name"], namespace=service["namespace"])
            return service
    return {}


def _service_of(crd: Resource) -> Resource:
    conversion = crd["spec"].get("conversion", {})
    if conversion.get("strategy") != "Webhook":
        return {}
    service: Resource = conversion["webhook"]["clientConfig"].get("service", {})
    return service
