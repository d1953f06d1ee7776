"""OpenTelemetry: makes the spans of `tracing`, and finds out where they go.

Needs the package opentelemetry-api, and the rest of the extra `otel` where the environment asks for traces. Attributes
have the names of OpenTelemetry's semantic conventions where there are such; those that begin with `bonny.` have none.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from importlib.metadata import entry_points
from typing import Final

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind, StatusCode, TracerProvider
from opentelemetry.util.types import AttributeValue

from ..core.meters import Exemplar
from ..errors import Retry, UsageError
from . import tracing
from .logging import reconcile_id

__all__ = ["OtelSpans", "find", "path_template"]

# Namespaces have subresources like any other object, by which their names are told from those of kinds.
OF_NAMESPACES: Final = ("finalize", "status")


class OtelSpans:
    """Spans by the tracer `bonny` of a provider."""

    def __init__(self, provider: TracerProvider, *, version: str = "") -> None:
        self._tracer = provider.get_tracer("bonny", version or None)

    @contextmanager
    def handling(self, axn: tracing.Handling, *, controller: str) -> Iterator[None]:
        """Surrounds a handling: a trace of its own, whatever is under way where the worker was started."""
        kind, metadata = axn.resource["kind"], axn.resource["metadata"]
        told: dict[str, AttributeValue] = {
            "bonny.controller": controller,
            "bonny.action": str(axn.action),
            "bonny.reasons": sorted(map(str, axn.reasons)),
            "bonny.tries": axn.tries,
            "bonny.reconcile_id": reconcile_id(),
            "k8s.object.api_version": axn.resource["apiVersion"],
            "k8s.object.kind": kind,
            "k8s.object.name": metadata["name"],
            "k8s.object.uid": metadata["uid"],
        }
        if namespace := metadata.get("namespace"):
            told["k8s.namespace.name"] = namespace
        with self._span(f"{axn.action} {kind}", told, context=Context()) as span:
            context = span.get_span_context()
            ids = trace.format_trace_id(context.trace_id), trace.format_span_id(context.span_id)
            tracing.observed.set(Exemplar(*ids, at=time.time()) if context.trace_flags.sampled else None)
            try:
                yield
                span.set_attribute("bonny.outcome", "success" if axn.requeue_seconds is None else "requeue_after")
            except BaseException as error:
                span.set_attribute("bonny.outcome", _outcome(error))
                raise

    def step(self, name: str) -> AbstractContextManager[object]:
        """Surrounds a step, within a handling that is recorded."""
        return self._span(name, {}) if trace.get_current_span().is_recording() else tracing.OFF

    def request(self, method: str, path: str, *, host: str) -> tracing.Ended | None:
        """A request, within a span that is recorded; None elsewhere: what follows a kind is not part of any trace."""
        if not trace.get_current_span().is_recording():
            return None
        template = path_template(path)
        told = {"http.request.method": method, "url.template": template, "server.address": host}
        span = self._tracer.start_span(f"{method} {template}", kind=SpanKind.CLIENT, attributes=told)

        def ended(status: int | None, error: BaseException | None) -> None:
            if status is not None:
                span.set_attribute("http.response.status_code", status)
            if error is not None or (status or 0) >= 400:
                _fail(span, str(status) if error is None else _type_of(error))
            span.end()

        return ended

    @contextmanager
    def _span(self, name: str, told: Mapping[str, AttributeValue], *, context: Context | None = None) -> Iterator[Span]:
        # An error's text and traceback may hold what is in an object, so only its type is told.
        with self._tracer.start_as_current_span(
            name, context, attributes=told, record_exception=False, set_status_on_exception=False
        ) as span:
            try:
                yield span
            except Exception as error:
                if not isinstance(error, Retry):
                    _fail(span, _type_of(error))
                raise


def _fail(span: Span, reason: str) -> None:
    span.set_attribute("error.type", reason)
    span.set_status(StatusCode.ERROR)


def _type_of(error: BaseException) -> str:
    return f"{type(error).__module__}.{type(error).__qualname__}".removeprefix("builtins.")


def _outcome(error: BaseException) -> str:
    """As `controller_runtime_reconcile_total` counts it; `cancelled` is what stopped with the process or its lease."""
    if isinstance(error, Retry):
        return "requeue" if error.after is None else "requeue_after"
    return "error" if isinstance(error, Exception) else "cancelled"


def path_template(path: str) -> str:
    """The path of a request without names of objects: `/api/v1/namespaces/{namespace}/pods/{name}/log`.

    What is no path of the API's objects keeps only its first part: what follows may be anything.
    """
    parts = path.strip("/").split("/")
    root = {"api": 2, "apis": 3}.get(parts[0], 0)
    if not root or len(parts) <= root:
        return path if root else f"/{parts[0]}"
    prefix, rest = parts[:root], parts[root:]
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in OF_NAMESPACES:
        prefix, rest = [*prefix, "namespaces", "{namespace}"], rest[2:]
    return "/" + "/".join([*prefix, *(rest[0], "{name}", *rest[2:3])[: len(rest)]])


# --- where they go ----------------------------------------------------------------------------------------------------


def find(
    provider: TracerProvider | None, *, service: str, version: str, environ: Mapping[str, str] | None
) -> OtelSpans | None:
    """As `tracing.find`; `environ` is None where it asks for nothing. Raises: `ImportError`, `UsageError`."""
    if not isinstance(provider, TracerProvider | None):
        raise UsageError(f"Operator(tracing={provider!r}): give a TracerProvider of OpenTelemetry, or leave it out")
    if provider is None:
        provider = trace.get_tracer_provider()
        if isinstance(provider, trace.ProxyTracerProvider | trace.NoOpTracerProvider):  # nobody set one
            if environ is None:
                return None
            try:
                provider = _set_up(environ, service=service, version=version)
            except ValueError as error:  # of the SDK or an exporter; it names the variable, or what stands there
                raise UsageError(f"OpenTelemetry refuses what an OTEL_* variable says: {error}") from None
    return OtelSpans(provider, version=version)


def _set_up(environ: Mapping[str, str], *, service: str, version: str) -> TracerProvider:
    """A provider as OpenTelemetry's variables say, for the whole process: handlers make their spans by it, too."""
    from opentelemetry.sdk import trace as sdk  # noqa: PLC0415  only here: a provider that is given needs none of it
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415

    # What is given here would beat the variables.
    named = "OTEL_SERVICE_NAME" in environ or "service.name=" in environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
    told = {"service.version": version} if named else {"service.name": service, "service.version": version}
    provider = sdk.TracerProvider(resource=Resource.create(told))
    protocol = environ.get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL") or environ.get("OTEL_EXPORTER_OTLP_PROTOCOL", "")
    for name in (environ.get("OTEL_TRACES_EXPORTER") or "otlp").split(","):
        exporter = name.strip()
        if exporter == "otlp":
            exporter = "otlp_proto_grpc" if protocol == "grpc" else "otlp_proto_http"
        found = next(iter(entry_points(group="opentelemetry_traces_exporter", name=exporter)), None)
        if found is None:
            raise UsageError(
                f"traces are to be exported by {exporter}, which is not installed: install the extra `otel` for "
                "otlp_proto_http, or the package of that exporter, or correct OTEL_TRACES_EXPORTER"
            )
        provider.add_span_processor(BatchSpanProcessor(found.load()()))
    trace.set_tracer_provider(provider)
    return provider
