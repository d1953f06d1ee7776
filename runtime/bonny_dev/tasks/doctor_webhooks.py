"""Doctor, webhooks: the checks of `invoke doctor` for an operator that the API server calls."""

from __future__ import annotations

from base64 import b64decode
from datetime import UTC, datetime
from typing import Final

from bonny.api.values import quantity_value
from bonny.client.api import Client
from bonny.kinds import Kind
from bonny.operator import Operator
from bonny.resource import identify, key_of
from bonny.tls import certificates
from bonny.tls.secret import CERTIFICATE, KEY, SECRET
from bonny.webhooks import names
from bonny.webhooks.ca_bundles import client_configs
from bonny.webhooks.memory import MOST_MEMORY
from bonny.webhooks.serving import SERVER

from ..install import CRD, kind_of
from ..manifest.webhooks import webhooks
from .wrong import Wrong

SLICE: Final = Kind("discovery.k8s.io/v1", "EndpointSlice")
# With 20,000 objects.
OWN_MEMORY: Final = 100 * 2**20
# The operator renews a certificate that is valid for less than a third of a year.
FEW_DAYS: Final = 30


async def answered(client: Client, operator: Operator, namespace: str) -> str:
    """The Service of the webhooks has ready endpoints. Raises: `Wrong`."""
    service = names.service(operator)
    slices = await client.list(SLICE, namespace=namespace, label_selector=f"kubernetes.io/service-name={service}")
    endpoints = [endpoint for each in slices for endpoint in each.get("endpoints") or ()]
    # As kube-proxy does: a missing condition counts as ready.
    ready = sum(endpoint.get("conditions", {}).get("ready") is not False for endpoint in endpoints)
    if not ready:
        advice = f"`kubectl get pods --namespace {namespace}` shows why"
        raise Wrong(f"Service {namespace}/{service} has no ready endpoint, so webhooks are not answered: {advice}")
    return f"Service {namespace}/{service} has ready endpoints ({ready})"


async def certified(client: Client, operator: Operator, namespace: str) -> str:
    """The certificate fits the Service, is valid for days to come, and is trusted wherever the operator is called.

    Raises: `Wrong`.
    """
    secret = names.secret(operator, namespace)
    data = (await client.get(SECRET, secret.key)).get("data") or {}
    chain, key = (b64decode(data.get(part, "")) for part in (CERTIFICATE, KEY))
    called = [await client.get(kind_of(each), key_of(each)) for each in webhooks(operator, namespace)]
    called += [await client.get(CRD, hub.as_kind(operator.group).resource) for hub in operator.converted]
    leaf = None
    for each in called:
        for config in client_configs(each).values():
            authority = b64decode(config.get("caBundle", ""))
            leaf = certificates.read(chain, key, certificates.split(authority))
            if leaf is None or secret.hosts[0] not in leaf.names:
                raise Wrong(
                    f"the caBundle of {identify(each)} does not match the certificate in Secret {secret.key}: see the "
                    "log of the leader"
                )
    days = (leaf.not_after - datetime.now(UTC)).days if leaf else 0
    if days < FEW_DAYS:
        raise Wrong(f"the certificate in Secret {secret.key} ends in {days} days: see the log of the operator")
    return f"the certificate in Secret {secret.key} is trusted, and ends in {days} days"


async def roomy(client: Client, operator: Operator, namespace: str) -> str:
    """The memory that the pod may use is enough for webhooks. Raises: `Wrong`."""
    needed = OWN_MEMORY + SERVER.unanswered_bytes + MOST_MEMORY
    ours = f"app.kubernetes.io/name={operator.name}"
    for each in await client.list(Kind("apps/v1", "Deployment"), namespace=namespace, label_selector=ours):
        for container in each["spec"]["template"]["spec"]["containers"]:
            limit = str(container.get("resources", {}).get("limits", {}).get("memory", needed))
            if container["name"] == "operator" and quantity_value(limit) < needed:
                raise Wrong(
                    f"Deployment {key_of(each)} has {limit} of memory, and webhooks need {needed >> 20}Mi: "
                    "set its limit in `Deploy`"
                )
    return f"webhooks may use the {needed >> 20}Mi of memory that they need"
