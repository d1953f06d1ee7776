"""Provider: finds what makes spans: a given provider, that of the process, or one that the environment asks for."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, Final

from ..errors import UsageError

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

    from .spans import OtelSpans

# OpenTelemetry's own variables (its specification, "Environment Variable Specification"): any of them asks for traces.
ASKING: Final = ("OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
DISABLED: Final = "OTEL_SDK_DISABLED"


def find(provider: TracerProvider | None, *, service: str, version: str) -> OtelSpans | None:
    """Return what makes spans: by `provider`, by the provider of the process, or by one that the environment asks for.

    Raises: `UsageError` when a library is not installed, `provider` is none, or OpenTelemetry refuses its variables.
    """
    unwanted = os.environ.get(DISABLED, "").lower() == "true" or os.environ.get(ASKING[0]) == "none"
    asking = "" if unwanted else next((name for name in ASKING if os.environ.get(name)), "")
    if provider is None and not asking and "opentelemetry.trace" not in sys.modules:
        return None
    try:
        return _found(provider, service=service, version=version, wanted=bool(asking))
    except ImportError as error:
        raise UsageError(
            f"{asking or 'Operator(tracing=...)'} needs traces, but {error.name} is not installed: "
            "run `invoke extras --add otel`, and then `uv sync` or pip install -e '.[dev]'"
        ) from error


def _found(provider: TracerProvider | None, *, service: str, version: str, wanted: bool) -> OtelSpans | None:
    """As `find`; `wanted` says whether the environment asks for traces. Raises: `ImportError`, `UsageError`."""
    # Loaded here: the library is optional, and most processes make no spans.
    from opentelemetry import trace  # noqa: PLC0415

    from .spans import OtelSpans  # noqa: PLC0415

    if not isinstance(provider, trace.TracerProvider | None):
        raise UsageError(f"Operator(tracing={provider!r}): give a TracerProvider of OpenTelemetry, or leave it out")
    if provider is None:
        provider = trace.get_tracer_provider()
        if isinstance(provider, trace.ProxyTracerProvider | trace.NoOpTracerProvider):  # the process has none
            if not wanted:
                return None
            try:
                _set_up(service=service, version=version)
            except (ValueError, RuntimeError) as error:
                raise UsageError(
                    f"OpenTelemetry cannot be set up by the OTEL_* variables ({error}): correct them, or install "
                    "the exporter that they name; the extra `otel` has that for otlp over HTTP"
                ) from None
            provider = trace.get_tracer_provider()
    return OtelSpans(provider, version=version)


def _set_up(*, service: str, version: str) -> None:
    """Let OpenTelemetry set up the whole process by its variables: spans of handlers go the same way as ours."""
    # OpenTelemetry's distributions configure the process by this class. A given provider does without the SDK.
    from opentelemetry.sdk._configuration import _OTelSDKConfigurator  # noqa: PLC0415

    configurator: Any = _OTelSDKConfigurator
    # The defaults fit the exporter that the extra `otel` installs.
    for name, default in (("OTEL_TRACES_EXPORTER", "otlp"), ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")):
        os.environ[name] = os.environ.get(name) or default
    # An attribute that is given here beats the variables.
    has_name = "OTEL_SERVICE_NAME" in os.environ or "service.name=" in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
    configurator().configure(
        resource_attributes={"service.version": version} | ({} if has_name else {"service.name": service})
    )
