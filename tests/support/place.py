"""Place: a namespace of its own on a real API server, and a client that may do there what some rules grant, no more."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from bonny.client.api import Client
from bonny.client.config import Kubeconfig
from bonny.resource import Resource
from bonny_dev.sandbox import Sandbox
from bonny_dev.testing.faults import FaultProxy

RBAC = "rbac.authorization.k8s.io"


@dataclass(frozen=True)
class Place:
    """Where a part is tried. Requests of `client` go through `proxy`; those of `sandbox` are the administrator's."""

    sandbox: Sandbox
    proxy: FaultProxy
    client: Client
    namespace: str

    def pod(self, name: str, *, node: str = "", namespace: str = "", **labels: str) -> Resource:
        """Create a pod. Without a node and a kubelet it stays Pending, and goes at once when it is deleted."""
        spec: Resource = {"containers": [{"name": "main", "image": "nothing"}]}
        if node:
            spec["nodeName"] = node
        metadata = {"name": name, "namespace": namespace or self.namespace, "labels": labels}
        (made,) = self.sandbox.apply({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
        return made

    def pods(self) -> set[str]:
        return {pod["metadata"]["name"] for pod in self.sandbox.items("v1", "Pod", namespace=self.namespace)}

    def config_map(self, name: str, *, labels: dict[str, str] | None = None, **data: str) -> Resource:
        metadata = {"name": name, "namespace": self.namespace, "labels": labels or {}}
        (made,) = self.sandbox.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
        return made

    def set_phase(self, pod: str, phase: str) -> None:
        """Change nothing but the status, as a kubelet does."""
        path = f"/api/v1/namespaces/{self.namespace}/pods/{pod}/status"
        patch = {"status": {"phase": phase}}
        answer = self.sandbox.request("PATCH", path, patch, content_type="application/merge-patch+json")
        assert answer.status == 200, answer.body

    def delete(self, kind: str, name: str) -> None:
        """A graceful period would wait for a kubelet that does not exist."""
        plural = {"Pod": "pods", "ConfigMap": "configmaps"}[kind]
        path = f"/api/v1/namespaces/{self.namespace}/{plural}/{name}?gracePeriodSeconds=0"
        assert self.sandbox.request("DELETE", path).status == 200


@asynccontextmanager
async def place(sandbox: Sandbox, rules: Sequence[Resource]) -> AsyncIterator[Place]:
    """What is made in its namespace is removed at the end, as far as it is a pod or a ConfigMap."""
    name = f"place-{uuid.uuid4().hex[:8]}"
    subject = {"kind": "ServiceAccount", "name": name, "namespace": name}
    binding = {"roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": name}, "subjects": [subject]}
    sandbox.apply(
        [
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}},
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": name}},
            {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": list(rules)},
            {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name}, **binding},
        ]
    )
    token = sandbox.service_account_token(name, name)
    with FaultProxy(sandbox, token=token) as proxy:
        async with Client(Kubeconfig(str(proxy.kubeconfig)), user_agent="place/1.0", timeout=10) as client:
            yield Place(sandbox, proxy, client, name)
    for plural in ("pods", "configmaps"):
        sandbox.request("DELETE", f"/api/v1/namespaces/{name}/{plural}?gracePeriodSeconds=0")
    for kind in ("ClusterRoleBinding", "ClusterRole"):
        sandbox.delete(f"{RBAC}/v1", kind, name)
