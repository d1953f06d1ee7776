"""Service: the address at which the replicas of an operator are scraped for metrics.

Nothing else calls an operator; the kubelet asks the pods themselves.
"""

from __future__ import annotations

from typing import Final

from bonny.errors import UsageError
from bonny.operator import Operator
from bonny.resource import Resource

from .deployment import PORT, PORT_NAME
from .labels import selector

__all__ = ["METRICS", "service"]

METRICS: Final = "metrics"
"""The name of its port."""


def service(operator: Operator, *, namespace: str) -> Resource:
    """The Service of `operator` in `namespace`.

    Raises: `UsageError` when the operator's name cannot be that of a Service.
    """
    if operator.name[0].isdigit():
        # RFC 1035: of all objects in the manifest only this one is a host's name.
        raise UsageError(
            f"a Service cannot be called {operator.name}: let the operator's name begin with a letter, or leave it "
            "out by --without service"
        )
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": operator.name, "namespace": namespace},
        "spec": {
            "selector": selector(operator),
            "ports": [{"name": METRICS, "port": PORT, "targetPort": PORT_NAME}],
        },
    }
