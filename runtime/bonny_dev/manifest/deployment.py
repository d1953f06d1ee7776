"""Deployment: how the operator runs in a cluster: `objects/deployment.yaml`, with the settings of the operator."""

from __future__ import annotations

import math
from typing import Final

from bonny.deploy import FromConfigMap, FromSecret
from bonny.errors import OptionError
from bonny.operator import Operator
from bonny.resource import Resource

from ..uses import has_webhooks, selector_of
from .labels import labels
from .template import read_object

# After the grace period of handlers: 1 s for cancelled handlers, 2 s for the last events, 1 s for an open
# request to the probes, 0.5 s for threads (engine.worker, run.process, run.probes, main); and the release of the lease.
STOP_SECONDS: Final = 4.5
# The API server continues for seconds to send reviews to a pod that is being deleted (kubernetes/kubernetes#127335).
DRAIN_SECONDS: Final = 10

KINDS: Final = {FromSecret: "secret", FromConfigMap: "configMap"}

PORT: Final = 10250
"""The container's port of webhooks: a control plane behind a firewall often reaches 443 and 10250 only."""

METRICS_PORT: Final = 8443
"""The container's port of /metrics over TLS: that of kubebuilder's projects."""


def deployment(operator: Operator, *, image: str, namespace: str) -> Resource:
    """The Deployment of `operator` in `namespace`."""
    watched = operator.watched(namespace)
    made = read_object(
        "deployment",
        operator,
        namespace,
        image=image,
        replicas=operator.deploy.replicas,
        watched="__ALL__" if watched is None else ",".join(watched),
        leader_election=str(operator.deploy.leader_election).lower(),
        grace_period=_grace_period(operator),
    )
    template = made["spec"]["template"]
    template["metadata"]["labels"] = labels(operator)
    (container,) = template["spec"]["containers"]
    if operator.deploy.secure_metrics:
        container["ports"].append({"name": "metrics", "containerPort": METRICS_PORT})
        container["env"].append({"name": "BONNY_SECURE_METRICS_PORT", "value": str(METRICS_PORT)})
    if has_webhooks(operator):
        container["ports"].append({"name": "webhook", "containerPort": PORT})
        container["env"].append({"name": "BONNY_DRAIN_SECONDS", "value": str(DRAIN_SECONDS)})
    if watched == ():
        variable = next(each for each in container["env"] if each["name"] == "BONNY_WATCH_NAMESPACE")
        variable |= {"name": "BONNY_WATCH_NAMESPACES_LABELED", "value": selector_of(operator)}
    known = {each["name"] for each in container["env"]}
    if taken := next((name for name in operator.deploy.env if name in known), None):
        raise OptionError(f"Deploy.env sets {taken}, which the manifest sets itself: leave it out, or use customize")
    container["env"] += [_variable(name, value) for name, value in operator.deploy.env.items()]
    if operator.deploy.env_from:
        container["envFrom"] = [{f"{KINDS[type(each)]}Ref": {"name": each.name}} for each in operator.deploy.env_from]
    if operator.deploy.replicas == 1:
        del template["spec"]["topologySpreadConstraints"]
    if not operator.deploy.leader_election:
        # Without a lease two replicas would both act: the old one ends before the new one starts.
        made["spec"]["strategy"] = {"type": "Recreate"}
    return made


def _variable(name: str, value: str | FromSecret | FromConfigMap) -> Resource:
    if isinstance(value, str):
        # The kubelet replaces $(NAME) by another variable; a doubled $ stands for itself.
        return {"name": name, "value": value.replace("$", "$$")}
    return {"name": name, "valueFrom": {f"{KINDS[type(value)]}KeyRef": value._asdict()}}


def _grace_period(operator: Operator) -> int:
    """The longest time of an orderly stop. A pod that is killed before its end leaves a lease that others wait for."""
    release = operator.lease.request_seconds if operator.deploy.leader_election else 0.0
    drain = DRAIN_SECONDS if has_webhooks(operator) else 0
    return math.ceil(operator.grace + STOP_SECONDS + release + drain)
