"""Children: plain mappings, or the types of Kubernetes, whose fields are known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, assert_type

from bonny import Axn, Controller, Kind, Owned, Resource, is_ready
from bonny_dev import testing

from .api import Widget

if TYPE_CHECKING:
    import bonny.types.apps_v1 as apps
    import bonny.types.core_v1 as core
    from bonny.types.apps_v1 import Deployment, StatefulSett  # error: attr-defined, reportAttributeAccessIssue
    from bonny.types.core_v1 import ConfigMap, Container, Service
    from bonny.types.networking_v1 import NetworkPolicyIngressRule
    from bonny.types.rbac_v1 import RoleBinding


def deployment_of(widget: Resource, *, replicas: int) -> Deployment:
    name = widget["metadata"]["name"]
    labels = {"app": name}
    container: Container = {"name": "main", "image": "app:1", "resources": {"requests": {"cpu": 1, "memory": "1Gi"}}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


# fmt: off
def misspelt(name: str) -> None:
    typo: ConfigMap = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "dat": {}}  # error: typeddict-unknown-key, reportAssignmentType
    other: ConfigMap = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}}  # error: typeddict-item, reportAssignmentType
    unnamed: ConfigMap = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}}  # error: typeddict-item, reportAssignmentType
    untyped: RoleBinding = {"kind": "RoleBinding", "metadata": {"name": name}}  # error: typeddict-item, reportAssignmentType
    number: Container = {"name": 1}  # error: typeddict-item, reportAssignmentType
# fmt: on


def keywords() -> None:
    rule: NetworkPolicyIngressRule = {"from": [{"podSelector": {}}], "ports": [{"port": "http"}, {"port": 80}]}
    rule["form"]  # error: typeddict-item, reportGeneralTypeIssues


class Widgets(Controller[Widget]):
    owns = (Owned("apps/v1", "Deployment"),)

    async def reconcile(self, axn: Axn[Widget]) -> None:
        deployment = deployment_of(axn.resource, replicas=axn.spec.replicas)
        axn.register_descendant(deployment)
        service: Service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}}
        axn.register_descendant(service, after=deployment, when=is_ready)
        axn.register_descendant(service, after=[deployment])
        axn.success_event(related=deployment)
        await axn.client.apply(Kind("v1", "Service"), service)
        live = axn.observed(deployment)
        typed: Deployment | None = live
        ready = live["replicas"] if live else 0  # error: typeddict-item, reportGeneralTypeIssues
        ready = live.get("status", {}).get("availableReplicas", 0) if live else 0
        axn.set_condition("Ready", ready >= axn.spec.replicas)


class Plain(Controller[Widget]):
    async def reconcile(self, axn: Axn[Widget]) -> None:
        child = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "b"}}
        axn.register_descendant(child)
        axn.register_descendant({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}})
        live = axn.observed(child)
        assert_type(axn.observed({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}), dict[str, Any] | None)
        print((live or {})["data"]["a"])


async def check(service: Service, running: testing.RunningOperator) -> None:
    await testing.handle(Widgets, {}, observed=[service])
    await running.apply(service)
    await running.until(service, testing.is_ready)


def templates(claim: core.PersistentVolumeClaim, axn: Axn[Widget]) -> None:
    spec: core.PersistentVolumeClaimSpec = {"accessModes": ["ReadWriteOnce"]}
    its: apps.StatefulSetSpec = {"volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": spec}]}
    its = {"volumeClaimTemplates": [claim]}
    testing.assert_pruned(axn, "ConfigMap", "old")
