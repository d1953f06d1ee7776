"""Certificates: the Secret that the operator fills with its certificate, or the objects of cert-manager for it."""

from __future__ import annotations

from collections.abc import Iterator

from bonny.operator import Operator
from bonny.resource import Resource
from bonny.tls.secret import TlsSecret

from .template import read_object


def certificate(operator: Operator, secret: TlsSecret) -> Iterator[Resource]:
    """The empty Secret that the operator fills, or the objects from which cert-manager makes it."""
    namespace, name = secret.key
    if secret.own:
        yield read_object("certificate-secret", operator, namespace, secret=name, purpose=secret.purpose)
        return
    issuer = f"{operator.name}-{secret.purpose}"
    yield read_object("issuer", operator, namespace, issuer=issuer)
    certificate = read_object("certificate", operator, namespace, certificate=issuer, secret=name)
    certificate["spec"]["dnsNames"] = list(secret.hosts)
    yield certificate
