"""Monitoring: alert rules for Prometheus and a dashboard for Grafana, as Kubernetes objects.

You need it where prometheus-operator reads rules from the cluster, and where Grafana's sidecar collects dashboards.
Elsewhere, `invoke dashboards` writes the same rules and the same dashboard as files.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Final

import yaml

from bonny.operator import Operator
from bonny.resource import Resource

from .template import read_object

ALERTS: Final = "alerts.yaml"
DASHBOARD: Final = "dashboard.json"


def monitoring_file(name: str, *, job: str) -> str:
    """The text of `ALERTS` or `DASHBOARD` for the scrape job that sees the operator."""
    return files("bonny_dev.manifest").joinpath(name).read_text(encoding="utf-8").replace("OPERATOR", job)


def service_monitor(operator: Operator, namespace: str) -> list[Resource]:
    """The scrape configuration, as prometheus-operator reads it."""
    if not operator.deploy.secure_metrics:
        return [read_object("service-monitor", operator, namespace)]
    from . import secure_metrics  # noqa: PLC0415  its extra may be absent

    return [secure_metrics.service_monitor(operator, namespace)]


def alerts(operator: Operator, namespace: str) -> list[Resource]:
    """The alert rules, as prometheus-operator reads them."""
    rules = yaml.safe_load(monitoring_file(ALERTS, job=operator.name))
    return [{**read_object("alerts", operator, namespace), "spec": rules}]


def dashboards(operator: Operator, namespace: str) -> list[Resource]:
    """The dashboard, as Grafana's sidecar reads it."""
    data = {f"{operator.name}.json": monitoring_file(DASHBOARD, job=operator.name)}
    return [{**read_object("dashboards", operator, namespace), "data": data}]
