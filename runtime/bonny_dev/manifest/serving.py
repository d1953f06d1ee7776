"""Serving: the objects that a cluster needs before the API server can call the operator: a Service, and a certificate.

The operator's own certificate is in a Secret that the manifest brings empty: a permission to create Secrets cannot be
limited to one name. With the permission to write a `caBundle` comes a guard, an admission policy that holds it to that.
"""

from __future__ import annotations

from collections.abc import Iterator

from bonny.operator import Operator
from bonny.resource import Resource
from bonny.webhooks import names

from .certificates import certificate
from .policies import GUARD, SINCE
from .template import read_object


def called(operator: Operator, namespace: str) -> Iterator[Resource]:
    """The objects that the API server needs to call the operator.

    They come before the permissions of the operator: the guard is there when these are granted.
    """
    yield from certificate(operator, names.secret(operator, namespace))
    if operator.deploy.certificates == "own":
        yield from _guard(operator, namespace)
    made = read_object("webhook-service", operator, namespace, service=names.service(operator))
    if operator.converted:
        # A replica is ready once it has listed its objects, for which it may have to convert them itself.
        made["spec"]["publishNotReadyAddresses"] = True
    yield made


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
