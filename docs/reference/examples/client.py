"""In an example, `client` is `axn.client`, and `settings` the key of a ConfigMap in the namespace `shop`, with the data
`mode: fast` and the label `tier: front`. Each is run by a test.
"""

from __future__ import annotations

import pytest

from bonny import Axn, Controller, Key, Kind, Resource, Retry
from bonny.client import Client, Conflict, Invalid, NotFound, Throttled
from bonny_dev import testing
from docs.reference.examples.widgets import Widget, widget


async def client() -> None:
    class Evicts(Controller[Widget]):
        rules = (
            {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]},
            {"apiGroups": [""], "resources": ["pods/eviction"], "verbs": ["create"]},
        )

        async def reconcile(self, axn: Axn[Widget]) -> None:
            pods = Kind("v1", "Pod", label_selector=f"widget={axn.key.name}")
            for pod in await axn.client.list(pods, namespace=axn.key.namespace):
                metadata = {name: pod["metadata"][name] for name in ("name", "namespace")}
                eviction: Resource = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}
                try:
                    await axn.client.create(pods, eviction, subresource="eviction")
                except Throttled:
                    raise Retry("a disruption budget does not allow the eviction yet", after=10.0) from None

    pod = {"metadata": {"name": "w1-0", "namespace": "default"}}
    answers = {"list pods default": [pod], "create pods/eviction default/w1-0": Throttled}
    with pytest.raises(Retry, match="a disruption budget"):
        await testing.handle(Evicts, widget("w1"), answers=answers)


async def get(client: Client, settings: Key) -> None:
    config_map = await client.get(Kind("v1", "ConfigMap"), settings)
    assert config_map["data"] == {"mode": "fast"}
    with pytest.raises(NotFound):
        await client.get(Kind("v1", "ConfigMap"), "other", namespace="shop")


async def list(client: Client, settings: Key) -> None:  # noqa: A001  the method's name
    (config_map,) = await client.list(Kind("v1", "ConfigMap"), namespace="shop", label_selector="tier=front")
    assert config_map["metadata"]["name"] == settings.name
    assert await client.list(Widget, namespace="shop") == []


async def apply(client: Client) -> None:
    theme: Resource = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "theme", "namespace": "shop"},
        "data": {"colour": "red"},
    }
    live, created = await client.apply(Kind("v1", "ConfigMap"), theme)
    assert created
    assert live["data"] == {"colour": "red"}
    theirs = {**theme, "data": {"colour": "blue"}}
    with pytest.raises(Conflict):
        await client.apply(Kind("v1", "ConfigMap"), theirs, manager="another", force=False)


async def create(client: Client) -> None:
    metadata = {"name": "web-0", "namespace": "shop"}
    spec = {"containers": [{"name": "web", "image": "registry.example.com/web:1"}]}
    await client.create(Kind("v1", "Pod"), {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})

    eviction: Resource = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}
    await client.create(Kind("v1", "Pod"), eviction, subresource="eviction")
    with pytest.raises(NotFound):
        await client.get(Kind("v1", "Pod"), "web-0", namespace="shop")


async def replace(client: Client, settings: Key) -> None:
    config_map = await client.get(Kind("v1", "ConfigMap"), settings)
    slow = await client.replace(Kind("v1", "ConfigMap"), {**config_map, "data": {"mode": "slow"}})
    assert slow["data"] == {"mode": "slow"}
    with pytest.raises(Conflict):  # it has another resourceVersion by now
        await client.replace(Kind("v1", "ConfigMap"), config_map)


async def merge_patch(client: Client, settings: Key) -> None:
    patched = await client.merge_patch(Kind("v1", "ConfigMap"), settings, {"data": {"mode": None, "colour": "red"}})
    assert patched["data"] == {"colour": "red"}

    deployment = Kind("apps/v1", "Deployment")
    web: Resource = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": "registry.example.com/web:1"}]},
            },
        },
    }
    await client.apply(deployment, web)
    three = {"spec": {"replicas": 3}}
    await client.merge_patch(deployment, ("shop", "web"), three, subresource="scale")
    scale = await client.get(deployment, ("shop", "web"), subresource="scale")
    assert scale["spec"]["replicas"] == 3


async def json_patch(client: Client, settings: Key) -> None:
    change = [
        {"op": "test", "path": "/data/mode", "value": "fast"},
        {"op": "replace", "path": "/data/mode", "value": "slow"},
    ]
    assert (await client.json_patch(Kind("v1", "ConfigMap"), settings, change))["data"] == {"mode": "slow"}
    with pytest.raises(Invalid):  # it is slow by now
        await client.json_patch(Kind("v1", "ConfigMap"), settings, change)


async def delete(client: Client, settings: Key) -> None:
    config_map = await client.get(Kind("v1", "ConfigMap"), settings)
    with pytest.raises(Conflict):
        await client.delete(Kind("v1", "ConfigMap"), settings, uid="of-another-object")
    await client.delete(Kind("v1", "ConfigMap"), settings, uid=config_map["metadata"]["uid"])
