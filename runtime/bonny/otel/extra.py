"""Extra: how traces plug into an operator."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from ..extras import Extra, ExtraRun
from ..telemetry import tracing

if TYPE_CHECKING:
    from ..run.process import Process


class Otel(Extra):
    """Traces, where the environment or `Operator(tracing=...)` asks for them."""

    honoured = {
        "OTEL_TRACES_EXPORTER": "Where traces are sent; none for nowhere.",
        "OTEL_EXPORTER_OTLP_ENDPOINT": "URL of an OpenTelemetry collector.",
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "URL of an OpenTelemetry collector for traces only.",
        "OTEL_SERVICE_NAME": "Name of the operator in traces.",
        "OTEL_SDK_DISABLED": "true: no traces are made.",
    }
    """OpenTelemetry reads more of its own."""

    def run(self, process: Process) -> ExtraRun | None:
        from .provider import find

        operator = process.operator
        spans = find(operator.tracing, service=operator.name, version=operator.version)
        return None if spans is None else Traced(spans)


class Traced(ExtraRun):
    """Spans of one run of the process."""

    def __init__(self, spans: tracing.Spans) -> None:
        self._spans = spans

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        tracing.switch(self._spans)
        try:
            yield
        finally:
            tracing.switch(None)


EXTRA = Otel()
