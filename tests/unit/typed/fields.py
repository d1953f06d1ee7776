"""Fields: models are built with Python names, whatever the names on the wire."""

from __future__ import annotations

from .api import WidgetSpec, WidgetStatus

WidgetSpec(replicas=3, cluster_ip="10.0.0.1")
WidgetSpec(clusterIP="10.0.0.1")  # error: call-arg, reportCallIssue
WidgetSpec(replica=3)  # error: call-arg, reportCallIssue
WidgetSpec(replicas="3")  # error: arg-type, reportArgumentType
WidgetStatus(phase=None, ready_replicas=2)
WidgetStatus(readyReplicas=2)  # error: call-arg, reportCallIssue
