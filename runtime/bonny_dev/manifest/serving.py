"""Serving: what must be in a cluster before the API server can call the operator: a Service, and a certificate; and
before Prometheus can scrape it over TLS.

The operator's own certificate is in a Secret that the manifest brings empty: a permission to create Secrets cannot be
limited to one name. With the permission to write a `caBundle` comes a guard, an admission policy that holds it to that.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from bonny.operator import Operator
from bonny.resource import Resource
from bonny.run.scrapers import metrics_secret
from bonny.tls.secret import TlsSecret
from bonny.webhooks import names

from .policies import SINCE
from .template import read_object

GUARD: Final = "webhook-guard"


def serving(operator: Operator, namespace: str) -> Iterator[Resource]:
    """The objects, before the permissions of the operator: the guard is there when they are granted."""
    if operator.has_webhooks:
        yield from _called(operator, namespace)
    if operator.deploy.secure_metrics:
        yield from _certificate(operator, metrics_secret(operator, namespace))
        reader = operator.outside(f"{operator.name}-metrics-reader", namespace)
        yield read_object("metrics-reader", operator, namespace, reader=reader)


def _called(operator: Operator, namespace: str) -> Iterator[Resource]:
    """The objects that the API server needs to call the operator."""
    yield from _certificate(operator, names.secret(operator, namespace))
    if operator.deploy.certificates == "own":
        yield from _guard(operator, namespace)
    made = read_object("webhook-service", operator, namespace, service=names.service(operator))
    if operator.converted:
        # A replica is ready once it has listed its objects, for which it may have to convert them itself.
        made["spec"]["publishNotReadyAddresses"] = True
    yield made


def _certificate(operator: Operator, secret: TlsSecret) -> Iterator[Resource]:
    """The empty Secret that the operator fills, or what cert-manager makes it of."""
    namespace, name = secret.key
    if secret.own:
        yield read_object("certificate-secret", operator, namespace, secret=name, purpose=secret.purpose)
        return
    issuer = f"{operator.name}-{secret.purpose}"
    yield read_object("issuer", operator, namespace, issuer=issuer)
    certificate = read_object("certificate", operator, namespace, certificate=issuer, secret=name)
    certificate["spec"]["dnsNames"] = list(secret.hosts)
    yield certificate


def _guard(operator: Operator, namespace: str) -> Iterator[Resource]:
    guard = operator.outside(f"{operator.name}-{GUARD}.{operator.group}", namespace)
    policy = read_object("webhook-guard", operator, namespace, guard=guard, since=SINCE)
    policy["spec"]["matchConstraints"]["resourceRules"] = [
        {
            "apiGroups": [kind.group],
            "apiVersions": ["*"],
            "operations": ["CREATE", "UPDATE", "DELETE"],
            "resources": [kind.plural],
            "resourceNames": named,
        }
        for kind, named in names.trusting(operator, namespace=namespace).items()
    ]
    yield policy
    yield read_object("webhook-guard-binding", operator, namespace, guard=guard, since=SINCE)
