"""The code of docs/how-to/use-types.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bonny import Axn, Controller, Owned, Spec, Status, Version, WithConditions

if TYPE_CHECKING:
    from bonny.types.apps_v1 import Deployment


class CacheSpec(Spec):
    """The desired state of a Cache."""

    replicas: int = 1


class CacheStatus(Status, WithConditions):
    """The observed state of a Cache."""

    available: int = 0
    address: str | None = None


class Cache(Version):
    """An in-memory cache."""

    kind = "Cache"
    version = "v1"
    storage = True
    hub = True
    spec: CacheSpec
    status: CacheStatus


class CacheController(Controller[Cache]):
    owns = (Owned("apps/v1", "Deployment"),)

    async def reconcile(self, axn: Axn[Cache]) -> None:
        servers = servers_of(axn.key.name, replicas=axn.spec.replicas)
        axn.register_descendant(servers)
        live = axn.observed(servers)
        available = live.get("status", {}).get("availableReplicas", 0) if live else 0
        axn.update_status(CacheStatus(available=available, address=f"{axn.key.name}:6379" if available else None))


def servers_of(name: str, *, replicas: int) -> Deployment:
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "server", "image": "registry.example.com/cache:1.0.0"}]},
            },
        },
    }
