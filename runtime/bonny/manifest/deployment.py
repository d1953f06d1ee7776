"""Deployment: how the operator runs in a cluster, as closed as it can be.

You need it to see what is demanded of the image: it runs as user 65532, writes nothing but /tmp, answers /healthz and
/readyz on port 8080, and takes its settings from BONNY_ variables.

The pod fits the restricted profile of the Pod Security Standards, and beyond it has a read-only root file system.
"""

from __future__ import annotations

from typing import Final

from ..resource import Resource
from .operatorlike import OperatorLike
from .rbac import watched_namespaces

__all__ = ["deployment", "labels"]

# The user of distroless images; the Dockerfile names it, too. A number, so that the kubelet can tell it is not root.
USER: Final = 65532
PORT: Final = 8080
# The defaults of Bonny (its config, operator_deployment resources).
RESOURCES: Final = {"cpu": "200m", "memory": "200Mi"}
# The default of Kubernetes; running handlers get 25 s of it (`Config.grace`).
GRACE_SECONDS: Final = 30


def labels(operator: OperatorLike) -> dict[str, str]:
    """The recommended labels, on everything in the manifest."""
    return {
        "app.kubernetes.io/name": operator.name,
        "app.kubernetes.io/component": "operator",
        "app.kubernetes.io/managed-by": "bonny",
    }


def deployment(operator: OperatorLike, *, image: str, namespace: str) -> Resource:
    """The Deployment of `operator` in `namespace`."""
    marks = labels(operator)
    selector = {name: marks[name] for name in ("app.kubernetes.io/name", "app.kubernetes.io/component")}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": operator.name, "namespace": namespace, "labels": marks},
        "spec": {
            "replicas": operator.replicas,
            "strategy": _strategy(operator),
            "selector": {"matchLabels": selector},
            "template": {
                "metadata": {"labels": marks},
                "spec": {
                    "serviceAccountName": operator.name,
                    "automountServiceAccountToken": True,
                    # A Service called bonny-something would otherwise add BONNY_ variables that nobody knows.
                    "enableServiceLinks": False,
                    "terminationGracePeriodSeconds": GRACE_SECONDS,
                    "securityContext": {
                        "runAsNonRoot": True,
                        "runAsUser": USER,
                        "runAsGroup": USER,
                        "seccompProfile": {"type": "RuntimeDefault"},
                    },
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
            {"name": "BONNY_LEADER_ELECTION", "value": str(operator.leader_election).lower()},
            {"name": "BONNY_HTTP_PORT", "value": str(PORT)},
            {"name": "BONNY_LOG_FORMAT", "value": "json"},
        ],
        "ports": [{"name": "probes", "containerPort": PORT}],
        # The times of kubebuilder's projects: a start that takes 15 s is no reason for a restart.
        "livenessProbe": {**_probe("/healthz"), "initialDelaySeconds": 15, "periodSeconds": 20, "timeoutSeconds": 5},
        "readinessProbe": {**_probe("/readyz"), "initialDelaySeconds": 2, "periodSeconds": 10, "timeoutSeconds": 5},
        "resources": {"requests": dict(RESOURCES), "limits": dict(RESOURCES)},
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
    if not operator.leader_election:
        return {"type": "Recreate"}
    return {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}


def _from_pod(name: str, path: str) -> Resource:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def _probe(path: str) -> Resource:
    return {"httpGet": {"path": path, "port": "probes"}}
