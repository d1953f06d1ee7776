"""Extra: how /metrics over TLS plugs into an operator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..extras import Extra, ExtraRun, Needed
from .settings import VARIABLES, MetricsSettings

if TYPE_CHECKING:
    from ..operator import Operator
    from ..run.process import Process


class MetricsAuth(Extra):
    """/metrics over TLS, for clients that may read it."""

    settings = MetricsSettings
    variables = VARIABLES

    def rules(self, operator: Operator, *, namespace: str, deployed: bool) -> Iterator[Needed]:
        if deployed and operator.deploy.secure_metrics:
            from .scrapers import metrics_rules

            yield from (("secure metrics", *each) for each in metrics_rules(operator, namespace=namespace))

    def run(self, process: Process) -> ExtraRun | None:
        if process.config.of(MetricsSettings).port is None:
            return None
        from .server import MetricsRun

        return MetricsRun(process)


EXTRA = MetricsAuth()
