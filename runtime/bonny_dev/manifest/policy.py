"""Policy: what the cluster enforces on an operator's pods: where they may connect, and how many may be evicted.

You need it to see which ports are open. `Deploy(customize=...)` adds those that your handlers use.
"""

from __future__ import annotations

from typing import Final

from bonny.resource import Resource
from bonny.run.operatorlike import OperatorLike

from .deployment import PORT
from .labels import selector

__all__ = ["disruption_budget", "network_policy"]

# Where API servers listen: in managed clusters and behind their Service; with kubeadm, kind, k3s, OpenShift; with
# minikube; with MicroK8s. Most networks apply a policy after the Service's address was replaced by the server's.
API_SERVER_PORTS: Final = (443, 6443, 8443, 16443)
# OpenShift's servers listen on 5353, behind a Service on 53.
DNS_PORTS: Final = (53, 5353)


def network_policy(operator: OperatorLike, *, namespace: str) -> Resource:
    """Closes everything but the port that is probed and scraped, and the way to the API server and to DNS.

    Does not: know the API server's address. No label selects it and every cluster has another, so its ports are open
    to all destinations.
    """
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": operator.name, "namespace": namespace},
        "spec": {
            "podSelector": {"matchLabels": selector(operator)},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [{"ports": [_port(PORT)]}],
            "egress": [
                {"ports": [_port(port) for port in API_SERVER_PORTS]},
                {"ports": [_port(port, protocol) for port in DNS_PORTS for protocol in ("UDP", "TCP")]},
            ],
        },
    }


def disruption_budget(operator: OperatorLike, *, namespace: str) -> Resource:
    """Lets a drain evict one replica at a time, and those that are not ready at any time: they hold nobody up."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": operator.name, "namespace": namespace},
        "spec": {
            "maxUnavailable": 1,
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
            "selector": {"matchLabels": selector(operator)},
        },
    }


def _port(number: int, protocol: str = "TCP") -> Resource:
    return {"protocol": protocol, "port": number}
