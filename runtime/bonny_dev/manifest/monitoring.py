"""Monitoring: what Prometheus and Grafana are told of an operator, as objects that their operators read.

You need it where prometheus-operator scrapes the cluster, and where Grafana's sidecar collects dashboards.
You do not need it elsewhere: `invoke dashboards` writes the same rules and the same dashboard as files.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Final

import yaml

from bonny.operator import Operator
from bonny.resource import Resource

from .labels import NAME, selector
from .service import METRICS

__all__ = ["ALERTS", "DASHBOARD", "alerts", "dashboards", "monitoring_file", "service_monitor"]

ALERTS: Final = "alerts.yaml"
DASHBOARD: Final = "dashboard.json"
# What the sidecar of Grafana's Helm chart looks for unless it is told otherwise.
SIDECAR_LABEL: Final = "grafana_dashboard"


def monitoring_file(name: str, *, job: str) -> str:
    """The text of `ALERTS` or `DASHBOARD` for the scrape job that sees the operator."""
    return files("bonny_dev.manifest").joinpath(name).read_text(encoding="utf-8").replace("OPERATOR", job)


def service_monitor(operator: Operator, *, namespace: str) -> Resource:
    """Has every replica scraped; the job is called like the operator."""
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "ServiceMonitor",
        "metadata": {"name": operator.name, "namespace": namespace},
        "spec": {
            "jobLabel": NAME,
            "selector": {"matchLabels": selector(operator)},
            "endpoints": [{"port": METRICS}],
        },
    }


def alerts(operator: Operator, *, namespace: str) -> Resource:
    """The alert rules, as prometheus-operator reads them."""
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": operator.name, "namespace": namespace},
        "spec": yaml.safe_load(monitoring_file(ALERTS, job=operator.name)),
    }


def dashboards(operator: Operator, *, namespace: str) -> Resource:
    """The dashboard, as Grafana's sidecar reads it."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": f"{operator.name}-dashboard",
            "namespace": namespace,
            "labels": {SIDECAR_LABEL: "1"},
        },
        "data": {f"{operator.name}.json": monitoring_file(DASHBOARD, job=operator.name)},
    }
