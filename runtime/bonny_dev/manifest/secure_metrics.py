"""Secure metrics: the objects that a cluster needs before Prometheus can scrape the operator over TLS."""

from __future__ import annotations

from collections.abc import Iterator

from bonny.metrics_auth.scrapers import metrics_secret
from bonny.operator import Operator
from bonny.resource import Resource

from .certificates import certificate
from .template import read_object


def scraped(operator: Operator, namespace: str) -> Iterator[Resource]:
    """The certificate, and a ClusterRole for clients."""
    yield from certificate(operator, metrics_secret(operator, namespace))
    reader = operator.outside(f"{operator.name}-metrics-reader", namespace)
    yield read_object("metrics-reader", operator, namespace, reader=reader)


def service_monitor(operator: Operator, namespace: str) -> Resource:
    """The scrape configuration, as prometheus-operator reads it."""
    secret = metrics_secret(operator, namespace)
    return read_object("secure-service-monitor", operator, namespace, host=secret.hosts[0], secret=secret.key.name)
