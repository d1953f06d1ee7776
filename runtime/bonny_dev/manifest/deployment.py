"""Deployment: how the operator runs in a cluster, as closed as it can be.

You need it to see what is demanded of the image: it runs as user 65532, writes nothing but /tmp, answers /healthz and
/readyz on port 8080, and takes its settings from BONNY_ variables.

The pod fits the restricted profile of the Pod Security Standards, and beyond it has a read-only root file system.
"""

from __future__ import annotations

import math
from typing import Final

from bonny.resource import Resource
from bonny.run.operatorlike import OperatorLike
from bonny.run.rbac import watched_namespaces

from .labels import labels, selector

__all__ = ["PORT", "PORT_NAME", "deployment"]

# The user of distroless images; the Dockerfile names it, too. A number, so that the kubelet can tell it is not root.
USER: Final = 65532
PORT: Final = 8080
PORT_NAME: Final = "probes"
# The defaults of Bonny (its config, operator_deployment resources).
RESOURCES: Final = {"cpu": "200m", "memory": "200Mi"}
# What is logged counts as storage of the pod. The kubelet keeps 50 MiB of it; whoever exceeds the limit is evicted.
STORAGE_REQUEST: Final = {"ephemeral-storage": "64Mi"}
STORAGE_LIMIT: Final = {"ephemeral-storage": "1Gi"}
# After the grace period of handlers: 1 s for those that were cancelled, 2 s for the last events, 1 s for an open
# request to the probes, 0.5 s for threads (servers.worker, process, web.probes, main); and the release of the lease.
STOP_SECONDS: Final = 4.5


def deployment(operator: OperatorLike, *, image: str, namespace: str) -> Resource:
    """The Deployment of `operator` in `namespace`."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": operator.name, "namespace": namespace},
        "spec": {
            "replicas": operator.deploy.replicas,
            "strategy": _strategy(operator),
            "selector": {"matchLabels": selector(operator)},
            "template": {
                "metadata": {"labels": labels(operator)},
                "spec": {
                    "serviceAccountName": operator.name,
                    "automountServiceAccountToken": True,
                    # A Service called bonny-something would otherwise add BONNY_ variables that nobody knows.
                    "enableServiceLinks": False,
                    "terminationGracePeriodSeconds": _grace_period(operator),
                    "securityContext": {
                        "runAsNonRoot": True,
                        "runAsUser": USER,
                        "runAsGroup": USER,
                        "seccompProfile": {"type": "RuntimeDefault"},
                    },
                    **_spread(operator),
                    "containers": [_container(operator, image=image, namespace=namespace)],
                    "volumes": [{"name": "tmp", "emptyDir": {}}],
                },
            },
        },
    }


def _container(operator: OperatorLike, *, image: str, namespace: str) -> Resource:
    watched = watched_namespaces(operator, namespace=namespace)
    return {
        "name": "operator",
        "image": image,
        "env": [
            _from_pod("BONNY_POD_NAME", "metadata.name"),
            _from_pod("BONNY_POD_NAMESPACE", "metadata.namespace"),
            _from_pod("BONNY_POD_SERVICE_ACCOUNT", "spec.serviceAccountName"),
            {"name": "BONNY_WATCH_NAMESPACE", "value": "__ALL__" if watched is None else ",".join(watched)},
            {"name": "BONNY_LEADER_ELECTION", "value": str(operator.deploy.leader_election).lower()},
            {"name": "BONNY_HTTP_PORT", "value": str(PORT)},
            {"name": "BONNY_LOG_FORMAT", "value": "json"},
        ],
        "ports": [{"name": PORT_NAME, "containerPort": PORT}],
        # The times of kubebuilder's projects: a start that takes 15 s is no reason for a restart.
        "livenessProbe": {**_probe("/healthz"), "initialDelaySeconds": 15, "periodSeconds": 20, "timeoutSeconds": 5},
        "readinessProbe": {**_probe("/readyz"), "initialDelaySeconds": 2, "periodSeconds": 10, "timeoutSeconds": 5},
        "resources": {"requests": RESOURCES | STORAGE_REQUEST, "limits": RESOURCES | STORAGE_LIMIT},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],  # noqa: S108  the container's own
    }


def _strategy(operator: OperatorLike) -> Resource:
    """With a lease the new replica fills its caches while the old one still acts. Without, both would act at once: the
    old one ends before the new one starts."""
    if not operator.deploy.leader_election:
        return {"type": "Recreate"}
    return {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}


def _grace_period(operator: OperatorLike) -> int:
    """How long an orderly stop takes at most. Who is killed before it ends leaves a lease that others must wait for."""
    release = operator.lease.request_seconds if operator.deploy.leader_election else 0.0
    return math.ceil(operator.grace + STOP_SECONDS + release)


def _spread(operator: OperatorLike) -> Resource:
    """Replicas on different nodes where there are several, so that the loss of one node leaves a standby."""
    if operator.deploy.replicas == 1:
        return {}
    constraint = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": selector(operator)},
    }
    return {"topologySpreadConstraints": [constraint]}


def _from_pod(name: str, path: str) -> Resource:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def _probe(path: str) -> Resource:
    return {"httpGet": {"path": path, "port": PORT_NAME}}
