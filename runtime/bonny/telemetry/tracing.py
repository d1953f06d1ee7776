"""Tracing: whether reconciles, their steps and their requests become spans.

You need it to make a span of another part of the runtime. `otel` makes the spans; it is imported only where traces are
asked for. Elsewhere each place that could make a span costs one comparison with None.
You do not need it for spans of your own: use OpenTelemetry's API in a handler, as anywhere.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final, TypeAlias

from ..core.meters import Exemplar
from ..errors import UsageError

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

    from .otel import OtelSpans


# OpenTelemetry's own variables (its specification, "Environment Variable Specification"): any of them asks for traces.
ASKING: Final = ("OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
DISABLED: Final = "OTEL_SDK_DISABLED"

Ended: TypeAlias = Callable[[int | None, BaseException | None], None]
"""Called at the end of a request with the status of its answer; without an answer, with the error."""

spans: OtelSpans | None = None
"""Makes the spans of this process; None: no traces. Set by `switch`, read as `tracing.spans`."""

observed: ContextVar[Exemplar | None] = ContextVar("observed", default=None)
"""The trace of the last reconcile in this asyncio task, if it is recorded."""


def switch(to: OtelSpans | None) -> None:
    """Let `to` make the spans from now on."""
    global spans  # noqa: PLW0603  of the process, as the listeners of events and the providers of OpenTelemetry are
    spans = to


def find(provider: TracerProvider | None, *, service: str, version: str) -> OtelSpans | None:
    """Return what makes spans: by `provider`, by the provider of the process, or by one that the environment asks for.

    Raises: `UsageError` when a library is not installed, `provider` is none, or OpenTelemetry refuses its variables.
    """
    unwanted = os.environ.get(DISABLED, "").lower() == "true" or os.environ.get(ASKING[0]) == "none"
    asking = "" if unwanted else next((name for name in ASKING if os.environ.get(name)), "")
    if provider is None and not asking and "opentelemetry.trace" not in sys.modules:
        return None
    try:
        from . import otel  # noqa: PLC0415  its library is optional

        return otel.find(provider, service=service, version=version, wanted=bool(asking))
    except ImportError as error:
        raise UsageError(
            f"{asking or 'Operator(tracing=...)'} asks for traces, but {error.name} is not installed: "
            "install the extra `otel`, as in pip install '.[otel]'"
        ) from error
