"""Lamp: the kind that all broken controllers have in common, and what their handlers use."""

from __future__ import annotations

import os
from typing import Any, Literal

from aiohttp import ClientSession

from bonny import Axn, Kind, Resource, Spec, Status, Version, WithObservedGeneration

GROUP = "broken.example.com"
CONFIG_MAP = Kind("v1", "ConfigMap")
VERBS = ["get", "list", "create", "patch", "update", "delete"]
ALL_OF_CONFIG_MAPS = ({"apiGroups": [""], "resources": ["configmaps"], "verbs": VERBS},)


class LampSpec(Spec):
    """The desired state."""

    colour: Literal["red", "blue"] = "red"
    size: int = 1
    note: str | None = None
    blink: Literal["off", "slow", "fast"] = "off"


class LampStatus(Status, WithObservedGeneration):
    """The observed state."""

    child: str = ""
    made: bool = False


class Lamp(Version):
    """Shines."""

    kind = "Lamp"
    version = "v1"
    storage = True
    hub = True
    spec: LampSpec
    status: LampStatus


def child_of(axn: Axn[Lamp], name: str = "", **data: str) -> Resource:
    """A ConfigMap that Kubernetes collects with its lamp. Without a name, the API server generates one."""
    owner = {"apiVersion": f"{GROUP}/v1", "kind": "Lamp", "name": axn.key.name, "uid": axn.uid}
    metadata = {"namespace": axn.key.namespace, "ownerReferences": [owner], "labels": {"lamp": axn.key.name}}
    metadata |= {"name": name} if name else {"generateName": f"{axn.key.name}-"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"colour": axn.spec.colour, **data}}


async def children(axn: Axn[Lamp]) -> list[Resource]:
    """The ConfigMaps of the lamp, as the API server has them."""
    selector = f"lamp={axn.key.name}"
    return await axn.client.list(CONFIG_MAP, namespace=axn.key.namespace, label_selector=selector)


async def call(method: str, path: str, document: Any = None) -> None:
    """Call the external service. Raises: `OSError`, `aiohttp.ClientError` when it fails."""
    url = os.environ["LAMPS_URL"]
    async with ClientSession(url) as session, session.request(method, path, json=document) as answer:
        if answer.status != 404:
            answer.raise_for_status()


async def read(path: str) -> Any:
    """The document of the external service under this path; None if there is none."""
    async with ClientSession(os.environ["LAMPS_URL"]) as session, session.get(path) as answer:
        if answer.status == 404:
            return None
        answer.raise_for_status()
        return await answer.json()
